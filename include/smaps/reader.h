/*
 * Makes the reads that can take long or hang in the kernel, as batches: the one
 * place where that is done. They run in a thread of their own (crew.h), which
 * is given up when one of them has not come back after a time.
 *
 * So nothing that is read into, or looked at meanwhile, is the caller's: each
 * thread has a desk with its own handle on the tree and its own copies of the
 * jobs and of what it must know of the processes. What is ready is copied back;
 * what comes too late is dropped there.
 */
#ifndef SMAPS_READER_H
#define SMAPS_READER_H

#include <smaps/crew.h>
#include <smaps/mapping.h>
#include <smaps/process.h>
#include <smaps/sight.h>

/*
 * A new kind is a name here, a member of the union in struct read_job, a case
 * in do_job() that fills it in, and, if the result has memory of its own, one
 * in drop_result() that frees it. It may use the desk and the job's subject
 * (what else it has to know goes there: see subject_of()), and no pointer that
 * came with the job.
 */
enum read_kind {
  READ_SIGHTING, /* stat, statm and names, see sight.h */
  READ_STAT,
  READ_ROLLUP,
  /* And statm right after it, and stat where faults matter: what the estimates
   * to come are made from. */
  READ_ROLLUP_AND_EVIDENCE,
  /* The whole smaps: what it maps, and what of that is in memory. The kernel
   * lets go of the mmap lock between two mappings, each time that 4 KiB of text
   * are full, but a single mapping is walked in one go: a large one holds the
   * process up as its rollup would. */
  READ_MAPPINGS,
  /* Likewise maps: what it maps and no more. No page table is walked. */
  READ_MAPS,
  /* Whether it runs in the address space of another. */
  READ_SAME_MM,
  /* A PID file, which is of no process; see pid_file.h. */
  READ_PID_FILE,
};

/* Beside those of procfs.h. */
enum read_outcome {
  READ_STALLED = 16, /* it has not come back */
  READ_HANGING,      /* one of a cycle before has not, so it was not tried */
  READ_UNTRIED,      /* no thread is free for it, see crew_desk() */
};

struct mappings_reading {
  struct mapping_table *table; /* for the caller to free; NULL if it failed */
  struct rollup sum;           /* of it; nothing is known of a maps */
};

struct rollup_reading {
  struct rollup rollup;
  bool has_statm;
  struct statm_sample statm;
  /* Before and after; 0 where they were not read. */
  uint32_t faults_before, faults_after;
};

struct same_mm {
  bool is_same;
  bool is_certain; /* the kernel says so */
  bool is_refused; /* it was asked, and does not tell us */
};

/* Of what is read, as much as fits a batch. */
#define JOBS_AT_ONCE 64

/* Where so many reads hang in PID files no other one is tried: it may be the
 * same file system, and the other threads are for processes. */
#define PID_FILES_STUCK_MAX 2

struct read_job {
  struct process *process;
  enum read_kind kind;
  const char *path; /* for READ_PID_FILE, in the place of a process */
  /* For READ_SAME_MM: the other one, whether to take that for an answer, where
   * the kernel gives none, that it waits as in vfork, and whether to ask the
   * kernel at all. */
  uint32_t other_pid;
  bool may_be_vfork, may_ask_kernel;
  /* Filled in by the reader: 0, an outcome or a negative errno, as of procfs.h
   * and above; -ENOSYS where the kernel has neither smaps_rollup nor smaps. */
  int result;
  const char *file; /* in which it stalled */
  uint64_t took_ns; /* a rollup, or mappings */
  uint64_t work_ns; /* of a rollup: without what it waited for the processor */
  union {
    struct sighting sighting;
    struct stat_sample stat; /* without comm */
    struct rollup_reading rollup;
    struct mappings_reading mappings;
    struct same_mm mm;
    uint32_t pid; /* that the file names; 0 for none */
  };
};

struct reader_setup {
  const struct procfs *procfs; /* the tree to read, now and wherever it moves */
  unsigned attributes;         /* bit per attribute to read */
  unsigned rule_attributes;    /* of these, those that rules look at */
  uint64_t interval_ns;
  uint64_t stall_timeout_ns; /* how long a read may take */
  uint64_t (*clock_ns)(void);
  uint64_t (*cpu_clock_ns)(void); /* of the thread that asks; NULL for none */
  int (*look_up_user)(uint32_t uid, char *ret, size_t size); /* or NULL */
};

struct reader {
  struct reader_setup setup;
  uint64_t now_ns; /* when the cycle began */
  uint64_t page_size;
  bool has_rollup; /* a smaps_rollup was read, so there are such files */
  struct crew *crew;
  struct shared_users *users;
};

/* -ENOMEM, and then nothing is to be done. */
int reader_init(struct reader *r, const struct reader_setup *setup);

/* Does not wait for reads that hang. */
void reader_done(struct reader *r);

/* To be called when a cycle begins. A negative errno where nothing can be read
 * in it, for want of memory or descriptors. */
int reader_begin(struct reader *r, uint64_t now_ns);

/* How many reads hang now; with CREW_MAX no other is made. One that comes back
 * makes room for another when the next cycle begins. */
unsigned reader_hanging(const struct reader *r);

/*
 * Does all jobs, one after the other. A process one of whose reads still hangs
 * is not tried again, as long as it is the same and runs the same program; nor
 * is a PID file that hangs. Of a
 * job that has stalled or was not tried, nothing but result and file is filled
 * in. For one thread only: that of the cycle.
 */
void reader_run(struct reader *r, struct read_job *jobs, size_t n);

#endif
