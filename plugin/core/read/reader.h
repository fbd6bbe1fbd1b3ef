/* SPDX-License-Identifier: MIT */
/*
 * Makes all reads that can take long or hang in the kernel, in batches. They
 * run in a thread of their own (worker_pool.h), which is abandoned when a read
 * does not return within ReadTimeout.
 *
 * So a read uses none of the caller's memory: each thread has a context with
 * its own handle on the tree and its own copies of the jobs and of the
 * processes' data. Results are moved back when they are ready; late results
 * are dropped when the thread is used again.
 */
#ifndef SMAPS_READER_H
#define SMAPS_READER_H

#include "read/quarantine.h"
#include "read/worker_pool.h"

/* The size of a batch. */
#define JOBS_AT_ONCE 64

/* When so many PID files and control groups hang, no other one is read: it may
 * be on the same file system, and the other threads are for processes. */
#define PATHS_HUNG_MAX 2

struct reader {
  struct reader_setup setup;
  uint64_t now_ns;             /* start of the cycle */
  uint64_t page_size, tick_ns; /* of the kernel of the tree (proc/units.h) */
  struct worker_pool *pool;
  struct shared_names *names;
};

/* Returns 0, or what units_read() does or -ENOMEM, and leaves nothing to
 * release. */
int reader_init(struct reader *r, const struct reader_setup *setup);

/* Does not wait for hung reads. */
void reader_done(struct reader *r);

/* Starts a cycle. Returns a negative errno if nothing can be read in it,
 * because memory or descriptors have run out. */
int reader_begin(struct reader *r, uint64_t now_ns);

/* The number of hung reads; with WORKER_POOL_MAX of them no other is made. */
unsigned reader_count_hung(const struct reader *r);

/*
 * Does all jobs, one after the other. A process or path with a read that
 * still hangs is not tried again, as long as it is the same process and runs
 * the same program. If a job has hung or was not tried, only result and file
 * are filled in, and a process that hangs is put into quarantine. Only the
 * thread of the cycle may call this.
 */
void reader_run(struct reader *r, struct read_job *jobs, size_t n);

/* Any number of jobs: they are collected, and done when the batch is full.
 * apply() gets each job after it is done, in the order of read_batch_add(). */
struct read_batch {
  struct reader *reader;
  void (*apply)(void *ctx, struct read_job *job);
  void *ctx;
  size_t n;
  struct read_job jobs[JOBS_AT_ONCE];
};

static inline void
read_batch_init(struct read_batch *b, struct reader *reader,
                void (*apply)(void *ctx, struct read_job *job), void *ctx) {
  b->reader = reader;
  b->apply = apply;
  b->ctx = ctx;
  b->n = 0;
}

/* Does the collected jobs: to be called after the last one. */
static inline void read_batch_flush(struct read_batch *b) {
  reader_run(b->reader, b->jobs, b->n);
  for (size_t i = 0; i < b->n; i++)
    b->apply(b->ctx, &b->jobs[i]);
  b->n = 0;
}

/* Copies the job. If the batch is full, does all collected jobs. */
static inline void read_batch_add(struct read_batch *b,
                                  const struct read_job *job) {
  b->jobs[b->n++] = *job;
  if (b->n == JOBS_AT_ONCE)
    read_batch_flush(b);
}

#endif
