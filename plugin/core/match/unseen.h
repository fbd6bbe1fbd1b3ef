/* SPDX-License-Identifier: MIT */
/*
 * Groups in which no process was found, but which may have members all the
 * same: their values are unknown, and not 0.
 */
#ifndef SMAPS_UNSEEN_H
#define SMAPS_UNSEEN_H

#include "match/match_one.h"

/*
 * Sets usage.is_unseen of each group without members that may have one: a
 * process that is hidden or unidentified, whose attributes are refused, or that
 * an unreadable PID file names. It is not set if the known attributes of the
 * process rule that out. In groups with members it counts the unidentified
 * processes that may be further members.
 *
 * Misses a process that a rule may put into a group that another rule has made,
 * unless the name of the group, or the parent of the process, is known.
 */
void unseen_mark(const struct match_rules *m, struct procfs *procfs,
                 const struct process_table *t, bool has_hidden,
                 uint64_t page_size);

#endif
