/* The growth of all groups: gathers what growth.h follows of each. */
#ifndef SMAPS_GROUP_GROWTH_H
#define SMAPS_GROUP_GROWTH_H

#include "match/group.h"
#include "proc/meminfo.h"
#include "process/process.h"

/*
 * Notes the sums of this cycle, when what is known of control groups is. A
 * group can grow until it has taken MemAvailable: that is what all processes
 * together leave of MemTotal; or what the limit of its control group leaves, if
 * that is less.
 */
void group_growth_note(const struct group_table *groups,
                       const struct process_table *processes,
                       const struct meminfo_sample *meminfo, uint64_t now_ns);

#endif
