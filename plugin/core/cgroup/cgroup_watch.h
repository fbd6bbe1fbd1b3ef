/*
 * The memory of control groups that are whole groups (whole.h).
 *
 * Read in every cycle: the usage, from a file that stays open if there is room
 * (procfs.h).
 * Read in one of CGROUP_SLOW_CYCLES, at least once a minute, and when the usage
 * has changed by a part of the limit: the limit, of all control groups above
 * too, and memory.stat, for which the kernel may add up counters of all CPUs.
 * Read at first and when the host's count of killed processes (vmstat) has
 * changed: memory.events. If that count is hidden: together with the limit.
 *
 * The kernel counts killed processes for the life of a control group, and
 * systemd removes the control group before it starts a service again: often the
 * count is gone before it can be read. So the published number is how many were
 * killed in the last hour, in all control groups that had the path. The parent
 * counts the kills of its children, and keeps those of removed ones: what the
 * other children have not counted was in the child that was removed. If several
 * were, it is of none. Version 1 counts each control group separately, so such
 * a kill is lost.
 */
#ifndef SMAPS_CGROUP_WATCH_H
#define SMAPS_CGROUP_WATCH_H

#include "cgroup/whole.h"
#include "read/read_batch.h"

#define CGROUP_SLOW_CYCLES 6
#define CGROUP_SLOW_NS (UINT64_C(60) * 1000000000)
#define CGROUP_MOVED_PART 16
/* How long a control group is not looked for after its files were not found. */
#define CGROUP_RETRY_NS (UINT64_C(60) * 1000000000)
#define CGROUP_KILLS_NS (UINT64_C(3600) * 1000000000)

struct watched_cgroup;

struct cgroup_watch {
  struct procfs *procfs;
  struct reader *reader;

  struct watched_cgroup **cgroups; /* sorted by path */
  size_t n, cap;
  uint64_t made, cycles; /* since the start */
  uint64_t nodes_before; /* the newest serial of the last cycle */
  /* State of the cycle. */
  uint64_t now_ns;
  bool has_host_kills;
  uint64_t host_kills, new_host_kills;
};

/* Finds the groups that are whole, reads their control groups and sets
 * group.cgroup. Without memory they have none in this cycle. */
void cgroup_watch_run(struct cgroup_watch *w, const struct matcher *matcher,
                      const struct process_table *processes, uint64_t now_ns);

void cgroup_watch_done(struct cgroup_watch *w);

#endif
