/*
 * Makes the reads that can take long or hang in the kernel, as batches: the one
 * place where that is done.
 */
#ifndef SMAPS_READER_H
#define SMAPS_READER_H

#include <smaps/mapping.h>
#include <smaps/process.h>
#include <smaps/sight.h>

enum read_kind {
  READ_SIGHTING, /* stat, statm and names, see sight.h */
  READ_STAT,
  READ_ROLLUP,
  /* And statm right after it, and stat where faults matter: what the estimates
   * to come are made from. */
  READ_ROLLUP_AND_EVIDENCE,
  /* The whole smaps: what it maps. The kernel lets go of the mmap lock every
   * 4 KiB of text, so that the process is not held up. */
  READ_MAPPINGS,
};

struct mappings_reading {
  struct mapping_table *table; /* empty, from the caller */
  struct rollup sum;           /* of it */
};

struct rollup_reading {
  struct rollup rollup;
  bool has_statm;
  struct statm_sample statm;
  /* Before and after; 0 where they were not read. */
  uint32_t faults_before, faults_after;
};

/* Of what is read, as much as fits a batch. */
#define JOBS_AT_ONCE 64

struct read_job {
  struct process *process;
  enum read_kind kind;
  /* Filled in by the reader: 0, an outcome or a negative errno, as of procfs.h;
   * -ENOSYS where the kernel has neither smaps_rollup nor smaps. */
  int result;
  uint64_t took_ns; /* a rollup, or mappings */
  union {
    struct sighting sighting;
    struct stat_sample stat; /* without comm */
    struct rollup_reading rollup;
    struct mappings_reading mappings;
  };
};

struct reader {
  struct procfs *procfs;
  struct sight sight;
  uint64_t (*clock_ns)(void);
  uint64_t now_ns; /* when the cycle began */
  uint64_t page_size;
  bool has_rollup; /* a smaps_rollup was read, so there are such files */
};

/* Does all jobs, one after the other. */
void reader_run(struct reader *r, struct read_job *jobs, size_t n);

#endif
