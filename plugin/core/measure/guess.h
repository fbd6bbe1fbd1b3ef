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
#ifndef SMAPS_GUESS_H
#define SMAPS_GUESS_H

#include "proc/meminfo.h"
#include "proc/rollup.h"
#include "report/doubt.h"

struct guess_limit {
  bool is_known;
  /* In bytes: of the host, measured, and guessed. */
  double host_anon, host_mapped;
  double measured_anon, measured_mapped;
  double guessed_anon, guessed_mapped;
  struct doubt_sum measured_doubt;
};

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
