#include "read/memory_limit.h"

#include <fcntl.h>
#include <unistd.h>

#include "proc/cgroup.h"

/* A group lacks the files if the controller is not enabled for it, as the root
 * does. */
static void read_limit(struct procfs *procfs, int fd, const char *name,
                       uint64_t *least) {
  struct span text;
  uint64_t bytes;

  if (procfs_read(procfs, fd, name, &text) == 0 &&
      cgroup_parse_limit(text.text, text.len, &bytes) && bytes < *least)
    *least = bytes;
}

static void read_limits(struct procfs *procfs, const struct cgroup_place *place,
                        uint64_t *least) {
  int fd;

  procfs_announce(procfs, "the cgroup");
  fd = open(place->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return;
  if (place->is_v1) {
    read_limit(procfs, fd, "memory.limit_in_bytes", least);
  } else {
    read_limit(procfs, fd, "memory.max", least);
    read_limit(procfs, fd, "memory.high", least);
  }
  close(fd);
}

uint64_t memory_limit_at(struct procfs *procfs, struct cgroup_place *place) {
  uint64_t least = CGROUP_LIMIT_NONE;

  do
    read_limits(procfs, place, &least);
  while (cgroup_place_climb(place));
  return least;
}

int memory_limit_read(struct procfs *procfs, int process_fd,
                      uint64_t *ret_bytes) {
  struct cgroup_place place;
  int rc = cgroup_place_of(procfs, process_fd, &place);

  if (rc == 0)
    rc = cgroup_place_find(procfs, &place);
  if (rc != 0 && rc != PROCFS_GONE)
    return rc;
  *ret_bytes =
      place.mount_len > 0 ? memory_limit_at(procfs, &place) : CGROUP_LIMIT_NONE;
  return 0;
}
