#include "cgroup/memory_cgroup.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cgroup/cgroup.h"

/* --- limits --- */

/* The files are missing in the root, and where the controller is not enabled.
 */
static void read_limit(const struct cgroup_place *place, const char *name,
                       uint64_t *least) {
  struct cgroup_file f;
  uint64_t bytes;

  if (cgroup_place_read(place, name, &f) == 0 &&
      cgroup_parse_limit(f.text, f.len, &bytes) && bytes < *least)
    *least = bytes;
}

/* The lowest limit of the control group and all its parents in the mount. */
static uint64_t least_limit(struct cgroup_place *place) {
  uint64_t least = CGROUP_LIMIT_NONE;

  do {
    read_limit(place, place->is_v1 ? "memory.limit_in_bytes" : "memory.max",
               &least);
    if (!place->is_v1)
      read_limit(place, "memory.high", &least);
  } while (cgroup_place_climb(place));
  return least;
}

/* --- values --- */

/* Reads the file's only number, or the number of a key. */
static bool read_number(const struct cgroup_place *place, const char *name,
                        const char *key, struct cgroup_file *f, uint64_t *ret) {
  if (cgroup_place_read(place, name, f) < 0)
    return false;
  return key ? cgroup_parse_keyed(f->text, f->len, key, ret)
             : cgroup_parse_limit(f->text, f->len, ret);
}

static void read_kills(const struct cgroup_place *place,
                       struct memory_cgroup_reading *ret) {
  struct cgroup_place parent = *place;
  const char *name = place->is_v1 ? "memory.oom_control" : "memory.events";
  struct cgroup_file f;

  if (read_number(place, name, "oom_kill", &f, &ret->kills)) {
    ret->known |= CGROUP_HAS_KILLS;
    ret->ino = f.ino;
  }
  /* In version 1 the parent does not count kills in its children. */
  ret->has_parent_kills =
      !place->is_v1 && cgroup_place_climb(&parent) &&
      read_number(&parent, name, "oom_kill", &f, &ret->parent_kills);
}

/* Before Linux 5.18 the sum has no line of its own. */
static bool sum_kernel(const struct cgroup_file *f, uint64_t *ret) {
  static const char *const parts[] = {"slab", "kernel_stack", "pagetables",
                                      "percpu", "sock"};
  uint64_t sum = 0, part;
  bool has_any = false;

  if (cgroup_parse_keyed(f->text, f->len, "kernel", ret))
    return true;
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
    if (cgroup_parse_keyed(f->text, f->len, parts[i], &part)) {
      sum += part;
      has_any = true;
    }
  if (has_any)
    *ret = sum;
  return has_any;
}

static void set_limit(uint64_t bytes, struct memory_cgroup_reading *ret) {
  ret->limit = bytes < CGROUP_LIMIT_NONE ? bytes : CGROUP_LIMIT_NONE;
  ret->known |= CGROUP_HAS_LIMIT;
}

static void read_stat(const struct cgroup_place *place,
                      struct memory_cgroup_reading *ret) {
  const char *inactive = place->is_v1 ? "total_inactive_file" : "inactive_file";
  struct cgroup_file f;
  uint64_t limit;

  if (!read_number(place, "memory.stat", place->is_v1 ? "total_cache" : "file",
                   &f, &ret->file))
    return;
  ret->known |= CGROUP_HAS_FILE;
  if (!cgroup_parse_keyed(f.text, f.len, inactive, &ret->inactive_file))
    ret->inactive_file = 0;
  /* Version 1 shows the lowest limit of all parents, also those outside of the
   * mount. */
  if (place->is_v1 &&
      cgroup_parse_keyed(f.text, f.len, "hierarchical_memory_limit", &limit))
    set_limit(limit, ret);
  if (place->is_v1 ? read_number(place, "memory.kmem.usage_in_bytes", NULL, &f,
                                 &ret->kernel)
                   : sum_kernel(&f, &ret->kernel))
    ret->known |= CGROUP_HAS_KERNEL;
}

/* --- the place --- */

/* True if the member is in the control group, or in one below. */
static bool is_within(const char *place, const char *path) {
  size_t len = strlen(path);

  return strncmp(place, path, len) == 0 &&
         (place[len] == '/' || place[len] == '\0');
}

static bool is_found(const struct cgroup_mounts *mounts,
                     struct cgroup_place *place) {
  cgroup_place_find(mounts, place);
  return place->mount_len > 0 && access(place->directory, F_OK) == 0;
}

