/* SPDX-License-Identifier: MIT */
/*
 * Estimates the memory of a process between two readings of its rollup. In each
 * cycle:
 *
 *   estimator_observe    of all          takes in their cheap files
 *   estimator_derive     of forks        starts from a relative (newborn.h)
 *   estimator_advance    of all          takes in what the others have done
 *   estimator_expect     of all          how far off each will be
 *   estimator_correct    of some         takes in a reading
 *   estimator_predict    of the others   the estimate that stands in for one
 *
 * and estimator_forget after an exec, an end or a failed reading. expect and
 * predict change nothing. All that depends on other processes does so through
 * two kinds of sets: the fork family, and the set that shares files and shmem
 * (track.h).
 *
 * Corrections are rollups, or samples of the pages of a process that is too
 * large for one (estimator_sample).
 */
#ifndef SMAPS_ESTIMATOR_H
#define SMAPS_ESTIMATOR_H

#include "estimate/estimate.h"
#include "sample/sampled.h"

/* The memory of a process that is not read. */
struct prediction {
  struct rollup rollup;
  struct audit_errors error; /* at most; its parts: before it was limited */
  uint64_t age_ns;           /* of the reading that it rests on */
};

/* Whether VmSwap is worth asking for before the process is observed: without a
 * baseline it is not. */
bool estimator_wants_swap(const struct cycle *cycle, const struct track *t,
                          const struct observation *o);

/*
 * Takes in what the cheap files say; o is NULL where they cannot be read now
 * and the process is alive. set: the one of its group, which outlives the
 * cycle. Another set than before makes the baseline void, for a process without
 * a family: among other neighbours a rollup would say something else.
 */
void estimator_observe(const struct cycle *cycle, struct track *t,
                       struct sharing *set, const struct observation *o);

/* Adds what other processes have done in this cycle to what has changed since
 * the baseline. Once in a cycle, after all are observed. */
void estimator_advance(struct track *t);

/* The error of Pss that is to be expected without a reading, for the choice of
 * what to read. */
struct error estimator_expect(const struct cycle *cycle, const struct track *t);

/* Takes a reading in: learns from it, and predicts from it from now on. after:
 * what the cheap files said after it, or before where they were not read. */
void estimator_correct(const struct cycle *cycle, struct track *t,
                       const struct rollup *rollup,
                       const struct observation *after);

/*
 * Takes in a sample; resident_pages and shared_pages: of statm right after it.
 * The estimate is corrected by it, and not replaced. t->now stays as it was
 * observed, but for swap: what comes after that is seen in the next cycle. The
 * track has a sample_error, owned by its sampling (sampling.h).
 */
void estimator_sample(const struct cycle *cycle, struct track *t,
                      struct sampled *s, uint32_t resident_pages,
                      uint32_t shared_pages);

/* How many bytes statm may be off; 0 on kernels where it is exact. */
uint64_t estimator_statm_bound(const struct cycle *cycle,
                               const struct track *t);

/* For a process with a baseline, after all corrections of the cycle. */
void estimator_predict(const struct cycle *cycle, const struct track *t,
                       struct prediction *ret);

/* Takes in a baseline that was not read, and predicts from it from now on.
 * Between estimator_observe() and estimator_advance(). origin: INHERITED, with
 * the share of files as it is after this cycle, or DIVIDED, with the share
 * before it; at_ns: of the reading that it goes back to; off_bytes: how far off
 * it can be, besides the error that was to be expected before. */
void estimator_derive(const struct cycle *cycle, struct track *t,
                      const struct rollup *rollup, uint64_t at_ns,
                      enum origin origin, double off_bytes);

/* Ends the estimate, until the next reading: the process runs another program,
 * has ended, or its reading has failed. */
void estimator_forget(struct track *t);

#endif
