/*
 * The limit that control groups set to the memory of a process: memory.max and
 * memory.high (cgroup v2) or memory.limit_in_bytes (v1) of its group and of all
 * groups above it that this host shows.
 */
#ifndef SMAPS_MEMORY_LIMIT_H
#define SMAPS_MEMORY_LIMIT_H

#include "cgroup/cgroup_memory.h"
#include "cgroup/cgroup_place.h"

/*
 * Reads the least limit, in bytes, of the process whose directory is open;
 * CGROUP_LIMIT_NONE if there is no limit, or no group whose files are found.
 * Returns 0, an outcome of procfs.h or a negative errno. May hang where the
 * tree does, and is called by the reader alone.
 */
int memory_limit_read(struct procfs *procfs, int process_fd,
                      uint64_t *ret_bytes);

/* The least limit of the groups from a directory upwards. */
struct memory_limit_above {
  bool is_new; /* set with the limit; cleared by whoever goes by older ones */
  char directory[PATH_MAX];
  uint64_t bytes;
};

/* The least limit of the group at the place, or CGROUP_LIMIT_NONE. Climbs to
 * the mount point, but for groups whose limit *above has: siblings are read one
 * after the other. */
uint64_t memory_limit_at(struct procfs *procfs, struct cgroup_place *place,
                         struct memory_limit_above *above);

#endif
