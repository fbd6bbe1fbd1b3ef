/*
 * Groups in which no process was found, and which may not be empty all the
 * same: their values are unknown, and not 0.
 */
#ifndef SMAPS_UNSEEN_H
#define SMAPS_UNSEEN_H

#include "match/match.h"

/*
 * Sets usage.is_unseen of each group without members that a process may be in:
 * one that is hidden or unidentified, one whose attributes are refused, or that
 * of a PID file that cannot be read; unless what is known of it rules that out.
 * Counts the unidentified ones that a group with members may have besides.
 *
 * Misses those that a rule may put into a group that another rule has made,
 * unless the name that it would give, or the parent, is known.
 */
void unseen_mark(const struct matcher *m, struct procfs *procfs,
                 const struct process_table *t, bool has_hidden,
                 uint64_t page_size);

#endif
