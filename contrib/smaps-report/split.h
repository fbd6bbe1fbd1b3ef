/* SPDX-License-Identifier: MIT */
/*
 * The parts of a PSS: private or shared, and anonymous or of files.
 *
 * The kernel shows how much memory is private and how much is anonymous, but
 * not how much is both. For that there are bounds, mostly close together.
 */
#ifndef REPORT_SPLIT_H
#define REPORT_SPLIT_H

#include "document.h"

/* In bytes. If one amount is MISSING, all are; but a sum of mappings has the
 * known parts of anon, file and shmem. */
struct split {
  uint64_t anon, file, shmem; /* add up to the PSS where all is known */
  uint64_t private_anon;      /* of anon; the rest of anon is shared */
  uint64_t error;             /* of private_anon at most */
};

/* Splits the amounts of a group or process (smaps_rollup). */
struct split split_amounts(const struct amounts *a);

/*
 * Splits the amounts of mappings of one name (smaps). Shared memory is known by
 * the name alone. Without "anonymous", which older documents lack, a mapping is
 * all anonymous or not at all, by its name.
 */
struct split split_mapping(const struct mapping *m);

/* Splits the amounts of a process, or else adds up those of its mappings: smaps
 * lacks what a rollup has of anonymous memory. */
struct split split_process(const struct process *p);

#endif
