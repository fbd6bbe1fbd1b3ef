/* SPDX-License-Identifier: MIT */
/*
 * The rollup that a process would show now, made from its baseline and from
 * what has changed since. The track has both.
 *
 * Anonymous memory that comes or goes is nearly always private, and statm
 * counts it exactly: so private growth and shrinkage are followed without
 * error. statm cannot say with whom memory is shared. The bounds say how much
 * can be wrong for that.
 */
#ifndef SMAPS_ESTIMATE_H
#define SMAPS_ESTIMATE_H

#include "estimate/track.h"

/*
 * Exact where only private memory has come or gone. uss <= Pss <= Rss and the
 * sums of parts hold as the kernel has them.
 */
void estimate_rollup(const struct cycle *cycle, const struct track *t,
                     struct rollup *ret);

/* Finds how wrong each cause can make the estimate, in bytes: a bound where
 * there is one. audit.h knows what part of it is to be expected. */
void bounds_of(const struct cycle *cycle, const struct track *t,
               struct bounds *ret);

/* Restores these relations, by lessening what is too large. */
void estimate_settle(struct rollup *u);

#endif
