/*
 * The memory of a control group: the files memory.current, memory.events and
 * memory.stat of version 2, or their counterparts of version 1; and its limit,
 * the least of memory.max and memory.high of the group and of all groups above
 * it that are visible here.
 *
 * A group that is removed and made again, as by the restart of a service, has
 * the same path, and is found there. So this module keeps no file open between
 * readings. A caller that keeps a file open has to find the group here again
 * when the file fails: after its group is removed, it fails for ever.
 */
#ifndef SMAPS_MEMORY_CGROUP_H
#define SMAPS_MEMORY_CGROUP_H

#include <smaps/procfs.h>

#include "cgroup/cgroup_memory.h"
#include "cgroup/cgroup_place.h"

/* The directory of a group. */
struct memory_cgroup_place {
  char *directory; /* owned; NULL: not found yet */
  size_t mount_len;
  bool is_v1;
  bool is_kernels; /* on a cgroup file system: its usage cannot hang */
};

/* The values that are read. */
#define CGROUP_WANTS_LIMIT 1u /* and memory.stat */
#define CGROUP_WANTS_KILLS 2u
#define CGROUP_WANTS_USAGE 4u /* required until the place is known */

/* The name of the file with the usage. */
const char *memory_cgroup_usage_file(bool is_v1);

struct memory_cgroup_request {
  uint32_t pid; /* of a member, to find the files by */
  struct memory_cgroup_place place;
  unsigned wants;
};

struct memory_cgroup_reading {
  /* The place, if it was found by this reading. */
  struct memory_cgroup_place place;
  enum cgroup_absence absence;
  bool is_gone;   /* the group was removed, or its member has ended */
  unsigned known; /* as in struct cgroup_memory */
  uint64_t bytes, limit, file, inactive_file, kernel;
  uint64_t kills; /* in the life of the group */
  uint64_t ino;   /* of the file with kills: a new group has another one */
  bool has_parent_kills; /* parent_kills, with removed children, is known */
  uint64_t parent_kills;
};

/*
 * Reads the group with that path, or, with NULL, the group that the member is
 * in; and the mounts again, if the known ones do not show the group. Returns 0,
 * also if the group is absent, or a negative errno. *ret is filled in, and its
 * place is to be freed. May hang like any file of the tree or of the group, so
 * only the reader calls it.
 */
int memory_cgroup_read(struct procfs *procfs, struct cgroup_mounts *mounts,
                       const char *path,
                       const struct memory_cgroup_request *request,
                       struct memory_cgroup_reading *ret);

#endif
