/* SPDX-License-Identifier: MIT */
/* Puts the processes of a world of memory into the table of processes. */
#ifndef SMAPS_TESTS_MEMORY_TABLE_H
#define SMAPS_TESTS_MEMORY_TABLE_H

#include "memory_world.h"
#include "process/process.h"

/* Lists them, and sets what the files of each show; all are alive. ret: the
 * process of each slot, or NULL. */
void memory_table_update(struct process_table *t, const struct memory_world *w,
                         const struct memory_view views[MEMORY_SLOTS],
                         struct process *ret[MEMORY_SLOTS]);

struct statm_sample memory_table_statm(const struct memory_view *view);

/* Forgets them with their estimates. */
void memory_table_done(struct process_table *t);

#endif
