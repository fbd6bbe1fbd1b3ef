/*
 * The groups and claims of a single process: applies the rules, in order, to
 * its attributes and to the claims that it inherits from its parent.
 */
#ifndef SMAPS_MEMBERSHIP_H
#define SMAPS_MEMBERSHIP_H

#include "match/matcher.h"

/* Adds the groups with fixed names. 0 or -ENOMEM. */
int membership_add_fixed_groups(struct matcher *m);

/*
 * Matches the process anew. parent is NULL for an orphan, which keeps what it
 * inherited before. Clears is_match_due and sets has_changed_claims. Without
 * memory, the process becomes PROCESS_UNKNOWN and is still due.
 */
void membership_update(struct matcher *m, struct process *p,
                       const struct process *parent);

/* True if MaxGroups refused a name that may be the name of a group made since
 * the last pass. */
bool membership_may_be_made(const struct matcher *m, const struct process *p);

/* Releases all groups and claims of the process, and its control group. */
void membership_release(struct matcher *m, struct process *p);

#endif
