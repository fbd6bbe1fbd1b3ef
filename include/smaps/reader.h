/*
 * Reads rollups, which can take long and may hang, as a batch: the one place
 * where that is done.
 */
#ifndef SMAPS_READER_H
#define SMAPS_READER_H

#include <smaps/process.h>

struct read_job {
  struct process *process;
  /* Filled in by the reader: 0, an outcome or a negative errno, as of procfs.h;
   * -ENOSYS where the kernel has neither smaps_rollup nor smaps. */
  int result;
  struct rollup rollup;
  uint64_t took_ns;
};

struct reader {
  struct procfs *procfs;
  uint64_t (*clock_ns)(void);
  uint64_t page_size;
  bool has_rollup; /* a smaps_rollup was read, so there are such files */
};

/* Reads for all jobs, one after the other. */
void reader_run(struct reader *r, struct read_job *jobs, size_t n);

#endif
