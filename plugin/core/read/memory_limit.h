/*
 * The limit that control groups set to the memory of a process: memory.max and
 * memory.high (cgroup v2) or memory.limit_in_bytes (v1) of its group and of all
 * groups above it that this host shows.
 *
 * The files of the groups are found through self/mountinfo of the tree, so that
 * a captured tree, which has none, has no limits of another host.
 */
#ifndef SMAPS_MEMORY_LIMIT_H
#define SMAPS_MEMORY_LIMIT_H

#include <smaps/procfs.h>

/* Larger limits are none: v1 has no other word for it. */
#define MEMORY_LIMIT_NONE (UINT64_C(1) << 62)

/*
 * Reads the least limit, in bytes, of the process whose directory is open;
 * MEMORY_LIMIT_NONE if there is no limit, or no group whose files are found.
 * Returns 0, an outcome of procfs.h or a negative errno. May hang where the
 * tree does, and is called by the reader alone.
 */
int memory_limit_read(struct procfs *procfs, int process_fd,
                      uint64_t *ret_bytes);

#endif
