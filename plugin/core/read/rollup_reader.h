/* SPDX-License-Identifier: MIT */
/*
 * Reads smaps_rollup, and statm or stat after it, which show changes.
 */
#ifndef SMAPS_ROLLUP_READER_H
#define SMAPS_ROLLUP_READER_H

#include "read/read_job.h"

/* The tools of a thread that reads rollups. */
struct rollup_reader {
  struct page_reader pages;
  uint64_t (*clock_ns)(void);
  bool has_rollup; /* a smaps_rollup was read, so the kernel has it */
};

/* Does a READ_ROLLUP: fills in the result, the times and the rollup. */
void rollup_reader_run(struct rollup_reader *r, const struct proc_ref *p,
                       struct read_job *job);

#endif
