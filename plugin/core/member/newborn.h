/* SPDX-License-Identifier: MIT */
/*
 * Processes that have just forked off. Parent and child share all anonymous
 * memory until one of them writes to it; statm of both does not show that, and
 * in the parent's last rollup the memory is private. So both are estimated
 * anew, from the parent's estimate: what was the parent's alone is now divided,
 * and the child has what its faults since its birth may have made its own. No
 * page is counted twice, whether both, one or none of them is read.
 *
 * Once they are read, the first readings of children show how far off that is
 * (struct newborn_lessons in track.h).
 */
#ifndef SMAPS_NEWBORN_H
#define SMAPS_NEWBORN_H

#include "estimate/estimator.h"

struct process_table;

/* Gives the newborns that have a parent with a baseline one as well, and
 * corrects the parent's. Once in a cycle, after all are observed and before
 * they are advanced (estimator.h). */
void newborn_estimate_all(const struct cycle *cycle,
                          const struct process_table *t);

#endif
