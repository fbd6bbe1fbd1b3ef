/*
 * ReadBudget: how much processor time readings may take, as a share of one CPU.
 * Unused time is saved for a later burst: at most the share of one span. So the
 * share means the same at any interval.
 *
 * The budget is full at the start. A cycle gets the income since the last one,
 * and a part of the savings, which grows with the time between cycles. So at
 * short intervals the first readings are spread over a span, and readings that
 * remove most error for their time come first.
 *
 * The budget is charged with the real cost of readings. A reading may cost more
 * than there is; then the next waits until that is paid.
 */
#ifndef SMAPS_READ_BUDGET_H
#define SMAPS_READ_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct read_budget {
  double share;       /* of one CPU */
  uint64_t span_ns;   /* what the share makes in it can be saved */
  uint64_t begun_ns;  /* the last cycle, or 0 */
  int64_t saved_ns;   /* below 0: owed */
  int64_t kept_ns;    /* of saved_ns, not for processes that come last */
  double needed;      /* a share for all to be read within MaxAge */
  uint64_t scarce_ns; /* since when that is more than there is, or 0 */
};

/* The time on the CPU that a cycle may spend. */
struct read_time {
  uint64_t earned_ns;     /* its part of the budget, even if it pays a debt */
  uint64_t spend_ns;      /* for readings of this cycle; one may pass it ... */
  uint64_t reach_ns;      /* ... up to here, which is all that is saved */
  uint64_t capacity_ns;   /* the most that is ever saved */
  uint64_t kept_ns;       /* of reach_ns: not for processes that come last */
  uint64_t cheap_ns;      /* up to which any error is worth a reading ... */
  double cheap_intervals; /* ... if the last one is so many intervals old */
  double age_part;        /* of earned_ns, kept for processes that are due */
};

void read_budget_init(struct read_budget *b, double percent, uint64_t span_ns);

/*
 * Begins a cycle, with the time of its beginning by a monotonic clock and the
 * interval, which stands for the time before the first cycle. needed: the share
 * of a CPU that it takes to read each process once in its MaxAge.
 */
struct read_time read_budget_begin(struct read_budget *b, uint64_t now_ns,
                                   uint64_t interval_ns, double needed);

/* True if more was spent than was saved; for processes that come last, without
 * the time that is kept for the others. First readings can cost more than was
 * predicted. */
bool read_budget_is_spent(const struct read_budget *b, bool comes_last);

/* Takes what a reading has cost. */
void read_budget_charge(struct read_budget *b, uint64_t cost_ns);

/*
 * The percentage that would suffice, rounded up and with a margin for readings
 * that become dearer; 0 while the budget suffices to read each process once in
 * its MaxAge, or has not been too small for a minute yet. It can be above 100.
 */
double read_budget_wanted_percent(const struct read_budget *b);

#endif
