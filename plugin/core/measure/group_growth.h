/* The growth of all groups: adds the sums of each cycle to their histories. */
#ifndef SMAPS_GROUP_GROWTH_H
#define SMAPS_GROUP_GROWTH_H

#include "match/group.h"
#include "proc/meminfo.h"
#include "process/process.h"

/*
 * Notes the sums of this cycle, after the control groups were read. A group can
 * grow by MemAvailable, or by the rest of its control group's limit, if that is
 * less.
 */
void group_growth_note(const struct group_table *groups,
                       const struct process_table *processes,
                       const struct meminfo_sample *meminfo, uint64_t now_ns);

#endif
