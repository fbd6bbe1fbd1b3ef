/* SPDX-License-Identifier: MIT */
/*
 * The memory, and the kills, of the control groups that groups are
 * (measure/whole_group.h).
 *
 * Read in every cycle: the usage, from a file that stays open if there is room
 * (procfs.h).
 * Read in one of CGROUP_SLOW_CYCLES, at least once a minute, and when the usage
 * has changed by a part of the limit: the limit, of all control groups above
 * too, and memory.stat, for which the kernel may add up counters of all CPUs.
 * A control group whose files were not found is looked for once a minute.
 * Read at first and when the host's count of killed processes (vmstat) has
 * changed: memory.events. If that count is hidden: together with the limit.
 * Read in every cycle, if Report of one of its groups asks for it: the peak,
 * from a file that stays open and is reset through that; the peak of its life,
 * memory.pressure and memory.events; and the kills by systemd-oomd, from the
 * directory, which stays open: it still has them when it was removed.
 *
 * The kernel counts killed processes for the life of a control group, and
 * systemd removes the control group before it starts a service again: often the
 * count is gone before it can be read. So the published number is how many were
 * killed in the last hour, in all control groups that had the path. The parent
 * counts the kills of its children, and keeps those of removed ones: a kill
 * that only the parent has counted was in the child that was removed. If
 * several were removed, nobody knows in which, and the kill is not published.
 * Version 1 counts each control group separately, so such a kill is lost.
 */
#ifndef SMAPS_CGROUP_WATCH_H
#define SMAPS_CGROUP_WATCH_H

#include "match/match.h"
#include "read/reader.h"

#define CGROUP_SLOW_CYCLES 6
#define CGROUP_SLOW_NS (UINT64_C(60) * 1000000000)
#define CGROUP_MOVED_PART 16
#define CGROUP_KILLS_NS (UINT64_C(3600) * 1000000000)
/* Kills are counted by minutes; the first can have begun before the hour. */
#define CGROUP_KILLS_SPAN_NS (CGROUP_KILLS_NS / 60)
#define CGROUP_KILLS_SPANS 61

struct watched_cgroup;

struct cgroup_watch {
  struct procfs *procfs;
  struct reader *reader;

  struct watched_cgroup **cgroups; /* sorted by path */
  size_t n, cap;
  uint64_t cycles;       /* since the start */
  uint64_t nodes_before; /* the newest serial of the last cycle */
  /* State of the cycle. */
  uint64_t now_ns;
  bool has_host_kills;
  uint64_t host_kills, new_host_kills;
};

/* Finds the groups that are whole, after the members were counted, reads their
 * control groups and sets group.cgroup. Without memory they have none in this
 * cycle. */
void cgroup_watch_run(struct cgroup_watch *w, const struct matcher *matcher,
                      const struct process_table *processes, uint64_t now_ns);

/* Kills by minute. */
struct recent_kills {
  uint32_t by_span[CGROUP_KILLS_SPANS]; /* at minute % CGROUP_KILLS_SPANS */
  uint64_t span;                        /* the latest minute since boot */
  bool had_kills;                       /* in the cycle before */
};

/* What a later run of the daemon needs in order to count on: the kills of the
 * last hour, and the kernel's counts as they were read last. */
struct cgroup_kills {
  /* hierarchy, which is CGROUP_NOWHERE if its files were not there any more;
   * is_kernels, kills, parent_kills, whether they are known, ino, and oomd. */
  struct memory_cgroup counts;
  struct recent_kills kills, oomd_kills;
};

/* The path of the next control group whose kills are known. *cursor starts at
 * 0. NULL at the end. */
const char *cgroup_watch_next_kills(const struct cgroup_watch *w,
                                    size_t *cursor, struct cgroup_kills *ret);

/*
 * Takes what an earlier run has known, of less than an hour ago. Before the
 * first cgroup_watch_run(), that adds what the kernel has counted since then; a
 * kill in a control group that was unknown then is not found. A control group
 * that this run has watched already keeps what it has. Without memory it is
 * lost.
 */
void cgroup_watch_recall(struct cgroup_watch *w, const char *path,
                         const struct cgroup_kills *k);

/* The same for vmstat's count, before the first cgroup_watch_run(). */
void cgroup_watch_recall_host(struct cgroup_watch *w, uint64_t host_kills);

/* A group that had this control group, and that may have no member any more,
 * shows its kills. */
void cgroup_watch_recall_group(struct cgroup_watch *w, struct group *g,
                               const char *path);

void cgroup_watch_done(struct cgroup_watch *w);

#endif