static bool is_kernels(const struct cgroup_place *place) {
  struct statfs fs;

  return statfs(place->directory, &fs) == 0 &&
         fs.f_type == (place->is_v1 ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC);
}

static int find_by_member(struct procfs *procfs, struct cgroup_mounts *mounts,
                          const char *path,
                          const struct memory_cgroup_request *request,
                          struct cgroup_place *place,
                          struct memory_cgroup_reading *ret) {
  int fd, rc = procfs_open_process(procfs, request->pid, &fd);
  bool is_there;

  if (rc != 0)
    return rc;
  rc = cgroup_place_of(procfs, fd, place);
  close(fd);
  if (rc == -EBADMSG) /* the kernel has no such controller */
    ret->absence = CGROUP_NO_MEMORY;
  if (rc != 0)
    return rc == -EBADMSG ? 0 : rc;
  if (path && (!is_within(place->path, path) || strlen(path) >= PATH_MAX)) {
    ret->absence = CGROUP_ELSEWHERE;
    return 0;
  }
  if (path)
    strcpy(place->path, path);
  is_there = is_found(mounts, place);
  if (!is_there && !mounts->is_new) {
    rc = cgroup_mounts_read(procfs, mounts);
    is_there = is_found(mounts, place);
  }
  if (place->mount_len == 0)
    ret->absence = CGROUP_OUT_OF_SIGHT;
  else
    ret->is_gone = !is_there;
  return rc;
}

static int find_place(struct procfs *procfs, struct cgroup_mounts *mounts,
                      const char *path,
                      const struct memory_cgroup_request *request,
                      struct cgroup_place *place,
                      struct memory_cgroup_reading *ret) {
  const struct memory_cgroup_place *known = &request->place;
  int rc;

  if (known->directory) {
    strcpy(place->directory, known->directory);
    place->mount_len = known->mount_len;
    place->is_v1 = known->is_v1;
    return 0;
  }
  rc = find_by_member(procfs, mounts, path, request, place, ret);
  if (rc == PROCFS_DENIED)
    ret->absence = CGROUP_UNKNOWN;
  else if (rc > 0)
    ret->is_gone = true;
  if (rc != 0 || ret->absence != CGROUP_PRESENT || ret->is_gone)
    return rc < 0 ? rc : 0;
  ret->place.directory = strdup(place->directory);
  ret->place.mount_len = place->mount_len;
  ret->place.is_v1 = place->is_v1;
  ret->place.is_kernels = is_kernels(place);
  return ret->place.directory ? 0 : -ENOMEM;
}

const char *memory_cgroup_usage_file(bool is_v1) {
  return is_v1 ? "memory.usage_in_bytes" : "memory.current";
}

static void read_usage(const struct cgroup_place *place, bool is_found,
                       struct memory_cgroup_reading *ret) {
  struct cgroup_file f;
  int rc = cgroup_place_read(place, memory_cgroup_usage_file(place->is_v1), &f);

  if (rc == 0 && cgroup_parse_limit(f.text, f.len, &ret->bytes))
    ret->known |= CGROUP_HAS_BYTES;
  else if (is_found)
    ret->absence = CGROUP_NO_MEMORY;
  else
    ret->is_gone = true;
}

int memory_cgroup_read(struct procfs *procfs, struct cgroup_mounts *mounts,
                       const char *path,
                       const struct memory_cgroup_request *request,
                       struct memory_cgroup_reading *ret) {
  struct cgroup_place place;
  int rc;

  *ret = (struct memory_cgroup_reading){.absence = CGROUP_PRESENT};
  rc = find_place(procfs, mounts, path, request, &place, ret);
  if (rc != 0 || ret->absence != CGROUP_PRESENT || ret->is_gone)
    return rc;
  procfs_announce(procfs, "the cgroup");
  if (request->wants & CGROUP_WANTS_USAGE)
    read_usage(&place, ret->place.directory != NULL, ret);
  if (request->wants & CGROUP_WANTS_KILLS)
    read_kills(&place, ret);
  if (request->wants & CGROUP_WANTS_LIMIT && !ret->is_gone) {
    read_stat(&place, ret);
    if (!(ret->known & CGROUP_HAS_LIMIT))
      set_limit(least_limit(&place), ret);
  }
  return 0;
}
