/*
 * Which readings to make in an interval, when there is no time for all: half of
 * the time goes to those that have waited longest, so that none waits for ever;
 * the rest to those that take away the most doubt for the time they cost.
 */
#ifndef SMAPS_PLAN_H
#define SMAPS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A group of processes, for the plan. */
struct plan_group {
  uint64_t doubt_bytes;     /* of all members; goes down as they are chosen */
  uint64_t tolerated_bytes; /* down to here nothing need be read */
};

struct group; /* see group.h; of it the plan knows its plan_group */

struct candidate {
  void *process;
  struct group *const *groups; /* one at least: it is held to each of them */
  size_t n_groups;
  uint64_t doubt_bytes;
  uint64_t overdue_ns; /* if it is due, for how long */
  double worth;        /* filled in by plan_choose() */
  uint32_t cost_ns;    /* predicted */
  bool is_due;         /* never read, or its reading is older than MaxAge */
  bool is_must;        /* Refresh "always": whatever the budget */
};

struct plan {
  size_t chosen;   /* the first ones of the array */
  size_t deferred; /* those behind them; the rest need not be read */
};

/*
 * Orders the candidates. What must be read comes first and is not charged to
 * the budget. Then come those that are due, longest overdue first, until half
 * of the budget is spent; and then, as far as they fit in what is left, those
 * that are due and those of which a group has more doubt than it tolerates,
 * most doubt for the time first.
 *
 * What is overdue is read however much it costs. What it takes beyond its half
 * is owed to the intervals to come: *owed_ns, 0 before the first, which is kept
 * from one to the next and is never more than the cost of one reading. So what
 * is due waits no longer than all that is due with it takes in halves of the
 * budget, and the other half of the budget is left to doubt, in each interval.
 */
struct plan plan_choose(struct candidate *c, size_t n, uint64_t budget_ns,
                        uint64_t *owed_ns);

#endif
