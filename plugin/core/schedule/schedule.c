/* SPDX-License-Identifier: MIT */
#include "schedule/schedule.h"

#include <math.h>
#include <stdlib.h>

#include "base/ablate.h"
#include "base/arith.h"
#include "match/group.h"
#include "member/member.h"

/* A cycle may spend all that was saved if a third of the span has passed since
 * the last one, and in proportion if less has. */
#define SPREAD_PART 3
/* Short-lived processes make the budget scarce for a moment, which is not
 * reported. */
#define SCARCE_AFTER_NS (UINT64_C(60) * 1000000000)
#define MARGIN 1.25
/* Due readings get the part that they need, within these limits: readings for
 * an error must not wait until they are due as well. Due readings may be late
 * by MaxAge, so even half is enough in the long run. */
#define DUE_PART_LEAST 0.5
#define DUE_PART_MOST 0.75
/* The part of the income that renews the oldest readings, before any is made
 * for an error. If due processes need most of the income, they are the oldest,
 * and nothing is set apart. */
#define CHEAP_PART 0.05
#define CHEAP_INTERVALS_MOST 6 /* in a span */

/* --- the budget --- */

void read_budget_init(struct read_budget *b, double percent, uint64_t span_ns) {
  *b = (struct read_budget){.share = percent / 100, .span_ns = span_ns};
  b->saved_ns = (int64_t)(b->share * (double)span_ns);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static uint64_t positive(int64_t x) { return x > 0 ? (uint64_t)x : 0; }

static void note_needed(struct read_budget *b, uint64_t now_ns, double needed) {
  b->needed = needed;
  if (needed <= b->share)
    b->scarce_ns = 0;
  else if (!b->scarce_ns)
    b->scarce_ns = now_ns;
}

/* How old the readings must be that are renewed whatever their error. In an
 * interval of 10 s that time is enough for dozens of small processes, and any
 * age will do. In a short interval it is enough for a few, and renewing young
 * readings would make hardly a value more exact: only those older than a span
 * are renewed. */
static double cheap_intervals(const struct read_budget *b,
                              uint64_t interval_ns) {
  return interval_ns < b->span_ns / CHEAP_INTERVALS_MOST
             ? (double)b->span_ns / (double)interval_ns
             : 0;
}

void read_budget_begin(struct read_budget *b, uint64_t now_ns,
                       uint64_t interval_ns, double needed) {
  uint64_t span_ns = max(b->span_ns, interval_ns);
  /* More than the span would overflow anyway. */
  uint64_t passed_ns =
      min(b->begun_ns ? now_ns - b->begun_ns : interval_ns, span_ns);
  double spread = fmin(SPREAD_PART * (double)passed_ns / (double)b->span_ns, 1);
  int64_t income_ns = (int64_t)(b->share * (double)passed_ns);
  int64_t of_saved_ns = (int64_t)((double)positive(b->saved_ns) * spread);
  bool is_paying = b->saved_ns < 0;

  note_needed(b, now_ns, needed);
  b->begun_ns = now_ns;
  b->capacity_ns = (int64_t)(b->share * (double)span_ns);
  b->saved_ns = least(b->saved_ns + income_ns, b->capacity_ns);
  b->kept_ns = (int64_t)positive(b->capacity_ns - income_ns) / 2;
  b->spend_ns = positive(least(income_ns + of_saved_ns, b->saved_ns));
  b->earned_ns = is_paying ? (uint64_t)income_ns : b->spend_ns;
  b->due_part = clamp(needed / b->share, DUE_PART_LEAST, DUE_PART_MOST);
  b->cheap_ns = RULE(cheap_readings) && b->due_part < DUE_PART_MOST
                    ? amount_from((double)income_ns * CHEAP_PART)
                    : 0;
  b->cheap_intervals = cheap_intervals(b, interval_ns);
}

bool read_budget_is_spent(const struct read_budget *b, bool comes_last) {
  return b->saved_ns < (comes_last ? b->kept_ns : 0);
}

void read_budget_charge(struct read_budget *b, uint64_t time_ns) {
  b->saved_ns -= (int64_t)time_ns;
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

/* The candidates of a cycle, the chosen ones first. */
struct plan {
  struct candidate *c;
  size_t n, chosen;
  struct read_budget *budget;
  uint64_t spent_ns;
  uint64_t limit_ns;   /* one reading may pass it, up to reach_ns */
  uint64_t reach_ns;   /* no reading for an error may pass it but the first */
  uint64_t cheap_ns;   /* is left for cheap readings, within the limit */
  bool is_last_served; /* those that come last, and not the others */
};

static void swap(struct candidate *a, struct candidate *b) {
  struct candidate c = *a;

  *a = *b;
  *b = c;
}

/* Moves the candidates for which `is` is true next to the chosen ones; returns
 * the end of them. */
static size_t gather(struct plan *p, bool (*is)(const struct plan *,
                                                const struct candidate *)) {
  size_t end = p->chosen;

  for (size_t i = p->chosen; i < p->n; i++)
    if (is(p, &p->c[i]))
      swap(&p->c[end++], &p->c[i]);
  return end;
}

static void choose(struct plan *p, size_t i) {
  const struct candidate *c = &p->c[i];

  for (size_t k = 0; k < c->n_groups; k++)
    error_remove(&c->groups[k]->track->error, c->error);
  p->spent_ns += c->time_ns;
  swap(&p->c[p->chosen++], &p->c[i]);
}

static bool is_due(const struct plan *p, const struct candidate *c) {
  return c->is_due && c->is_last == p->is_last_served;
}

static bool is_wanted_by(const struct group_track *g,
                         const struct candidate *c) {
  return !c->is_slight && error_of_sum(&g->error) > g->tolerated_bytes &&
         (!c->is_sample || g->sampling_ns > 0);
}

/* True of candidates that need not be read but should. */
static bool is_wanted(const struct plan *p, const struct candidate *c) {
  (void)p;
  for (size_t i = 0; i < c->n_groups; i++)
    if (is_wanted_by(c->groups[i]->track, c))
      return true;
  return c->is_due;
}

static bool is_worthy(const struct plan *p, const struct candidate *c) {
  return c->is_last == p->is_last_served && is_wanted(p, c);
}

/* True of walks that may be made for their age. */
static bool is_old(const struct plan *p, const struct candidate *c) {
  return c->is_last == p->is_last_served && !c->is_sample &&
         c->intervals >= p->budget->cheap_intervals;
}

/* --- orders --- */

/* The error that a reading removes for its time; without an error, the cheapest
 * is worth most. A sample removes little of its error, which is mostly noise:
 * its worth grows with age, so processes are sampled in turn. */
static double worth_of(const struct candidate *c) {
  double worth =
      (error_bytes(c->error) + 1) / (double)(c->time_ns ? c->time_ns : 1);

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

static int compare_age(const void *left, const void *right) {
  const struct candidate *a = left, *b = right;

  if (a->is_slight != b->is_slight)
    return a->is_slight ? 1 : -1;
  return (a->intervals < b->intervals) - (a->intervals > b->intervals);
}

static void sort(struct plan *p, size_t end,
                 int (*compare)(const void *, const void *)) {
  if (end > p->chosen)
    qsort(p->c + p->chosen, end - p->chosen, sizeof(*p->c), compare);
}

/* --- choosing --- */

static void choose_musts(struct plan *p) {
  for (size_t i = 0; i < p->n; i++)
    if (p->c[i].is_must)
      choose(p, i);
  p->spent_ns = 0;
}

/* The last reading may exceed the time of due readings. The excess comes from
 * the savings, if there are any, not from the time of the other readings. */
static void choose_due(struct plan *p) {
  struct read_budget *b = p->budget;
  size_t end = gather(p, is_due);
  uint64_t part_ns;

  sort(p, end, compare_deadline);
  b->credit_ns += (int64_t)((double)b->earned_ns * b->due_part);
  b->credit_ns = least(b->credit_ns, b->capacity_ns);
  part_ns = min(positive(b->credit_ns), b->spend_ns);
  while (p->chosen < end && p->spent_ns < part_ns)
    choose(p, p->chosen);
  b->credit_ns -= (int64_t)p->spent_ns;
  /* Credit is for due readings that had to wait, and now none waits. */
  if (p->chosen == end)
    b->credit_ns = least(b->credit_ns, 0);
  if (p->spent_ns > part_ns)
    p->limit_ns = min(p->limit_ns + (p->spent_ns - part_ns), p->reach_ns);
}

static void charge_sample(const struct candidate *c) {
  for (size_t i = 0; c->is_sample && i < c->n_groups; i++)
    c->groups[i]->track->sampling_ns -= c->time_ns;
}

/* A reading that does not fit is skipped, except the most worthy one: otherwise
 * it might never fit. */
static void choose_worthy(struct plan *p) {
  /* Errors and allowances only shrink, so no other candidate gets wanted. */
  size_t end = gather(p, is_worthy), first = p->chosen;

  sort(p, end, compare_worth);
  for (size_t i = first; i < end && p->spent_ns < p->limit_ns; i++) {
    if (!is_wanted(p, &p->c[i]) ||
        (p->chosen > first && p->spent_ns + p->c[i].time_ns > p->reach_ns))
      continue;
    charge_sample(&p->c[i]);
    choose(p, i);
  }
}

/* Renews the oldest readings, even of processes whose error is tolerated. */
static void choose_cheap(struct plan *p) {
  uint64_t before_ns = p->spent_ns;
  uint64_t limit_ns = min(before_ns + p->cheap_ns, p->limit_ns);
  size_t end;

  if (before_ns >= limit_ns)
    return;
  end = gather(p, is_old);
  sort(p, end, compare_age);
  for (size_t i = p->chosen; i < end; i++)
    if (p->spent_ns + p->c[i].time_ns <= limit_ns)
      choose(p, i);
  p->cheap_ns -= p->spent_ns - before_ns;
}

struct schedule schedule_choose(struct candidate *c, size_t n,
                                struct read_budget *b) {
  struct plan p = {.c = c,
                   .n = n,
                   .budget = b,
                   .limit_ns = b->spend_ns,
                   .cheap_ns = b->cheap_ns,
                   .reach_ns = positive(b->saved_ns)};

  for (size_t i = 0; i < n; i++)
    c[i].worth = worth_of(&c[i]);
  choose_musts(&p);
  choose_due(&p);
  choose_cheap(&p);
  choose_worthy(&p);
  p.is_last_served = true;
  p.reach_ns = minus(p.reach_ns, (uint64_t)b->kept_ns);
  p.limit_ns = min(b->spend_ns, p.reach_ns);
  choose_cheap(&p);
  choose_worthy(&p);
  return (struct schedule){.chosen = p.chosen,
                           .deferred = gather(&p, is_wanted) - p.chosen};
}
