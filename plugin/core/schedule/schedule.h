/*
 * Chooses the readings of a cycle when there is no time for all. At least half
 * of the time is for processes that are due, the earliest deadline first, so no
 * process waits for ever. The rest is for readings that remove most error for
 * their time. Processes that are in Other alone come last, in the same way,
 * until their deadline: they get the time that the others leave, less kept_ns,
 * which is saved for the others.
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
  double intervals;     /* if is_sample: since the last sample */
  uint64_t deadline_ns; /* if is_due: when it should be read by */
  double worth;         /* filled in by schedule_choose() */
  uint32_t cost_ns;     /* predicted */
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
 *      is spent.
 *   3. Due processes, and processes of groups with more error than they
 *      tolerate, if they fit: the most error for the time first.
 *   4. While less than cheap_ns is spent: walks whose error is tolerated, the
 *      oldest first, then walks whose error is slight; none longer than a tenth
 *      of cheap_ns.
 * 2 to 4 are for the others first, and then for Other.
 *
 * A group gets samples for its error only while it has time for them. A sample
 * may take more than is left; the next cycles pay for that. Samples of due
 * processes are not counted.
 *
 * One reading may take more than the rest, and even more than the whole: the
 * due one with the earliest deadline, or the one that removes most error for
 * its time. The budget pays for it later.
 *
 * *credit_ns is the time that due processes are still owed; the caller keeps it
 * (0 before the first cycle). It is below 0 if a due process took more than
 * their part, and above 0 if a reading for an error did. So over time their
 * part is exact, and each is read by its deadline (or later by the time that
 * the budget needs for the longest reading), if age_part is enough for all of
 * them: the sum of cost / MaxAge.
 */
struct schedule schedule_choose(struct candidate *c, size_t n,
                                const struct read_time *time,
                                int64_t *credit_ns);

#endif
