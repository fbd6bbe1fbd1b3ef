/*
 * The sums of the groups: each member adds what was read of it in this cycle,
 * or else the best estimate.
 */
#ifndef SMAPS_AGGREGATE_H
#define SMAPS_AGGREGATE_H

#include "estimate/estimator.h"
#include "match/group.h"
#include "proc/meminfo.h"
#include "process/process.h"
#include "report/host.h"

/*
 * Limits the guesses of members without a reading by the memory of the host:
 * their anonymous memory to AnonPages of meminfo, their files and shmem to
 * Mapped, both without the memory that was measured. Pss adds up over all
 * processes, so no more can be left for them.
 *
 *   guess_begin      once in a cycle
 *   guess_measured   of each process with a reading
 *   guess_made       of each guess
 *   guess_limit      of each guess again, when all are made
 *
 * Each process counts once, in however many groups it is.
 */
struct guess_limit {
  bool is_known;
  /* In bytes: of the host, measured, and guessed. */
  double host_anon, host_mapped;
  double measured_anon, measured_mapped;
  double guessed_anon, guessed_mapped;
  struct doubt_sum measured_doubt;
};

/* What is summed beside the groups in a cycle. */
struct aggregate {
  const struct cycle *cycle;
  struct guess_limit guess_limit;
  struct host_processes host;
};

/* Adds all members to the sums of their groups, which are zero. Guesses come
 * last, because they are made from the other members. */
void aggregate_all(struct aggregate *a, const struct process_table *t,
                   const struct group_table *groups);

/* Gives the estimate of the last cycle for a process, in a group or not. */
void aggregate_estimate(const struct aggregate *a, const struct process *p,
                        struct estimate *ret);

/* The sums of one process by itself. */
void aggregate_one(const struct aggregate *a, const struct process *p,
                   const struct estimate *est, struct usage *ret);

/* Without a limit if meminfo is NULL (of another host), or lacks AnonPages or
 * Mapped. */
void guess_begin(struct guess_limit *l, const struct meminfo_sample *meminfo);

/* A rollup without the anonymous part of Pss (before 5.3) ends the limit for
 * this cycle. */
void guess_measured(struct guess_limit *l, const struct rollup *r,
                    struct doubt pss_error);

void guess_made(struct guess_limit *l, const struct rollup *guess);

/* Lessens Pss and uss of a guess by the part, from 0 to 1, by which all guesses
 * together are too large. Rss stays. */
void guess_limit(const struct guess_limit *l, struct rollup *guess);

/* The bytes of the host that may not be measured yet, including the errors of
 * all measurements but `own`. The guesses together, or the group with the error
 * `own`, can be too low by no more. INFINITY without a limit. */
double guess_beyond(const struct guess_limit *l, const struct doubt_sum *own);

#endif
