/*
 * Gives the cheap files of the processes to the estimator: statm, which was
 * read when they were identified; stat, if minor faults are worth it; status,
 * if there is swap, and for page tables.
 */
#ifndef SMAPS_OBSERVE_H
#define SMAPS_OBSERVE_H

#include "estimate/cycle.h"
#include "process/process.h"
#include "read/reader.h"

struct observer {
  const struct cycle *cycle;
  struct procfs *procfs;
  struct reader *reader;
  const struct process_table *table;
  uint64_t vanished; /* processes that have ended since the cycle began */
};

/* The processes of the table. */
void observe_all(struct observer *o);

/* Called after all readings of the cycle. Reads the page tables of each member
 * that was read or sampled, whose tables are unknown, or whose memory changed.
 */
void observe_page_tables(const struct observer *o);

/* A process turns out to have ended: it is in no sum of this cycle. */
void observe_end(struct observer *o, struct process *p);

#endif
