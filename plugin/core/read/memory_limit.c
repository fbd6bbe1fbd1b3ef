#include "read/memory_limit.h"

#include "proc/cgroup.h"

/* A group lacks the files if the controller is not enabled for it, as the root
 * does. */
static void read_limit(const struct cgroup_place *place, const char *name,
                       uint64_t *least) {
  struct cgroup_file f;
  uint64_t bytes;

  if (cgroup_place_read(place, name, &f) == 0 &&
      cgroup_parse_limit(f.text, f.len, &bytes) && bytes < *least)
    *least = bytes;
}

static void read_limits(const struct cgroup_place *place, uint64_t *least) {
  if (place->is_v1) {
    read_limit(place, "memory.limit_in_bytes", least);
  } else {
    read_limit(place, "memory.max", least);
    read_limit(place, "memory.high", least);
  }
}

uint64_t memory_limit_at(struct procfs *procfs, struct cgroup_place *place) {
  uint64_t least = CGROUP_LIMIT_NONE;

  procfs_announce(procfs, "the cgroup");
  do
    read_limits(place, &least);
  while (cgroup_place_climb(place));
  return least;
}

int memory_limit_read(struct procfs *procfs, int process_fd,
                      uint64_t *ret_bytes) {
  struct cgroup_mounts mounts = {.text = NULL};
  struct cgroup_place place;
  int rc = cgroup_place_of(procfs, process_fd, &place);

  if (rc == 0)
    rc = cgroup_mounts_read(procfs, &mounts);
  if (rc == 0)
    cgroup_place_find(&mounts, &place);
  cgroup_mounts_done(&mounts);
  if (rc != 0 && rc != PROCFS_GONE)
    return rc;
  *ret_bytes =
      place.mount_len > 0 ? memory_limit_at(procfs, &place) : CGROUP_LIMIT_NONE;
  return 0;
}
