/*
 * How far statm can be off. Its counters are exact since 6.17 and on stable
 * kernels that have get_mm_counter_sum() in task_statm (fs/proc/task_mmu.c).
 * Before, from 6.2 on, they are per-CPU counters that are read without the
 * parts of the CPUs; up to 6.1 each thread keeps up to 64 pages for itself. The
 * release does not tell which it is, but readings do: beside a rollup of a
 * process that does nothing, statm shows the same pages or it does not.
 *
 * No reading can mend this, since statm drifts again at once. So it is never a
 * reason to read, only a part of the published error.
 */
#ifndef SMAPS_PRECISION_H
#define SMAPS_PRECISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many comparisons are remembered, and so many make a judgement. */
#define COMPARISONS_KEPT 64
#define COMPARISONS_ENOUGH 16

struct precision {
  uint32_t off_pages[COMPARISONS_KEPT];
  size_t n; /* COMPARISONS_KEPT at most */
  size_t next;
  uint64_t judged_pages; /* what they come to; 0 where statm is exact */
  /* As the release says, before there are enough. */
  uint64_t expected_pages, expected_thread_pages;
};

/* For a kernel of that release on so many CPUs; zero it where the release is
 * not known. */
void precision_init(struct precision *p, unsigned major, unsigned minor,
                    unsigned cpus);

/* A rollup and the statm of a process that did not change meanwhile differ by
 * so many pages. */
void precision_learn(struct precision *p, uint64_t off_pages);

/*
 * By how many pages the statm of a process can be off: 0 where it is exact.
 * last_pages: how far off it was when the process was read last.
 */
uint64_t precision_pages(const struct precision *p, uint32_t threads,
                         uint64_t last_pages);

#endif
