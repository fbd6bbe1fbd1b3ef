/* SPDX-License-Identifier: MIT */
/*
 * Reads statm, status and comm, which are cheap and cannot hang: the kernel
 * makes their text without the mmap lock.
 *
 * Returns 0 and fills *ret; else what procfs_read() returns, or -EBADMSG.
 */
#ifndef SMAPS_CHEAP_FILES_H
#define SMAPS_CHEAP_FILES_H

#include "proc/procfs.h"
#include "proc/statm.h"
#include "proc/status.h"

/* Through a file that stays open, or NULL; see procfs_read_kept(). */
int statm_read_of(struct procfs *p, uint32_t pid, struct procfs_file *file,
                  struct statm_sample *ret);
int status_read_of(struct procfs *p, uint32_t pid, struct status_sample *ret);
/* Finds a thread that has memory, if the main thread has ended; PROCFS_GONE if
 * there is none. The files are those of its id. */
int find_live_thread(struct procfs *p, uint32_t pid, uint32_t *ret);

/* The name, without its newline. Returns what procfs_read() does. */
int comm_read_of(struct procfs *p, uint32_t pid, struct span *ret);

/* True if a thread of it is in uninterruptible sleep: it may hold locks that
 * other files of the process wait for. The first 64 threads count. */
bool status_is_blocked(struct procfs *p, uint32_t pid);

#endif
