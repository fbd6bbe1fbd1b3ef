/*
 * The memory of a control group: the files memory.current, memory.events and
 * memory.stat of version 2, or their counterparts of version 1; and its limit,
 * the least of memory.max and memory.high of the group and of all groups above
 * it that are visible here.
 *
 * The hierarchies are looked for at the places where systemd mounts them, in
 * the host's file system; a captured tree shows only what was captured below
 * it.
 *
 * A group that is removed and made again, as by the restart of a service, has
 * the same path, and is found there. So this module keeps no file open between
 * readings. A caller that keeps a file open has to read the group here again
 * when the file fails: after its group is removed, it fails for ever.
 */
#ifndef SMAPS_MEMORY_CGROUP_H
#define SMAPS_MEMORY_CGROUP_H

#include <smaps/procfs.h>

#include "cgroup/cgroup_memory.h"

/* The hierarchy that has the memory controller. */
enum cgroup_hierarchy {
  CGROUP_NOWHERE, /* not found yet */
  CGROUP_UNIFIED,
  CGROUP_HYBRID, /* version 2, beside other controllers of version 1 */
  CGROUP_V1,
};

/* The values that are read. */
#define CGROUP_WANTS_LIMIT 1u /* and memory.stat */
#define CGROUP_WANTS_KILLS 2u
#define CGROUP_WANTS_USAGE 4u /* required until the hierarchy is known */

/* Makes the path of the host's file with the usage. */
void memory_cgroup_usage_path(enum cgroup_hierarchy hierarchy, const char *path,
                              char *ret, size_t size);

/* A group as it is known. A reading replaces the values that it has read. */
struct memory_cgroup {
  uint32_t pid; /* of a member, to find the hierarchy by */
  unsigned wants;
  enum cgroup_hierarchy hierarchy;
  bool is_kernels; /* on a cgroup file system: its usage cannot hang */
  struct cgroup_memory memory;
  bool is_gone; /* the group was removed, or its member has ended */
  bool has_kills, has_parent_kills;
  uint64_t kills;        /* in the life of the group */
  uint64_t ino;          /* of the directory: a new group has another one */
  uint64_t parent_kills; /* with those of removed children; not in version 1 */
};

/*
 * Reads the group with that path, or, with NULL, the group that the member is
 * in. Returns 0, also if the group is absent, or a negative errno. May hang
 * like any file of the tree or of the group, so only the reader calls it.
 */
int memory_cgroup_read(struct procfs *procfs, const char *path,
                       struct memory_cgroup *m);

#endif
