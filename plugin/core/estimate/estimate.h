/*
 * The rollup that a process would show now, made from its baseline and from
 * what has changed since.
 *
 * Anonymous memory that comes or goes is nearly always private, and statm
 * counts it exactly: so private growth and shrinkage are followed without
 * error. statm cannot say with whom memory is shared. The exposure bounds what
 * can be wrong for that.
 */
#ifndef SMAPS_ESTIMATE_H
#define SMAPS_ESTIMATE_H

#include "estimate/audit.h"
#include "estimate/baseline.h"

/* Changes of a process and its neighbours since its baseline. */
struct change {
  uint64_t page_size;
  double seconds;
  /* Bytes that came, or (negative) went. */
  int64_t anon, shared, swap;
  uint64_t returned; /* the part of anon that came back from swap */
  uint64_t returned_to_relatives;
  bool is_swap_emptied;
  uint64_t broken;              /* out of copy on write, by its own faults */
  uint64_t broken_by_relatives; /* what that adds to its share of the rest */
  uint32_t relatives;
  double relatives_moved; /* the part of them that came or went, at most */
  /* The cost of a page of shmem or of files by its cost then, and the part
   * of these pages that moved meanwhile. */
  bool is_of_shmem; /* and not of files */
  double shared_cost, shared_moved;
  double moved_pages; /* by all processes of the set */
  bool is_ksm_merged, is_ksm_split;
};

/*
 * Exact where only private memory has come or gone. uss <= Pss <= Rss and the
 * sums of parts hold as the kernel has them.
 */
void estimate_rollup(const struct baseline *b, const struct change *c,
                     struct rollup *ret);

/* Finds how wrong each cause can make the estimate, in bytes: a bound where
 * there is one. audit.h knows what part of it is to be expected. */
void exposure_of(const struct baseline *b, const struct change *c,
                 struct exposure *ret);

/* Restores these relations, by lessening what is too large. */
void estimate_settle(struct rollup *u);

#endif
