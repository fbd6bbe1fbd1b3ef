/*
 * How far the Pss of an estimate can be off, in bytes, by cause. Some of it is
 * a bound that nearly never is reached; there readings show what part of it is
 * usual (error_ratio.h).
 */
#ifndef SMAPS_ESTIMATE_ERROR_H
#define SMAPS_ESTIMATE_ERROR_H

#include "estimate/estimate.h"
#include "report/doubt.h"

/* The part of each bound that is to be expected, 0 to 1. */
struct error_parts {
  double shared; /* of files and shmem */
  /* The part of that error which all members of the set have in common. */
  double shared_in_common;
  double relatives; /* of anonymous memory whose sharers came or went */
  double again;     /* of what relatives got back from swap, too */
  double cow;       /* of copies that faults have made */
  double drift;     /* of what changes without a sign */
  double newborn_anon, newborn_files; /* of what was derived and not read */
  double newborn_in_common;           /* the part that all of them share */
};

/* Files and shmem that came or went, and those that others mapped or unmapped.
 */
uint64_t estimate_shared_bound(const struct baseline *b,
                               const struct change *c);

/* Relatives that come share all anonymous memory at first, and statm is silent
 * about it; with relatives that go it is the other way round. */
uint64_t estimate_relatives_bound(const struct baseline *b,
                                  const struct change *c);

/* Memory that relatives got back from swap can be the same, or their own. */
uint64_t estimate_again_bound(const struct baseline *b, const struct change *c);

/* The memory that can change without a sign: others share it, or may come to.
 */
uint64_t estimate_unseen_bytes(const struct baseline *b);

/* All causes together. */
struct doubt estimate_error(const struct baseline *b, const struct change *c,
                            const struct error_parts *parts);

#endif
