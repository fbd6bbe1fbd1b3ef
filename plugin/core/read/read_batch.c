#include "read/read_batch.h"

void read_batch_init(struct read_batch *b, struct reader *reader,
                     void (*apply)(void *ctx, struct read_job *job),
                     void *ctx) {
  b->reader = reader;
  b->apply = apply;
  b->ctx = ctx;
  b->n = 0;
}

void read_batch_add(struct read_batch *b, const struct read_job *job) {
  b->jobs[b->n++] = *job;
  if (b->n == JOBS_AT_ONCE)
    read_batch_flush(b);
}

void read_batch_flush(struct read_batch *b) {
  reader_run(b->reader, b->jobs, b->n);
  for (size_t i = 0; i < b->n; i++)
    b->apply(b->ctx, &b->jobs[i]);
  b->n = 0;
}
