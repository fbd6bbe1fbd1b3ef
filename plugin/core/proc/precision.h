/* SPDX-License-Identifier: MIT */
/*
 * The possible error of statm. Its counters are exact since 6.17 and on stable
 * kernels that have get_mm_counter_sum() in task_statm (fs/proc/task_mmu.c).
 * Before, from 6.2 on, they are per-CPU counters that are read without the
 * parts of the CPUs; up to 6.1 each thread keeps the pages of up to 64 faults
 * for itself, which are 16 each where a file is mapped. The release does not
 * show which of these a kernel does, but readings do: if a process does
 * nothing, its statm either agrees with its rollup or not.
 *
 * A reading does not help, since statm drifts again at once. So this is never a
 * reason to read, only a part of the published error.
 */
#ifndef SMAPS_PRECISION_H
#define SMAPS_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

struct precision {
  /* Comparisons, of which some differed, by so much at most. */
  uint32_t n, differing, most_pages;
  bool is_judged;
  uint64_t judged_pages; /* the learnt error; 0: statm is exact */
  /* The error by the release, until there are enough comparisons. */
  uint64_t expected_pages, expected_thread_faults;
};

/* For a kernel of that release on so many CPUs. An unknown release is a zeroed
 * struct. */
void precision_init(struct precision *p, unsigned major, unsigned minor,
                    unsigned cpus);

/* Learns by how many pages the rollup and the statm of a process differ that
 * did not change meanwhile. */
void precision_learn(struct precision *p, uint64_t off_pages);

/* The most pages that the statm of a process may lack, by the release alone. */
uint64_t precision_expected(const struct precision *p, uint32_t threads);

/*
 * The error of the statm of a process in pages: 0 if it is exact.
 * last_pages: its error when the process was read last, if it was.
 */
uint64_t precision_pages(const struct precision *p, uint32_t threads,
                         bool is_read, uint64_t last_pages);

#endif
