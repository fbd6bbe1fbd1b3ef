/* Reads of any number of jobs: they are collected, and made when the batch is
 * full. */
#ifndef SMAPS_READ_BATCH_H
#define SMAPS_READ_BATCH_H

#include "read/reader.h"

struct read_batch {
  struct reader *reader;
  void (*apply)(void *ctx, struct read_job *job);
  void *ctx;
  size_t n;
  struct read_job jobs[JOBS_AT_ONCE];
};

/* apply() gets each job after it is done, in the order of read_batch_add(). */
void read_batch_init(struct read_batch *b, struct reader *reader,
                     void (*apply)(void *ctx, struct read_job *job), void *ctx);

/* Copies the job. If the batch is full, makes all collected reads. */
void read_batch_add(struct read_batch *b, const struct read_job *job);

/* Makes the collected reads: to be called after the last job. */
void read_batch_flush(struct read_batch *b);

#endif
