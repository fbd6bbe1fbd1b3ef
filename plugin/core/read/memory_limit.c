#include "read/memory_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "proc/cgroup.h"
#include "proc/mountinfo.h"

/* The hierarchy of the memory controller, and the group's directory in it. */
struct place {
  bool is_v1;
  char path[PATH_MAX]; /* in the hierarchy, as the kernel names it */
  char directory[PATH_MAX];
  size_t mount_len; /* the part of `directory` that is the mount point */
};

static bool is_word(struct span s, const char *word) {
  return s.len == strlen(word) && memcmp(s.text, word, s.len) == 0;
}

/* True if one of the options, separated by commas, is the word. */
static bool has_option(struct span options, const char *word) {
  while (options.len > 0) {
    const char *comma = memchr(options.text, ',', options.len);
    size_t len = comma ? (size_t)(comma - options.text) : options.len;

    if (is_word((struct span){options.text, len}, word))
      return true;
    len += comma != NULL;
    options = (struct span){options.text + len, options.len - len};
  }
  return false;
}

static bool is_hierarchy(const struct place *place, const struct mountinfo *m) {
  return place->is_v1 ? is_word(m->type, "cgroup") &&
                            has_option(m->super_options, "memory")
                      : is_word(m->type, "cgroup2");
}

/* The part of the path below the root of a mount; NULL if it is elsewhere. A
 * path outside of the reader's cgroup namespace begins with "/..". */
static const char *below(const char *path, const char *root) {
  size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
  const char *rest = path + len;

  if (strncmp(path, root, len) != 0 || (*rest != '/' && *rest != '\0') ||
      strncmp(rest, "/..", 3) == 0)
    return NULL;
  return strcmp(rest, "/") == 0 ? "" : rest;
}

/* True if the mount shows the group; then its directory is known. */
static bool is_shown_by(struct place *place, const struct mountinfo *m) {
  char root[PATH_MAX];
  const char *rest;
  size_t len;

  if (!is_hierarchy(place, m) || !mountinfo_decode(m->root, root, PATH_MAX))
    return false;
  rest = below(place->path, root);
  if (!rest || !mountinfo_decode(m->mount_point, place->directory, PATH_MAX))
    return false;
  len = strlen(place->directory);
  if (len + strlen(rest) >= PATH_MAX)
    return false;
  strcpy(place->directory + len, rest);
  place->mount_len = len;
  return true;
}

/* Looks through whole lines. */
static size_t feed(void *ctx, const char *text, size_t len) {
  struct cursor s = cursor_begin(text, len);
  struct mountinfo m;
  struct span line;
  size_t used = 0;

  while (parse_line(&s, &line) && s.at > line.text + line.len) {
    if (mountinfo_parse_line(line, &m) == 0 && is_shown_by(ctx, &m))
      return PROCFS_ENOUGH;
    used = (size_t)(s.at - text);
  }
  return used;
}

static int find_path(struct procfs *procfs, int process_fd,
                     struct place *place) {
  struct span text, path;
  int rc = procfs_read(procfs, process_fd, "cgroup", &text);

  if (rc == 0)
    rc = cgroup_parse_memory(text.text, text.len, &place->is_v1, &path);
  if (rc != 0)
    return rc;
  if (path.len >= PATH_MAX)
    return -ENAMETOOLONG;
  memcpy(place->path, path.text, path.len);
  place->path[path.len] = '\0';
  return 0;
}

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

static void read_limits(struct procfs *procfs, const struct place *place,
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

int memory_limit_read(struct procfs *procfs, int process_fd,
                      uint64_t *ret_bytes) {
  struct place place = {.mount_len = 0};
  uint64_t least = MEMORY_LIMIT_NONE;
  int rc = find_path(procfs, process_fd, &place);

  if (rc == 0)
    rc =
        procfs_read_pieces(procfs, PROCFS_ROOT, "self/mountinfo", feed, &place);
  if (rc != 0 && rc != PROCFS_GONE)
    return rc;
  while (place.mount_len > 0) {
    read_limits(procfs, &place, &least);
    if (strlen(place.directory) <= place.mount_len)
      break;
    *strrchr(place.directory, '/') = '\0';
  }
  *ret_bytes = least;
  return 0;
}
