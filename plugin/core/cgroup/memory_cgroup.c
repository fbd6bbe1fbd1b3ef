/* SPDX-License-Identifier: MIT */
#include "cgroup/memory_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cgroup/cgroup.h"

/* Where systemd and others mount the hierarchy, and what it calls the files and
 * the keys in memory.stat. */
static const struct version {
  bool is_v1;
  const char *mount, *usage, *limit, *kills, *file, *inactive_file, *peak,
      *shmem;
} versions[] = {[CGROUP_UNIFIED] = {false, "/sys/fs/cgroup", "memory.current",
                                    "memory.max", "memory.events", "file",
                                    "inactive_file", "memory.peak", "shmem"},
                [CGROUP_V1] = {true, "/sys/fs/cgroup/memory",
                               "memory.usage_in_bytes", "memory.limit_in_bytes",
                               "memory.oom_control", "total_cache",
                               "total_inactive_file",
                               "memory.max_usage_in_bytes", "total_shmem"}};

/* A control group, with its directory open. */
struct place {
  struct procfs *procfs;
  const struct version *version;
  const char *path;
  int fd;
};

/* Opens the directory of the first `len` bytes of the path. */
static int open_above(const struct place *place, size_t len, int *ret_fd) {
  char name[PATH_MAX + 64];

  snprintf(name, sizeof(name), "%s%.*s", place->version->mount, (int)len,
           place->path);
  procfs_announce(place->procfs, "the cgroup");
  return procfs_open_outside(place->procfs, name, ret_fd);
}

/* The length of the path of the parent; 0: the root. */
static size_t length_above(const char *path, size_t len) {
  while (len > 0 && path[--len] != '/')
    ;
  return len;
}

/* Reads the file's only number, or the number of a key. */
static bool read_number(const struct place *place, int fd, const char *name,
                        const char *key, uint64_t *ret) {
  struct span text;

  if (procfs_read_in(place->procfs, fd, name, &text) != 0)
    return false;
  return key ? cgroup_parse_keyed(text, key, ret)
             : cgroup_parse_limit(text, ret);
}

/* --- limits --- */

/* The lowest limit of the control group and all its parents. The files are
 * missing in the root, and where the controller is not enabled; the second is
 * in version 2 only. */
static uint64_t least_limit(const struct place *place) {
  const char *const files[] = {place->version->limit, "memory.high"};
  size_t len = strlen(place->path), at;
  uint64_t least = CGROUP_LIMIT_NONE, bytes;
  int fd;

  do {
    at = len;
    len = length_above(place->path, at);
    if (open_above(place, at, &fd) != 0)
      continue;
    for (int i = 0; i < 2; i++)
      if (read_number(place, fd, files[i], NULL, &bytes) && bytes < least)
        least = bytes;
    close(fd);
  } while (at > 0);
  return least;
}

/* --- values --- */

static void read_kills(const struct place *place, struct memory_cgroup *m) {
  const char *name = place->version->kills;
  size_t above = length_above(place->path, strlen(place->path));
  struct stat st;
  int fd;

  if (!m->is_gone && fstat(place->fd, &st) == 0 &&
      read_number(place, place->fd, name, "oom_kill", &m->kills)) {
    m->has_kills = true;
    m->ino = st.st_ino;
    m->memory.known |= CGROUP_HAS_KILLS;
  }
  /* In version 1 the parent does not count kills in its children. */
  m->has_parent_kills = false;
  if (place->version->is_v1 || open_above(place, above, &fd) != 0)
    return;
  m->has_parent_kills =
      read_number(place, fd, name, "oom_kill", &m->parent_kills);
  close(fd);
}

/* Before Linux 5.18 the sum has no line of its own. */
static bool sum_kernel(struct span stat, uint64_t *ret) {
  static const char *const parts[] = {"slab", "kernel_stack", "pagetables",
                                      "percpu", "sock"};
  uint64_t sum = 0, part;
  bool has_any = false;

  if (cgroup_parse_keyed(stat, "kernel", ret))
    return true;
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
    if (cgroup_parse_keyed(stat, parts[i], &part)) {
      sum += part;
      has_any = true;
    }
  if (has_any)
    *ret = sum;
  return has_any;
}

static void set_limit(uint64_t bytes, struct memory_cgroup *m) {
  m->memory.limit = bytes < CGROUP_LIMIT_NONE ? bytes : CGROUP_LIMIT_NONE;
  m->memory.known |= CGROUP_HAS_LIMIT;
}

