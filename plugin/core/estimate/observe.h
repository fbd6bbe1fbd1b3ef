/*
 * Shows the estimator what the cheap files of the processes say: statm, which
 * was read when they were identified; stat, where minor faults are worth it;
 * status, where swap is, and for page tables.
 */
#ifndef SMAPS_OBSERVE_H
#define SMAPS_OBSERVE_H

#include "estimate/measure.h"

void observe_all(struct measurer *m, const struct process_table *t);

/* A member that is alive, without its minor faults. */
void observe_one(struct measurer *m, struct process *p);

/* Reads the page tables of each member that was read or sampled in this cycle,
 * whose tables are not known yet, or whose memory has moved; once all have been
 * read that will be. */
void observe_page_tables(const struct measurer *m,
                         const struct process_table *t);

/* Before the reading of a process is taken in: where it shares so little that
 * a relative may have ended since all were listed, looks whether one has. */
void observe_relatives(struct measurer *m, const struct process *p,
                       const struct rollup *found, uint32_t vm_swap_kb);

/* A process turns out to have ended: it is in no sum of this cycle. */
void observe_end(struct measurer *m, struct process *p);

#endif
