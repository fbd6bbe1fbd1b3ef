/*
 * Chooses the readings of a cycle when there is no time for all. Half of the
 * time or more is for the processes that are due, the earliest deadline first,
 * so that none waits for ever; the rest is for those whose reading removes most
 * error for the time it takes. Processes that are in Other alone come last, in
 * the same way, until their deadline has passed: what the others leave is for
 * them, without kept_ns, which is saved for the others.
 */
#ifndef SMAPS_SCHEDULE_H
#define SMAPS_SCHEDULE_H

#include "report/doubt.h"
#include <stdbool.h>
#include <stddef.h>

#include "schedule/read_budget.h"

struct group; /* track.h has its error, the error that it tolerates, and the
               * time that it may take for samples */

struct candidate {
  void *process;
  struct group *const *groups; /* one at least; each of them counts */
  size_t n_groups;
  struct doubt error;
  double intervals;     /* since the last sample of one that is sampled */
  uint64_t deadline_ns; /* of one that is due: when it should be read by */
  double worth;         /* filled in by schedule_choose() */
  uint32_t cost_ns;     /* predicted */
  bool is_due;          /* never read, or its reading is older than MaxAge */
  bool is_must;         /* Refresh "always": whatever the budget */
  bool is_slight;       /* its error alone is not worth a reading */
  bool is_sample;       /* its pages are sampled in place of a walk */
  bool is_last;         /* in Other alone, and its deadline is to come */
};

struct schedule {
  size_t chosen;   /* the first candidates of the array */
  size_t deferred; /* the next; the rest need not be read */
};

/*
 * Orders the candidates. First come those that must be read, which are not
 * charged to the budget. Then come those that are due, the earliest deadline
 * first, until their part of the time is spent. Then come those that are due
 * and those of which a group has more error than it tolerates, the most error
 * for the time first, as far as they fit into the rest. As long as less than
 * cheap_ns is spent, walks follow whose error is tolerated, the oldest first,
 * those whose error is slight behind the others, and those of Other behind all
 * of these; none that takes more than a tenth of it.
 *
 * A group wants samples for its error only as long as it has time for them. One
 * may take more than is left, which is owed in the next cycles. One that is due
 * does not count.
 *
 * One reading can take more than the rest, and even more than the whole: one
 * that is due when it has the earliest deadline, and any when it removes most
 * error for the time. The budget pays for it later.
 *
 * *credit_ns is the time that those that are due have not had yet; the caller
 * keeps it (0 before the first cycle). It is below 0 when one of them took more
 * than their part, and above 0 when a reading for error did. So over time their
 * part is exact, and each is read by its deadline (or as much later as the
 * longest reading takes of the budget) if age_part is at least what all of them
 * need, cost by MaxAge.
 */
struct schedule schedule_choose(struct candidate *c, size_t n,
                                const struct read_time *time,
                                int64_t *credit_ns);

#endif
