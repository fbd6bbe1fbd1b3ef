#include "cgroup/memory_limit.h"

#include <string.h>

#include "cgroup/cgroup.h"

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

static void climb(struct cgroup_place *place,
                  struct memory_limit_above *above) {
  above->is_new = true;
  above->bytes = CGROUP_LIMIT_NONE;
  strcpy(above->directory, place->directory);
  do
    read_limits(place, &above->bytes);
  while (cgroup_place_climb(place));
}

uint64_t memory_limit_at(struct procfs *procfs, struct cgroup_place *place,
                         struct memory_limit_above *above) {
  uint64_t least = CGROUP_LIMIT_NONE;

  procfs_announce(procfs, "the cgroup");
  read_limits(place, &least);
  if (!cgroup_place_climb(place))
    return least;
  if (!above->is_new || strcmp(above->directory, place->directory) != 0)
    climb(place, above);
  return above->bytes < least ? above->bytes : least;
}

int memory_limit_read(struct procfs *procfs, int process_fd,
                      uint64_t *ret_bytes) {
  struct cgroup_mounts mounts = {.text = NULL};
  struct memory_limit_above above = {.is_new = false};
  struct cgroup_place place;
  int rc = cgroup_place_of(procfs, process_fd, &place);

  if (rc == 0)
    rc = cgroup_mounts_read(procfs, &mounts);
  if (rc == 0)
    cgroup_place_find(&mounts, &place);
  cgroup_mounts_done(&mounts);
  if (rc != 0 && rc != PROCFS_GONE)
    return rc;
  *ret_bytes = place.mount_len > 0 ? memory_limit_at(procfs, &place, &above)
                                   : CGROUP_LIMIT_NONE;
  return 0;
}
