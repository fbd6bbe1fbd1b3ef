/* SPDX-License-Identifier: MIT */
/*
 * Chooses the readings of a cycle when there is no time for all. At least half
 * of the time is for processes that are due, the earliest deadline first, so no
 * process waits for ever. The rest is for readings that remove most error for
 * their time. Processes that are in Other alone come last until their deadline:
 * they get the time that the others leave, less kept_ns, which is saved for the
 * others.
 *
 * Why a process was not read, enum outcome of member/member.h says.
 */
#ifndef SMAPS_SCHEDULE_H
#define SMAPS_SCHEDULE_H

#include "report/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
struct read_budget {
  /* Set once. */
  double share;     /* of one CPU */
  uint64_t span_ns; /* what the share makes in it can be saved */

  /* Kept from cycle to cycle. */
  uint64_t begun_ns; /* the beginning of the last cycle, or 0 */
  int64_t saved_ns;  /* below 0: owed */
  /* The time that due processes are owed, or have overdrawn (below 0). */
  int64_t credit_ns;
  double needed;      /* a share for all to be read within MaxAge */
  uint64_t scarce_ns; /* since when that is more than there is, or 0 */

  /* The CPU time of this cycle, set by read_budget_begin(). */
  uint64_t earned_ns;  /* its part of the budget, even if it pays a debt */
  uint64_t spend_ns;   /* readings may take it; one may pass it, to saved_ns */
  double due_part;     /* of earned_ns, for processes that are due */
  int64_t capacity_ns; /* the most that is ever saved */
  int64_t kept_ns;     /* of saved_ns, not for processes that come last */
  /* The part of spend_ns that renews readings whatever their error, the oldest
   * first, if they are so many intervals old. */
  uint64_t cheap_ns;
  double cheap_intervals;
};

void read_budget_init(struct read_budget *b, double percent, uint64_t span_ns);

/*
 * Begins a cycle, with the time of its beginning by a monotonic clock and the
 * interval, which stands for the time before the first cycle. needed: the share
 * of a CPU that it takes to read each process once in its MaxAge.
 */
void read_budget_begin(struct read_budget *b, uint64_t now_ns,
                       uint64_t interval_ns, double needed);

/* True if more was spent than was saved; for processes that come last, without
 * the time that is kept for the others. First readings can cost more than was
 * predicted. */
bool read_budget_is_spent(const struct read_budget *b, bool comes_last);

/* Takes what a reading has cost. */
void read_budget_charge(struct read_budget *b, uint64_t time_ns);

/*
 * The percentage that would suffice, rounded up and with a margin for readings
 * that become dearer; 0 while the budget suffices to read each process once in
 * its MaxAge, or has not been too small for a minute yet. It can be above 100.
 */
double read_budget_wanted_percent(const struct read_budget *b);

/* --- choosing --- */

struct process; /* only its address counts */
/* group_track in member.h has its error, the error that it tolerates, and the
 * time that its samples may take. */
struct group;

struct candidate {
  struct process *process;
  struct group *const *groups; /* one at least; each of them counts */
  size_t n_groups;
  struct error error;
  double intervals;     /* since its baseline was read; 0 without one */
  uint64_t deadline_ns; /* if is_due: when it should be read by */
  double worth;         /* filled in by schedule_choose() */
  uint32_t time_ns;     /* predicted */
  bool is_due;          /* never read, or its reading is older than MaxAge */
  bool is_must;         /* Refresh "always": whatever the budget */
  bool is_slight;       /* its error alone is not worth a reading */
  bool is_sample;       /* its pages are sampled in place of a walk */
  bool is_last;         /* in Other alone, before its deadline */
};

struct schedule {
  size_t chosen;   /* the first candidates of the array */
  size_t deferred; /* the next; the rest need not be read */
};

/*
 * Orders the candidates:
 *   1. Refresh "always", which is not charged to the budget.
 *   2. Due processes, the earliest deadline first, until their part of the time
 *      is spent; none that come last.
 *   3. For cheap_ns: walks whatever their error, the oldest first, but those
 *      whose error is slight last, if they fit.
 *   4. Due processes, and processes of groups with more error than they
 *      tolerate, if they fit: the most error for the time first.
 * 3 and 4 are for the others first, and then for Other.
 *
 * A group gets samples for its error only while it has time for them. A sample
 * may take more than is left; the next cycles pay for that. Samples of due
 * processes are not counted.
 *
 * One reading may take more than the rest, and even more than the whole: the
 * due one with the earliest deadline, or the one that removes most error for
 * its time. The budget pays for it later.
 *
 * If readings for an error take time of the due processes, credit_ns rises, and
 * if due processes take more than their part, it falls. So over time they get
 * their part exactly. If due_part is enough for all of them, which is the sum
 * of read time / MaxAge, each is read by its deadline, or later by the time
 * that the budget needs for the longest reading.
 *
 * Why a process was not read in a cycle is its enum outcome (member.h).
 */
struct schedule schedule_choose(struct candidate *c, size_t n,
                                struct read_budget *b);

#endif
