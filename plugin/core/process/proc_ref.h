/* SPDX-License-Identifier: MIT */
/* Which process is to be read, for threads that do not see the table. */
#ifndef SMAPS_PROC_REF_H
#define SMAPS_PROC_REF_H

#include "proc/cheap_files.h"
#include "process/process.h"

/* The data that reading a process needs; a copy, since the process may be
 * removed from the table before a read returns. */
struct proc_ref {
  uint32_t pid;
  uint32_t ino;
  uint64_t starttime_ticks;
  uint64_t image;
  uint64_t identified_ns;
  uint64_t resident_pages;
  struct stored_attributes attributes; /* shared, for an inspection; or empty */
  bool is_settled;
  bool is_dead_leader;
};

/* True if the stat, which was read by pid, is of that process: another one may
 * have come to the pid. */
static inline bool proc_ref_is_same(const struct proc_ref *p,
                                    const struct stat_sample *s) {
  return p->starttime_ticks == s->starttime_ticks;
}

/*
 * Finds whose files show the memory of a process: its own, or those of a live
 * thread if the main thread has exited. The pid is not checked again: it comes
 * to another process only after thousands of other pids. rollup_reader.c does,
 * by size.
 */
static inline int proc_ref_find_memory(const struct proc_ref *p,
                                       struct procfs *procfs,
                                       uint32_t *ret_pid) {
  if (p->is_dead_leader)
    return find_live_thread(procfs, p->pid, ret_pid);
  *ret_pid = p->pid;
  return 0;
}

#endif
