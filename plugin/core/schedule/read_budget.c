#include "schedule/read_budget.h"

#include <math.h>
#include <stdbool.h>

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