static void read_stat(const struct place *place, struct memory_cgroup *m) {
  struct span stat;
  uint64_t limit;

  if (procfs_read_in(place->procfs, place->fd, "memory.stat", &stat) != 0 ||
      !cgroup_parse_keyed(stat, place->version->file, &m->memory.file))
    return;
  m->memory.known |= CGROUP_HAS_FILE;
  if (!cgroup_parse_keyed(stat, place->version->inactive_file,
                          &m->memory.inactive_file))
    m->memory.inactive_file = 0;
  if (cgroup_parse_keyed(stat, place->version->shmem, &m->memory.shmem))
    m->memory.known |= CGROUP_HAS_SHMEM;
  /* Version 1 shows the lowest limit of all parents, also those out of sight.
   */
  if (place->version->is_v1 &&
      cgroup_parse_keyed(stat, "hierarchical_memory_limit", &limit))
    set_limit(limit, m);
  if (place->version->is_v1
          ? read_number(place, place->fd, "memory.kmem.usage_in_bytes", NULL,
                        &m->memory.kernel)
          : sum_kernel(stat, &m->memory.kernel))
    m->memory.known |= CGROUP_HAS_KERNEL;
}

bool memory_cgroup_path(enum cgroup_hierarchy hierarchy, const char *path,
                        enum cgroup_file file, char *ret, size_t size) {
  const struct version *version = &versions[hierarchy];
  const char *name = file == CGROUP_FILE_USAGE  ? version->usage
                     : file == CGROUP_FILE_PEAK ? version->peak
                                                : "";

  if (version->is_v1 && file != CGROUP_FILE_USAGE)
    return false;
  snprintf(ret, size, "%s%s/%s", version->mount, path, name);
  return true;
}

/* --- values that are read only if they are asked for --- */

static void read_peak_ever(const struct place *place, struct memory_cgroup *m) {
  m->memory.known &= ~CGROUP_HAS_PEAK_EVER;
  if (read_number(place, place->fd, place->version->peak, NULL,
                  &m->memory.peak_ever))
    m->memory.known |= CGROUP_HAS_PEAK_EVER;
}

/* In version 1 there is nothing like memory.high, and failcnt counts what "max"
 * does. */
static void read_events(const struct place *place, struct memory_cgroup *m) {
  struct span events;

  m->memory.known &= ~(CGROUP_HAS_EVENTS_HIGH | CGROUP_HAS_EVENTS_MAX);
  if (place->version->is_v1) {
    if (read_number(place, place->fd, "memory.failcnt", NULL,
                    &m->memory.events_max))
      m->memory.known |= CGROUP_HAS_EVENTS_MAX;
    return;
  }
  if (procfs_read_in(place->procfs, place->fd, "memory.events", &events) != 0)
    return;
  if (cgroup_parse_keyed(events, "high", &m->memory.events_high))
    m->memory.known |= CGROUP_HAS_EVENTS_HIGH;
  if (cgroup_parse_keyed(events, "max", &m->memory.events_max))
    m->memory.known |= CGROUP_HAS_EVENTS_MAX;
}

/* Only version 2 has it. */
static void read_stalls(const struct place *place, struct memory_cgroup *m) {
  struct cgroup_stalls stalls = {.is_known = true};
  struct span text;
  struct stat st;

  m->stalls.is_known = false;
  if (place->version->is_v1 || fstat(place->fd, &st) < 0 ||
      procfs_read_in(place->procfs, place->fd, "memory.pressure", &text) != 0 ||
      !cgroup_parse_pressure(text, "some", &stalls.some_us) ||
      !cgroup_parse_pressure(text, "full", &stalls.full_us))
    return;
  stalls.ino = st.st_ino;
  stalls.read_ns = m->now_ns;
  m->stalls = stalls;
}

/* An attribute that is missing counts as 0. */
static bool read_attribute(int fd, const char *name, uint64_t *ret) {
  char text[24];
  ssize_t n = fgetxattr(fd, name, text, sizeof(text));
  struct cursor s;
  uint64_t value = 0;

  if (n < 0 && errno != ENODATA)
    return false;
  s = cursor_begin(text, n < 0 ? 0 : (size_t)n);
  if (n > 0 && (!parse_u64(&s, &value) || !cursor_is_done(&s)))
    return false;
  *ret = value;
  return true;
}

void memory_cgroup_count_oomd(int dir_fd, struct oomd_counts *ret,
                              bool *ret_is_removed) {
  struct oomd_counts counts;

  counts.is_known = read_attribute(dir_fd, "user.oomd_ooms", &counts.ooms) &&
                    read_attribute(dir_fd, "user.oomd_kill", &counts.kills);
  *ret = counts.is_known ? counts : (struct oomd_counts){0};
  *ret_is_removed = faccessat(dir_fd, "cgroup.procs", F_OK, 0) < 0;
}

