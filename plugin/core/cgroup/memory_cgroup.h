/* SPDX-License-Identifier: MIT */
/*
 * The memory of a control group (cgroup-v2.rst, "Memory Interface Files";
 * cgroup-v1/memory.rst): the files memory.current, memory.events and
 * memory.stat of version 2, or their counterparts of version 1; and its limit,
 * the least of memory.max and memory.high of the group and of all groups above
 * it that are visible here. And what only some ask for: memory.peak, the
 * pressure stall information of memory.pressure, the events of memory.events,
 * and the kills by systemd-oomd.
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

#include <math.h>

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
#define CGROUP_HAS_PEAK 32u
#define CGROUP_HAS_PEAK_EVER 64u
#define CGROUP_HAS_PRESSURE 128u
#define CGROUP_HAS_EVENTS_HIGH 256u
#define CGROUP_HAS_EVENTS_MAX 512u
#define CGROUP_HAS_OOMD_KILLS 1024u
#define CGROUP_HAS_SHMEM 2048u
/* Counted by us, and known even if the control group is gone. */
#define CGROUP_COUNTED (CGROUP_HAS_KILLS | CGROUP_HAS_OOMD_KILLS)

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
  uint64_t shmem;  /* the part of file that is tmpfs and the like */
  uint64_t kernel; /* slab, page tables, stacks of threads and the like */
  /* Processes that were killed for memory in the last hour, and since a group
   * has shown it last. */
  uint64_t kills, new_kills;
  uint64_t
      oomd_kills; /* by systemd-oomd, in the last hour: new_kills has them */
  uint64_t peak;  /* the highest usage since the cycle before */
  uint64_t peak_ever; /* the highest since the control group was made */
  /* How often the usage was about to exceed memory.high, and memory.max, since
   * the control group was made. */
  uint64_t events_high, events_max;
  /* Percent of the time since the reading before in which some, or all, of its
   * processes waited for memory. */
  double pressure_some, pressure_full;
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

/* The working set as a percentage of that limit, more than 100 if memory.high
 * is exceeded; NaN if it is unknown, or the limit is 0. */
static inline double cgroup_memory_used_percent(const struct cgroup_memory *m,
                                                uint64_t mem_total) {
  uint64_t limit;

  if (!(m->known & CGROUP_HAS_BYTES) ||
      !cgroup_memory_limit(m, mem_total, &limit) || limit == 0)
    return (double)NAN;
  return 100 * (double)cgroup_memory_working_set(m) / (double)limit;
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
/* The files of these are read only if a group reports them. */
#define CGROUP_WANTS_PEAK 8u /* not read here: see memory_cgroup_path() */
#define CGROUP_WANTS_PEAK_EVER 16u
#define CGROUP_WANTS_PRESSURE 32u
#define CGROUP_WANTS_EVENTS 64u
#define CGROUP_WANTS_OOMD 128u

/* Files that a caller may keep open. Since Linux 6.12 a write to memory.peak
 * makes it show, through that descriptor only, the highest usage since the
 * write; in version 1 a reset is for all, so there is no such file. */
enum cgroup_file { CGROUP_FILE_USAGE, CGROUP_FILE_PEAK, CGROUP_FILE_DIRECTORY };

/* Makes the path of the host's file. False if the hierarchy does not have it.
 */
bool memory_cgroup_path(enum cgroup_hierarchy hierarchy, const char *path,
                        enum cgroup_file file, char *ret, size_t size);

/*
 * What systemd-oomd notes in extended attributes of the directory (systemd 258,
 * oomd_cgroup_kill): user.oomd_ooms counts its attempts, before each, and
 * user.oomd_kill the processes that it has killed, after that. It kills with
 * SIGKILL, so the kernel's oom_kill lacks them. The attributes can be read from
 * an open directory after it was removed. Not in version 1, where systemd-oomd
 * does not run, and not before Linux 5.7.
 */
struct oomd_counts {
  bool is_known;
  uint64_t ooms, kills;
};

/* Reads them from the directory, which cannot hang if that is the kernel's.
 * *ret_is_removed: the control group is gone. */
void memory_cgroup_count_oomd(int dir_fd, struct oomd_counts *ret,
                              bool *ret_is_removed);

/* The stalls of memory.pressure since the control group was made. */
struct cgroup_stalls {
  bool is_known;
  uint64_t some_us, full_us;
  uint64_t ino;     /* of the directory */
  uint64_t read_ns; /* now_ns of the reading */
};

/* A group as it is known. A reading replaces the values that it has read. */
struct memory_cgroup {
  uint32_t pid; /* of a member, to find the hierarchy by */
  unsigned wants;
  uint64_t now_ns; /* set by the reader */
  enum cgroup_hierarchy hierarchy;
  bool is_kernels; /* on a cgroup file system: its usage cannot hang */
  struct cgroup_memory memory;
  bool is_gone; /* the group was removed, or its member has ended */
  bool has_kills, has_parent_kills;
  uint64_t kills;        /* in the life of the group */
  uint64_t ino;          /* of the directory: a new group has another one */
  uint64_t parent_kills; /* with those of removed children; not in version 1 */
  struct oomd_counts oomd;
  struct cgroup_stalls stalls;
};

/*
 * Reads the group with that path. Returns 0, also if the group is absent, or a
 * negative errno. May hang like any file of the tree or of the group, so only
 * the reader calls it.
 */
int memory_cgroup_read(struct procfs *procfs, const char *path,
                       struct memory_cgroup *m);

#endif
