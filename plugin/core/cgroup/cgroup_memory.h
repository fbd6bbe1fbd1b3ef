/*
 * The memory of the control group that a group of processes has for itself
 * (cgroup-v2.rst, "Memory Interface Files"; cgroup-v1/memory.rst).
 *
 * A page is charged to the control group that touches it first, and page cache
 * and the kernel's memory are charged as well. So this is neither a PSS nor a
 * sum over the members.
 */
#ifndef SMAPS_CGROUP_MEMORY_H
#define SMAPS_CGROUP_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Explains why nothing is known of a control group. */
enum cgroup_absence {
  CGROUP_PRESENT,
  CGROUP_NOT_ASKED,    /* the rule does not select by control group */
  CGROUP_EMPTY,        /* the group has no member */
  CGROUP_UNKNOWN,      /* a member's control group is unknown */
  CGROUP_ROOT,         /* the members have only the root in common */
  CGROUP_SHARED,       /* other processes are in it, too */
  CGROUP_OUT_OF_SIGHT, /* no mounted hierarchy shows it */
  CGROUP_ELSEWHERE,    /* the memory controller has the members elsewhere */
  CGROUP_NO_MEMORY,    /* the memory controller is not enabled for it */
  CGROUP_HUNG,         /* its files hang */
};

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
  uint64_t kills;  /* processes that were killed for memory in the last hour */
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

#endif
