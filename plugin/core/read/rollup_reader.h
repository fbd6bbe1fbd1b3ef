/*
 * Reads smaps_rollup, or smaps where the kernel has no rollup, and statm or
 * stat after it, which show changes.
 */
#ifndef SMAPS_ROLLUP_READER_H
#define SMAPS_ROLLUP_READER_H

#include <stdatomic.h>

#include "read/read_job.h"

/* The tools of a thread that reads rollups. */
struct rollup_reader {
  struct procfs *procfs;
  uint64_t page_size;
  uint64_t (*clock_ns)(void);
  uint64_t (*cpu_clock_ns)(void); /* of the thread; or NULL */
  atomic_uint *heartbeat;         /* moved by long reads */
  bool has_rollup; /* a smaps_rollup was read, so the kernel has it */
};

/* Does a READ_ROLLUP: fills in the result, the times and the rollup. */
void rollup_reader_run(struct rollup_reader *r, const struct proc_ref *p,
                       struct read_job *job);

#endif
