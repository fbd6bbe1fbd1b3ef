/*
 * Makes all reads that can take long or hang in the kernel, in batches. They
 * run in a thread of their own (worker_pool.h), which is abandoned when a read
 * does not return within ReadTimeout.
 *
 * So a read uses none of the caller's memory: each thread has a context with
 * its own handle on the tree and its own copies of the jobs and of the
 * processes' data. Results are copied back when they are ready; late results
 * are dropped.
 */
#ifndef SMAPS_READER_H
#define SMAPS_READER_H

#include "proc/mapping.h"
#include "process/process.h"
#include "read/inspect.h"
#include "read/mapping_sample.h"
#include "read/memory_cgroup.h"
#include "read/page_sample.h"
#include <smaps/worker_pool.h>

/*
 * A new kind needs a name here, a member of the union in struct read_job, a
 * case in do_job() that fills it in, and, if the result owns memory, a case in
 * drop_result() that frees it. do_job() may use the context and the job's
 * proc_ref (extend proc_ref_of() for further data), but no pointer of the
 * caller's job.
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
  /* Tells if the process runs in the address space of another one. */
  READ_SAME_MM,
  /* The limit of its control groups; see memory_limit.h. */
  READ_MEMORY_LIMIT,
  /* The memory of a control group, which belongs to no process; see
   * memory_cgroup.h. */
  READ_CGROUP,
  /* A PID file, which belongs to no process; see pid_file.h. */
  READ_PID_FILE,
};

/* In addition to those of procfs.h. */
enum read_outcome {
  READ_HUNG = 16, /* it has not returned */
  /* Not tried: an earlier read still hangs; or only one thread is left, and the
   * process is in uninterruptible sleep. file is NULL then. */
  READ_STILL_HUNG,
  READ_SKIPPED,  /* no thread is free; see worker_pool_context() */
  READ_TOO_LONG, /* not tried: it has more mappings than mappings_most */
};

struct mappings_reading {
  struct mapping_table *table; /* owned by the caller; NULL if it failed */
  struct rollup sum;           /* sum of the table; unknown for maps */
};

struct rollup_reading {
  struct rollup rollup;
  bool has_statm;
  struct statm_sample statm;
  /* Before and after; 0 if not read. */
  uint32_t faults_before, faults_after;
};

struct same_mm {
  bool is_same;
  bool is_certain; /* the kernel has answered */
  bool is_refused; /* the kernel refuses to answer */
};

/* The size of a batch. */
#define JOBS_AT_ONCE 64

/* When so many PID files and control groups hang, no other one is read: it may
 * be on the same file system, and the other threads are for processes. */
#define PATHS_HUNG_MAX 2

struct read_job {
  struct process *process;
  enum read_kind kind;
  /* For READ_PID_FILE and READ_CGROUP, in place of a process. */
  const char *path;
  /* For READ_SAME_MM: the other process. If the kernel may not be asked or does
   * not answer, the two share memory if may_be_vfork is set and the other one
   * waits as in vfork. */
  uint32_t other_pid;
  bool may_be_vfork, may_ask_kernel;
  /* For READ_ROLLUP: is_baseline if estimates will start from it, so that statm
   * is read right after it, and stat if it shows memory shared by copy on
   * write; wants_faults to read stat before it, too. */
  bool is_baseline, wants_faults;
  /* For READ_ROLLUP: with more of them it would take too long; 0 for any. They
   * are counted first, which takes about as long, but with the lock given up
   * now and then. */
  uint32_t mappings_most;
  /* For READ_SAMPLE; and, without the layout and the probe, for
   * READ_MAPPING_SAMPLE. The layout is the caller's reference, and no other job
   * may have that layout meanwhile. A layout of a job that has hung is of no
   * use: the hung read goes on to change it. */
  struct page_request request;
  /* For READ_CGROUP: the place is the caller's. */
  struct memory_cgroup_request cgroup;
  /* Filled in by the reader: 0, an outcome (of procfs.h or above) or a negative
   * errno; -ENOSYS if the kernel has neither smaps_rollup nor smaps. */
  int result;
  const char *file;  /* the file that hung */
  uint64_t took_ns;  /* of a rollup, of mappings, or of a sample */
  uint64_t count_ns; /* CPU time of counting mappings */
  uint64_t work_ns;  /* of a rollup or a sample: its CPU time, if known, ... */
  bool is_metered;   /* ... which it is; else it may have waited, too */
  union {
    struct inspection inspection;
    struct stat_sample stat; /* without comm */
    struct rollup_reading rollup;
    struct mappings_reading mappings;
    struct page_sample sample;
    struct mapping_sample mapping_sample; /* owned by the caller */
    struct same_mm mm;
    struct memory_cgroup_reading cgroup_memory; /* owned by the caller */
    uint64_t limit_bytes;                       /* CGROUP_LIMIT_NONE for none */
    uint32_t pid; /* the pid in the file; 0 for none */
  };
};

struct reader_setup {
  const struct procfs *procfs; /* the tree to read, also after it is reopened */
  unsigned attributes;         /* bit per attribute to read */
  unsigned rule_attributes;    /* those of them that rules look at */
  uint64_t interval_ns;
  uint64_t read_timeout_ns; /* the longest time of a read */
  uint64_t (*clock_ns)(void);
  uint64_t (*cpu_clock_ns)(void); /* of the calling thread; or NULL */
  int (*look_up_user)(uint32_t uid, char *ret, size_t size); /* or NULL */
};

struct reader {
  struct reader_setup setup;
  uint64_t now_ns; /* start of the cycle */
  uint64_t page_size;
  bool has_rollup; /* a smaps_rollup was read, so the kernel has it */
  struct worker_pool *pool;
  struct shared_users *users;
};

/* Returns 0, or -ENOMEM and leaves nothing to release. */
int reader_init(struct reader *r, const struct reader_setup *setup);

/* Does not wait for hung reads. */
void reader_done(struct reader *r);

/* Starts a cycle. Returns a negative errno if nothing can be read in it,
 * because memory or descriptors have run out. */
int reader_begin(struct reader *r, uint64_t now_ns);

/* The number of hung reads. With WORKER_POOL_MAX of them no other read is made.
 * A read that returns makes room when the next cycle begins. */
unsigned reader_count_hung(const struct reader *r);

/*
 * Does all jobs, one after the other. A process or path with a read that
 * still hangs is not tried again, as long as it is the same process and runs
 * the same program. If a job has hung or was not tried, only result and file
 * are filled in. Only the thread of the cycle may call this.
 */
void reader_run(struct reader *r, struct read_job *jobs, size_t n);

#endif
