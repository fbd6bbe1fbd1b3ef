/* SPDX-License-Identifier: MIT */
/*
 * Groups that are whole control groups: their members are all processes of a
 * control group and of those below it, and no others.
 *
 * The rule has to select by Unit, Slice, Container or Cgroup, or by PidFile
 * with Children. Its group may then be the unit, or the slice, that it names;
 * else it is the lowest control group that has all members. It moves up when a
 * member joins in another branch, and down only after it was shared, because
 * each move replaces the numbers by those of another control group.
 */
#ifndef SMAPS_WHOLE_GROUP_H
#define SMAPS_WHOLE_GROUP_H

#include "cgroup/cgroup_tree.h"
#include "match/group.h"
#include "process/process.h"

/* Sets cgroup_absence of each group, which is CGROUP_PRESENT if it is whole;
 * then cgroup_node is its control group, and cgroup_pid a member. To be called
 * after the members were counted. */
void whole_groups_find(const struct cgroup_tree *cgroups,
                       const struct process_table *processes,
                       const struct group_table *groups);

#endif
