/* SPDX-License-Identifier: MIT */
/*
 * Which processes share memory as a whole (the same mm, as after vfork) or by
 * copy on write (fork families).
 */
#ifndef SMAPS_ADDRESS_SPACE_H
#define SMAPS_ADDRESS_SPACE_H

#include "process/process.h"
#include "read/reader.h"

/* Links newcomers to their parents and brings the fork families up to date,
 * once every process is identified: a process leaves when its program has
 * changed, and joins its parent's family when it still runs the parent's; or,
 * once a reading has shown that it shares memory, that of the oldest process
 * which runs the same. A process for which there is no memory becomes
 * PROCESS_UNKNOWN. */
void address_space_relate(struct process_table *t, struct diag *diags);

/* Finds the members of groups that run in the memory of their parent, if that
 * is a member: p->is_in_parents_mm. It keeps its value while the kernel cannot
 * be asked. */
void address_space_find_shared(const struct process_table *t,
                               struct reader *reader, uint64_t now_ns);

#endif
