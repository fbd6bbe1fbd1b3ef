/*
 * The memory of a control group (cgroup-v2.rst, "Memory Interface Files";
 * cgroup-v1/memory.rst): the files memory.current, memory.events and
 * memory.stat of version 2, or their counterparts of version 1; and its limit,
 * the least of memory.max and memory.high of the group and of all groups above
 * it that are visible here.
 *
 * A page is charged to the control group that touches it first, and page cache
 * and the kernel's memory are charged as well. So this is neither a PSS nor a
 * sum over the members.
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

#include "proc/procfs.h"
#include <smaps/words.h>

/* Explains why nothing is known of a control group: words.h says what each
 * means. */
#define ABSENCE_NUMBER(name, key, words) CGROUP_##name,
enum cgroup_absence { CGROUP_PRESENT, ABSENCE_TABLE(ABSENCE_NUMBER) };
#undef ABSENCE_NUMBER

/* Bit per field that is known. */
#define CGROUP_HAS_BYTES 1u
#define CGROUP_HAS_LIMIT 2u
#define CGROUP_HAS_FILE 4u
#define CGROUP_HAS_KERNEL 8u
#define CGROUP_HAS_KILLS 16u

/* No limit. Larger values mean "no limit" as well: version 1 has no word for
 * it. */
#define CGROUP_LIMIT_NONE (UINT64_C(1) << 62)

struct cgroup_memory {
  const char *path; /* in its hierarchy */
  enum cgroup_absence absence;
  bool is_found; /* its files were there, though they may hang */
  unsigned known;
  uint64_t bytes; /* memory.current, memory.usage_in_bytes */
  uint64_t limit; /* the least on the way up, or CGROUP_LIMIT_NONE */
  uint64_t file;  /* page cache and tmpfs, mapped or not */
  /* The part of the page cache that was not used lately: the kernel takes it
   * back before it kills anyone. Known with `file`. */
  uint64_t inactive_file;
  uint64_t kernel; /* slab, page tables, stacks of threads and the like */
  /* Processes that were killed for memory in the last hour, and in this
   * interval. */
  uint64_t kills, new_kills;
};

/* The working set, as cAdvisor and the kubelet call it: the kernel cannot just
 * take it back. The last reading of inactive_file may be older than the usage.
 */
static inline uint64_t
cgroup_memory_working_set(const struct cgroup_memory *m) {
  uint64_t inactive = m->known & CGROUP_HAS_FILE ? m->inactive_file : 0;

  return m->bytes > inactive ? m->bytes - inactive : 0;
}

/* The limit in bytes, at most the memory of the host (0: unknown), which is the
 * limit without one. False if it is unknown. */
static inline bool cgroup_memory_limit(const struct cgroup_memory *m,
                                       uint64_t mem_total,
                                       uint64_t *ret_bytes) {
  bool is_below = m->limit < mem_total || mem_total == 0;

  if (!(m->known & CGROUP_HAS_LIMIT) ||
      (mem_total == 0 && m->limit >= CGROUP_LIMIT_NONE))
    return false;
  *ret_bytes = is_below ? m->limit : mem_total;
  return true;
}

static inline bool cgroup_memory_has(const struct cgroup_memory *m,
                                     unsigned fields) {
  return (m->known & fields) == fields;
}

/* The hierarchy that has the memory controller. */
enum cgroup_hierarchy {
  CGROUP_NOWHERE, /* not found yet */
  CGROUP_UNIFIED,
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
 * Reads the group with that path. Returns 0, also if the group is absent, or a
 * negative errno. May hang like any file of the tree or of the group, so only
 * the reader calls it.
 */
int memory_cgroup_read(struct procfs *procfs, const char *path,
                       struct memory_cgroup *m);

#endif
