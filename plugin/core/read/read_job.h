/* SPDX-License-Identifier: MIT */
/* A read that the reader makes (reader.h), and its result. */
#ifndef SMAPS_READ_JOB_H
#define SMAPS_READ_JOB_H

#include "cgroup/memory_cgroup.h"
#include "proc/mapping.h"
#include "proc/shmem.h"
#include "process/pid_claim.h"
#include "process/process.h"
#include "read/inspect.h"
#include "sample/mapping_sample.h"
#include "sample/page_sample.h"

/*
 * A new kind needs a name here, a member of the union in struct read_job, a
 * case in do_job() of reader.c that fills it in, and, if the result owns
 * memory, a case in drop_result() that frees it. do_job() may use the context
 * and the job's proc_ref (extend proc_ref_of() for further data), but no
 * pointer of the caller's job.
 */
enum read_kind {
  READ_INSPECTION, /* stat, statm and names, see inspect.h */
  READ_STAT,
  READ_ROLLUP,
  /* The whole smaps: the mappings and how much of each is resident. The kernel
   * drops the mmap lock between two mappings whenever 4 KiB of text are full,
   * but walks a single mapping in one go: a large one blocks the process as
   * long as its rollup would. */
  READ_MAPPINGS,
  /* maps: the mappings only. No page table is walked. */
  READ_MAPS,
  /* Some pages out of pagemap, instead of a walk of all; see page_sample.h. */
  READ_SAMPLE,
  /* Some pages of each mapping; see mapping_sample.h. */
  READ_MAPPING_SAMPLE,
  /* Asks if the process runs in the address space of another process. */
  READ_SAME_MM,
  /* The memory of a control group, of a path or of a process; see
   * memory_cgroup.h. */
  READ_CGROUP,
  /* A PID file, which belongs to no process; see pid_file.h. */
  READ_PID_FILE,
};

/* In addition to the outcomes of procfs.h. */
enum read_outcome {
  READ_HUNG = 16, /* it has not returned */
  /* Not tried: an earlier read still hangs; or only one thread is left, and the
   * process is in uninterruptible sleep. file is NULL then. */
  READ_STILL_HUNG,
  READ_SKIPPED,  /* no thread is free; see worker_pool_acquire() */
  READ_TOO_LONG, /* not tried: it has more mappings than mappings_most */
};

struct mappings_reading {
  struct mapping_table table; /* released by the caller; zero if it failed */
  struct rollup sum;          /* sum of the table, for READ_MAPPINGS */
};

struct rollup_reading {
  struct rollup rollup;
  bool has_shmem; /* maps was read, because it shows that much shmem */
  struct shmem_mappings shmem;
  bool has_statm;
  struct statm_sample statm;
  uint32_t faults; /* right after; 0 if not read */
};

struct read_job {
  struct process *process;
  enum read_kind kind;
  /* For READ_PID_FILE and READ_CGROUP, in place of a process. */
  const char *path;
  uint32_t other_pid; /* for READ_SAME_MM */
  /* For READ_ROLLUP: is_baseline if estimates will start from it, so that statm
   * is read right after it, and stat if it shows memory shared by copy on
   * write. */
  bool is_baseline;
  /* For READ_ROLLUP: maps is read after it, if the rollup shows at least
   * SHMEM_LEAST_BYTES. No page table is walked for that. */
  bool wants_shmem;
  /* For READ_ROLLUP: with more mappings it would take too long; 0 for any
   * number. They are counted first, which takes about as long, but releases the
   * lock now and then. */
  uint32_t mappings_most;
  /* For READ_SAMPLE; and, without the layout and the probe, for
   * READ_MAPPING_SAMPLE. The layout is the caller's reference. */
  struct page_request request;
  /* For READ_CGROUP: what is known of it, and then the result. */
  struct memory_cgroup cgroup;
  bool is_pending; /* while the reader runs: it is to be done */
  /* Filled in by the reader: 0, an outcome (of procfs.h or above) or a negative
   * errno; -ENOSYS if the kernel has no smaps_rollup. */
  int result;
  const char *file;  /* the file that hung */
  uint64_t took_ns;  /* of a rollup, of mappings, or of a sample */
  uint64_t count_ns; /* CPU time of counting mappings */
  uint64_t work_ns;  /* CPU time of a rollup or a sample */
  union {
    struct inspection inspection;
    struct stat_sample stat;
    struct rollup_reading rollup;
    struct mappings_reading mappings;
    struct page_sample sample;
    bool is_same_mm;
    struct pid_claim pid_claim;
  };
};

struct reader_setup {
  struct procfs *procfs;    /* the tree to read */
  struct diag *diags;       /* indexed by kind */
  unsigned attributes;      /* bit per attribute to read */
  unsigned rule_attributes; /* the part of them that rules use */
  uint64_t interval_ns;
  uint64_t read_timeout_ns; /* the longest time of a read */
  bool averages_mapcounts;  /* kernel_averages_mapcounts() */
  uint64_t (*clock_ns)(void);
  uint64_t (*cpu_clock_ns)(void); /* of the calling thread */
  int (*look_up_user)(uint32_t uid, char *ret, size_t size); /* or NULL */
  const char *container_root; /* see container_names.h; NULL: "/" */
};

/* False if the read hangs, or no thread was free for it. */
static inline bool read_has_result(const struct read_job *job) {
  return job->result != READ_HUNG && job->result != READ_STILL_HUNG &&
         job->result != READ_SKIPPED;
}

#endif
