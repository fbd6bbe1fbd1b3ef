/*
 * The memory of the control groups that are groups (whole.h).
 *
 * The usage is read in every cycle, from a file that stays open where there is
 * room (procfs.h); the limit, which climbs the hierarchy, and memory.stat, for
 * which the kernel may have to add up counters of all processors, are read in
 * one of CGROUP_SLOW_CYCLES, and once a minute at least; and when the usage has
 * moved by a part of the limit. memory.events is read at first sight and when
 * the host's count of killed processes (vmstat) has changed; if that count is
 * hidden, together with the limit.
 *
 * The kernel counts killed processes for the life of a control group, and
 * systemd removes that of a service before it starts the service again: often
 * the count is gone before anyone could read it. So what is published is how
 * many were killed in the last hour, over all lives of the path. If only the
 * parent counted a kill, it is attributed to the child that has disappeared; if
 * several have, to none. Version 1 counts each control group separately, so
 * such a kill is lost.
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
  uint64_t read_timeout_ns;
  uint64_t (*clock_ns)(void);

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
