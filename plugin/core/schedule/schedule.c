#include "schedule/schedule.h"

#include <math.h>
#include <stdlib.h>

#include "estimate/member.h"
#include "match/group.h"
#include "proc/arith.h"
#include "proc/rule.h"

/* A cycle may spend all that was saved if a third of the span has passed since
 * the last one, and in proportion if less has. */
#define SPREAD_PART 3
/* Short-lived processes make the budget scarce for a moment only. */
#define SCARCE_AFTER_NS (UINT64_C(60) * 1000000000)
#define MARGIN 1.25
/* Due readings get the part that they need, within these limits: readings for
 * an error must not wait until they are due as well. Due readings may be late
 * by MaxAge, so even half is enough in the long run. */
#define AGE_PART_LEAST 0.5
#define AGE_PART_MOST 0.75
/* The part of the income that is spent even if no error is worth a reading. */
#define CHEAP_PART 0.25
#define CHEAP_INTERVALS_MOST 6 /* in a span */

/* --- the budget --- */

void read_budget_init(struct read_budget *b, double percent, uint64_t span_ns) {
  *b = (struct read_budget){.share = percent / 100, .span_ns = span_ns};
  b->saved_ns = (int64_t)(b->share * (double)span_ns);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static uint64_t positive(int64_t x) { return x > 0 ? (uint64_t)x : 0; }

/* The span, but at least an interval. */
static uint64_t span_ns(const struct read_budget *b, uint64_t interval_ns) {
  return interval_ns > b->span_ns ? interval_ns : b->span_ns;
}

/* The time since the last cycle. More than the span would overflow anyway. */
static uint64_t elapsed_ns(const struct read_budget *b, uint64_t now_ns,
                           uint64_t interval_ns) {
  uint64_t ns = b->begun_ns ? now_ns - b->begun_ns : interval_ns;
  uint64_t most_ns = span_ns(b, interval_ns);

  return ns < most_ns ? ns : most_ns;
}

static void note_needed(struct read_budget *b, uint64_t now_ns, double needed) {
  b->needed = needed;
  if (needed <= b->share)
    b->scarce_ns = 0;
  else if (!b->scarce_ns)
    b->scarce_ns = now_ns;
}

static double part_for_age(const struct read_budget *b) {
  double part = b->share > 0 ? b->needed / b->share : AGE_PART_MOST;

  return clamp(part, AGE_PART_LEAST, AGE_PART_MOST);
}

static uint64_t cheap_ns(int64_t income_ns) {
  return RULE(cheap_readings) ? amount_from((double)income_ns * CHEAP_PART) : 0;
}

/* At 10 s a percent reads thousands of small processes. In shorter intervals
 * the same part would make few values exact, and cost as much: nothing is to
 * stay wrong for much longer than a span. */
static double cheap_intervals(const struct read_budget *b,
                              uint64_t interval_ns) {
  return interval_ns < b->span_ns / CHEAP_INTERVALS_MOST
             ? (double)b->span_ns / (double)interval_ns
             : 0;
}

struct read_time read_budget_begin(struct read_budget *b, uint64_t now_ns,
                                   uint64_t interval_ns, double needed) {
  uint64_t passed_ns = elapsed_ns(b, now_ns, interval_ns);
  double spread = fmin(SPREAD_PART * (double)passed_ns / (double)b->span_ns, 1);
  int64_t income_ns = (int64_t)(b->share * (double)passed_ns);
  int64_t capacity_ns = (int64_t)(b->share * (double)span_ns(b, interval_ns));
  int64_t of_saved_ns = (int64_t)((double)positive(b->saved_ns) * spread);
  bool is_paying = b->saved_ns < 0;
  uint64_t spendable_ns;

  note_needed(b, now_ns, needed);
  b->begun_ns = now_ns;
  b->saved_ns = least(b->saved_ns + income_ns, capacity_ns);
  b->kept_ns = (int64_t)positive(capacity_ns - income_ns) / 2;
  spendable_ns = positive(least(income_ns + of_saved_ns, b->saved_ns));
  return (struct read_time){.earned_ns =
                                is_paying ? (uint64_t)income_ns : spendable_ns,
                            .spend_ns = spendable_ns,
                            .reach_ns = positive(b->saved_ns),
                            .capacity_ns = positive(capacity_ns),
                            .kept_ns = (uint64_t)b->kept_ns,
                            .cheap_ns = cheap_ns(income_ns),
                            .cheap_intervals = cheap_intervals(b, interval_ns),
                            .age_part = part_for_age(b)};
}

bool read_budget_is_spent(const struct read_budget *b, bool comes_last) {
  return b->saved_ns < (comes_last ? b->kept_ns : 0);
}

void read_budget_charge(struct read_budget *b, uint64_t cost_ns) {
  b->saved_ns -= (int64_t)cost_ns;
}

/* Rounds up to two digits, and ignores errors of the last bits of a double. */
static double round_up(double x) {
  double unit = pow(10, floor(log10(x)) - 1);

  return ceil(x / unit - 1e-6) * unit;
}

double read_budget_wanted_percent(const struct read_budget *b) {
  bool is_scarce =
      b->scarce_ns && b->begun_ns - b->scarce_ns >= SCARCE_AFTER_NS;

  return is_scarce ? round_up(100 * b->needed * MARGIN) : 0;
}

/* --- candidates --- */

static void swap(struct candidate *a, struct candidate *b) {
  struct candidate c = *a;

  *a = *b;
  *b = c;
}

/* Moves the candidates for which `is` is true to the front; their number. */
static size_t gather(struct candidate *c, size_t n,
                     bool (*is)(const struct candidate *)) {
  size_t gathered = 0;

  for (size_t i = 0; i < n; i++)
    if (is(&c[i]))
      swap(&c[gathered++], &c[i]);
  return gathered;
}

static bool is_must(const struct candidate *c) { return c->is_must; }

static bool is_first(const struct candidate *c) { return !c->is_last; }

static bool is_due(const struct candidate *c) { return c->is_due; }

static bool is_wanted_by(const struct group_track *g,
                         const struct candidate *c) {
  return !c->is_slight && doubt_of_sum(&g->error) > g->tolerated_bytes &&
         (!c->is_sample || g->sampling_ns > 0);
}

/* True of candidates that need not be read but should. */
static bool is_wanted(const struct candidate *c) {
  for (size_t i = 0; i < c->n_groups; i++)
    if (is_wanted_by(c->groups[i]->track, c))
      return true;
  return c->is_due;
}

static void choose(struct candidate *c) {
  for (size_t i = 0; i < c->n_groups; i++)
    doubt_remove(&c->groups[i]->track->error, c->error);
}

static void charge_sample(const struct candidate *c) {
  for (size_t i = 0; c->is_sample && i < c->n_groups; i++)
    c->groups[i]->track->sampling_ns -= c->cost_ns;
}

/* --- orders --- */

/* The error that a reading removes for its time; without an error, the cheapest
 * is worth most. A sample removes little of its error, which is mostly noise:
 * its worth grows with age, so processes are sampled in turn. */
static double worth_of(const struct candidate *c) {
  double worth =
      (doubt_bytes(c->error) + 1) / (double)(c->cost_ns ? c->cost_ns : 1);

  return c->is_sample && RULE(samples_in_turn) ? worth * (1 + c->intervals)
                                               : worth;
}

static int compare_worth(const void *left, const void *right) {
  const struct candidate *a = left, *b = right;

  return (a->worth < b->worth) - (a->worth > b->worth);
}

static int compare_deadline(const void *left, const void *right) {
  const struct candidate *a = left, *b = right;

  if (a->deadline_ns != b->deadline_ns)
    return a->deadline_ns > b->deadline_ns ? 1 : -1;
  return compare_worth(a, b);
}

static void sort(struct candidate *c, size_t n,
                 int (*compare)(const void *, const void *)) {
  if (n > 1)
    qsort(c, n, sizeof(*c), compare);
}

/* --- choosing --- */

static size_t choose_musts(struct candidate *c, size_t n) {
  size_t musts = gather(c, n, is_must);

  for (size_t i = 0; i < musts; i++)
    choose(&c[i]);
  return musts;
}

struct spending {
  uint64_t spent_ns;
  uint64_t limit_ns; /* one reading may pass it */
};

/* The last reading may exceed the time of due readings. The excess comes from
 * the savings, if there are any, not from the time of the other readings. */
static size_t choose_due(struct candidate *c, size_t n,
                         const struct read_time *time, int64_t *credit_ns,
                         struct spending *ret) {
  size_t due = gather(c, n, is_due), chosen = 0;
  uint64_t spent_ns = 0, part_ns;

  sort(c, due, compare_deadline);
  *credit_ns += (int64_t)((double)time->earned_ns * time->age_part);
  if (*credit_ns > (int64_t)time->capacity_ns)
    *credit_ns = (int64_t)time->capacity_ns;
  part_ns = *credit_ns > 0 ? min((uint64_t)*credit_ns, time->spend_ns) : 0;
  while (chosen < due && spent_ns < part_ns) {
    spent_ns += c[chosen].cost_ns;
    choose(&c[chosen++]);
  }
  *credit_ns -= (int64_t)spent_ns;
  /* Credit is for due readings that had to wait, and now none waits. */
  if (chosen == due && *credit_ns > 0)
    *credit_ns = 0;
  *ret = (struct spending){.spent_ns = spent_ns, .limit_ns = time->spend_ns};
  if (spent_ns > part_ns)
    ret->limit_ns = min(time->spend_ns + (spent_ns - part_ns), time->reach_ns);
  return chosen;
}

/* A reading that does not fit is skipped, except the most worthy one: otherwise
 * it might never fit. */
static size_t choose_worthy(struct candidate *c, size_t n, uint64_t reach_ns,
                            struct spending *s) {
  /* Errors and allowances only shrink, so no other candidate gets wanted. */
  size_t wanted = gather(c, n, is_wanted), chosen = 0;

  sort(c, wanted, compare_worth);
  for (size_t i = 0; i < wanted && s->spent_ns < s->limit_ns; i++) {
    if (!is_wanted(&c[i]) ||
        (chosen > 0 && s->spent_ns + c[i].cost_ns > reach_ns))
      continue;
    s->spent_ns += c[i].cost_ns;
    choose(&c[i]);
    charge_sample(&c[i]);
    swap(&c[chosen++], &c[i]);
  }
  return chosen;
}

static int compare_age(const void *left, const void *right) {
  const struct candidate *a = left, *b = right;

  if (a->is_slight != b->is_slight)
    return a->is_slight ? 1 : -1;
  return (a->intervals < b->intervals) - (a->intervals > b->intervals);
}

/* Moves the walks to the front that may be made for their age. */
static size_t gather_cheap(struct candidate *c, size_t n,
                           const struct read_time *time) {
  size_t gathered = 0;

  for (size_t i = 0; i < n; i++)
    if (!c[i].is_sample && c[i].intervals >= time->cheap_intervals)
      swap(&c[gathered++], &c[i]);
  return gathered;
}

/* In long intervals a cheap reading takes at most this fraction of the time for
 * cheap ones. */
#define CHEAP_LEAST 10

/* If little time was spent (before_ns: by the tier before), also reads
 * processes whose error is tolerated. */
static size_t choose_cheap(struct candidate *c, size_t n,
                           const struct read_time *time, uint64_t before_ns,
                           uint64_t *spent_ns) {
  uint64_t limit_ns = min(minus(time->cheap_ns, before_ns), time->spend_ns);
  uint64_t dear_ns =
      time->cheap_intervals > 0 ? limit_ns : time->cheap_ns / CHEAP_LEAST;
  size_t walks, chosen = 0;

  if (*spent_ns >= limit_ns)
    return 0;
  walks = gather_cheap(c, n, time);
  sort(c, walks, compare_age);
  for (size_t i = 0; i < walks; i++) {
    if (c[i].cost_ns > dear_ns || *spent_ns + c[i].cost_ns > limit_ns)
      continue;
    *spent_ns += c[i].cost_ns;
    choose(&c[i]);
    swap(&c[chosen++], &c[i]);
  }
  return chosen;
}

/* spent_ns: by the tier before; adds what is spent. */
static size_t choose_tier(struct candidate *c, size_t n,
                          const struct read_time *time, int64_t *credit_ns,
                          uint64_t *spent_ns) {
  struct spending s;
  size_t chosen = choose_due(c, n, time, credit_ns, &s);

  chosen += choose_worthy(c + chosen, n - chosen, time->reach_ns, &s);
  chosen += choose_cheap(c + chosen, n - chosen, time, *spent_ns, &s.spent_ns);
  *spent_ns += s.spent_ns;
  return chosen;
}

static struct read_time time_left(const struct read_time *time,
                                  uint64_t spent_ns) {
  struct read_time left = *time;

  left.earned_ns = minus(time->earned_ns, spent_ns);
  left.reach_ns = minus(time->reach_ns, spent_ns + time->kept_ns);
  left.spend_ns = min(minus(time->spend_ns, spent_ns), left.reach_ns);
  return left;
}

struct schedule schedule_choose(struct candidate *c, size_t n,
                                const struct read_time *time,
                                int64_t *credit_ns) {
  size_t musts = choose_musts(c, n), first, chosen_last;
  struct schedule s = {.chosen = musts};
  struct candidate *last;
  struct read_time left;
  int64_t no_credit_ns = 0;
  uint64_t spent_ns = 0;

  for (size_t i = musts; i < n; i++)
    c[i].worth = worth_of(&c[i]);
  first = gather(c + musts, n - musts, is_first);
  last = c + musts + first;
  s.chosen += choose_tier(c + musts, first, time, credit_ns, &spent_ns);
  left = time_left(time, spent_ns);
  chosen_last =
      choose_tier(last, n - musts - first, &left, &no_credit_ns, &spent_ns);
  for (size_t i = 0; i < chosen_last; i++)
    swap(&c[s.chosen++], &last[i]);
  s.deferred = gather(c + s.chosen, n - s.chosen, is_wanted);
  return s;
}