/* The place is open as O_PATH, which has no attributes. */
static void read_oomd(const struct place *place, struct memory_cgroup *m) {
  bool is_removed;
  int fd = -1;

  m->oomd.is_known = false;
  procfs_announce(place->procfs, "the cgroup");
  if (!place->version->is_v1)
    fd = openat(place->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return;
  memory_cgroup_count_oomd(fd, &m->oomd, &is_removed);
  close(fd);
}

static void read_extras(const struct place *place, struct memory_cgroup *m) {
  if (m->wants & CGROUP_WANTS_PEAK_EVER)
    read_peak_ever(place, m);
  if (m->wants & CGROUP_WANTS_EVENTS)
    read_events(place, m);
  if (m->wants & CGROUP_WANTS_PRESSURE)
    read_stalls(place, m);
  if (m->wants & CGROUP_WANTS_OOMD)
    read_oomd(place, m);
}

/* --- all of it --- */

static void read_usage(const struct place *place, bool is_new,
                       struct memory_cgroup *m) {
  if (read_number(place, place->fd, place->version->usage, NULL,
                  &m->memory.bytes))
    m->memory.known |= CGROUP_HAS_BYTES;
  else if (is_new)
    m->memory.absence = CGROUP_NO_MEMORY;
  else
    m->is_gone = true;
}

/* --- the place --- */

/* True if the member is in the control group, or in one below. */
static bool is_within(struct span member, const char *path) {
  size_t len = strlen(path);

  return member.len >= len && memcmp(member.text, path, len) == 0 &&
         (member.len == len || member.text[len] == '/');
}

/* A path outside of the reader's cgroup namespace begins with "/..". */
static int open_in(struct place *place, enum cgroup_hierarchy hierarchy) {
  if (strncmp(place->path, "/..", 3) == 0)
    return PROCFS_GONE;
  place->version = &versions[hierarchy];
  return open_above(place, strlen(place->path), &place->fd);
}

static bool is_kernels(const struct place *place) {
  uint32_t type =
      place->version->is_v1 ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC;
  struct statfs fs;

  return fstatfs(place->fd, &fs) == 0 && (uint32_t)fs.f_type == type;
}

static int open_new(struct place *place, struct memory_cgroup *m,
                    enum cgroup_hierarchy hierarchy) {
  int rc = open_in(place, hierarchy);

  if (rc > 0)
    m->memory.absence = CGROUP_OUT_OF_SIGHT;
  if (rc != 0)
    return rc;
  m->hierarchy = hierarchy;
  m->is_kernels = is_kernels(place);
  return 0;
}

/* Finds the hierarchy of the memory controller. */
static int find(struct place *place, struct memory_cgroup *m) {
  struct span text, member;
  bool is_v1;
  int rc = procfs_read(place->procfs, m->pid, "cgroup", &text);

  if (rc == PROCFS_DENIED)
    m->memory.absence = CGROUP_UNKNOWN;
  else if (rc > 0)
    m->is_gone = true;
  if (rc != 0)
    return rc;
  if (cgroup_parse_memory(text.text, text.len, &is_v1, &member) < 0)
    m->memory.absence = CGROUP_NO_MEMORY; /* the kernel has no controller */
  else if (!is_within(member, place->path))
    m->memory.absence = CGROUP_ELSEWHERE;
  else
    return open_new(place, m, is_v1 ? CGROUP_V1 : CGROUP_UNIFIED);
  return 0;
}

static void read_place(const struct place *place, bool is_new,
                       struct memory_cgroup *m) {
  m->is_gone = place->fd < 0;
  if (m->wants & CGROUP_WANTS_USAGE && !m->is_gone)
    read_usage(place, is_new, m);
  m->memory.is_found = !m->is_gone;
  if (m->wants & CGROUP_WANTS_KILLS)
    read_kills(place, m);
  if (!m->is_gone)
    read_extras(place, m);
  if (m->wants & CGROUP_WANTS_LIMIT && !m->is_gone) {
    m->memory.known &= ~CGROUP_HAS_LIMIT;
    read_stat(place, m);
    if (!cgroup_memory_has(&m->memory, CGROUP_HAS_LIMIT))
      set_limit(least_limit(place), m);
  }
}

int memory_cgroup_read(struct procfs *procfs, const char *path,
                       struct memory_cgroup *m) {
  struct place place = {.procfs = procfs,
                        .version = &versions[CGROUP_UNIFIED],
                        .path = path,
                        .fd = -1};
  bool is_new = m->hierarchy == CGROUP_NOWHERE;
  int rc;

  m->memory.absence = CGROUP_PRESENT;
  m->is_gone = m->memory.is_found = false;
  if (m->wants & CGROUP_WANTS_USAGE)
    m->memory.known &= ~CGROUP_HAS_BYTES;
  rc = is_new ? find(&place, m) : open_in(&place, m->hierarchy);
  if (rc >= 0 && m->memory.absence == CGROUP_PRESENT && !m->is_gone)
    read_place(&place, is_new, m);
  if (place.fd >= 0)
    close(place.fd);
  return rc < 0 ? rc : 0;
}
