/*
 * Chooses the readings of an interval when there is no time for all. Half of
 * the time goes to the processes that have waited longest, so that none waits
 * for ever; the rest to those whose reading removes most error for the time it
 * takes.
 */
#ifndef SMAPS_SCHEDULE_H
#define SMAPS_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct group; /* track.h has its error, and the error that it tolerates */

struct candidate {
  void *process;
  struct group *const *groups; /* one at least; each of them counts */
  size_t n_groups;
  uint64_t error_bytes;
  uint64_t overdue_ns; /* how long it has been due */
  double worth;        /* filled in by schedule_choose() */
  uint32_t cost_ns;    /* predicted */
  bool is_due;         /* never read, or its reading is older than MaxAge */
  bool is_must;        /* Refresh "always": whatever the budget */
};

struct schedule {
  size_t chosen;   /* the first candidates of the array */
  size_t deferred; /* the next; the rest need not be read */
};

/*
 * Orders the candidates. First come those that must be read, which are not
 * charged to the budget. Then come those that are due, the longest overdue
 * first, until half of the budget is spent. Then come, as far as they fit in
 * the rest, those that are due and those of which a group has more error than
 * it tolerates, the most error for the time first.
 *
 * An overdue candidate is read however long it takes. The time beyond the half
 * is owed by the intervals to come: *owed_ns, which the caller keeps (0 before
 * the first) and which never exceeds the cost of one reading. So a candidate
 * that is due waits no longer than all that are due with it take in halves of
 * the budget, and in each interval the other half is left for error.
 */
struct schedule schedule_choose(struct candidate *c, size_t n,
                                uint64_t budget_ns, uint64_t *owed_ns);

#endif
