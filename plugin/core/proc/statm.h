/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/statm (proc(5); fs/proc/task_mmu.c, task_statm).
 *
 * Seven numbers in pages of sysconf(_SC_PAGESIZE), read without the mmap lock:
 * the read is cheap and cannot hang. All are zero for kernel threads, for
 * zombies and for a main thread that has exited while other threads live on.
 *
 * "shared" means backed by a file or shmem, not shared with another process.
 * The numbers are exact on 6.1 and older but for the pages of the last 64
 * faults of each thread, up to 4 MiB of a file; approximate from 6.2 to 6.16
 * (per-cpu counters, off by up to a batch per CPU); exact again on kernels with
 * get_mm_counter_sum (6.17, and backports).
 */
#ifndef SMAPS_STATM_H
#define SMAPS_STATM_H

#include <errno.h>

#include <smaps/text.h>

struct statm_sample {
  uint64_t size_pages;
  uint64_t resident_pages;
  uint64_t shared_pages;
  uint64_t text_pages;
  uint64_t data_pages;
};

/* A counter that is below 0 is printed as if it had no sign. */
static inline uint64_t statm_counter(uint64_t printed) {
  return printed > INT64_MAX ? 0 : printed;
}

/*
 * Returns 0 and fills *ret, or returns -EBADMSG and leaves *ret unchanged.
 * Resident and shared come from counters of pages that no kernel should let go
 * below 0, and resident is shared plus anonymous. What they cannot be is set
 * right, so that the process is still measured: shared is resident at most.
 *
 * 765 418 390 5 0 123 0
 *
 * size, resident, shared, text, lib, data and dirty; lib and dirty are 0 since
 * 2.6.
 */
static inline int statm_parse(const char *text, size_t len,
                              struct statm_sample *ret) {
  struct cursor s = cursor_begin(text, len);
  uint64_t pages[7] = {0};

  for (int i = 0; i < 7; i++)
    if (!parse_u64(&s, &pages[i]) || !parse_char(&s, i < 6 ? ' ' : '\n'))
      return -EBADMSG;
  if (!cursor_is_done(&s))
    return -EBADMSG;
  pages[1] = statm_counter(pages[1]);
  pages[2] = statm_counter(pages[2]);
  *ret = (struct statm_sample){.size_pages = pages[0],
                               .resident_pages = pages[1],
                               .shared_pages =
                                   pages[2] < pages[1] ? pages[2] : pages[1],
                               .text_pages = pages[3],
                               .data_pages = pages[5]};
  return 0;
}

/* True if the numbers come from an mm. */
static inline bool statm_has_mm(const struct statm_sample *s) {
  return s->size_pages > 0;
}

#endif
