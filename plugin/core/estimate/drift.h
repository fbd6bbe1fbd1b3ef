/*
 * Changes without a sign: others map or leave the files, the shmem or the
 * memory after a fork that a process shares, and nothing in its cheap files
 * tells. Readings show how much that was.
 *
 * Such changes come one by one, at any time, in either direction. So the square
 * of what they make grows with time, and the error with its root. Whatever
 * their sizes are, not more than one of k * k errors is above k times the root
 * of the mean square (Chebyshev).
 */
#ifndef SMAPS_DRIFT_H
#define SMAPS_DRIFT_H

#include <stdint.h>

/* Each set of processes that share has one. Parts are of the memory that can
 * change so. */
struct drift {
  double variance;     /* the square of the part that changes in a second */
  double told_seconds; /* what it was learnt from */
  uint64_t cycle_ns;
  /* Sums of this cycle, each weighed by its memory. */
  double squares, seconds, weight;
  double memory; /* of the largest member, read or not */
};

/* Before the first reading: a part of 0.02 in a minute, of which the first
 * minutes can tell that it is wrong. */
#define DRIFT_AT_FIRST ((struct drift){.variance = 6.7e-6, .told_seconds = 60})

/* Counts a member that has a baseline, before any reading of that cycle. */
void drift_count(struct drift *d, uint64_t cycle_ns, double memory);

/* A reading: so many seconds after the one before, `found` bytes of the
 * `memory` that can change had changed unseen. All readings of a cycle are one
 * lesson, which weighs by the time that it tells of, and by the memory that was
 * read beside that of the largest member: many small ones do not make a large
 * one forgotten, while each of many alike tells of them all. */
void drift_learn(struct drift *d, uint64_t cycle_ns, double found,
                 double memory, double seconds);
void drift_conclude(struct drift *d, uint64_t cycle_ns);

/* The part that is to be expected to have changed after so many seconds: the
 * root of the mean square. */
double drift_part(const struct drift *d, double seconds);

#endif
