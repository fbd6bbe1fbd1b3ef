#include "cgroup/cgroup_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup/cgroup.h"
#include "cgroup/mountinfo.h"

/* True if one of the options, separated by commas, is the word. */
static bool has_option(struct span options, const char *word) {
  struct cursor s = cursor_begin(options.text, options.len);
  struct span option;

  while (parse_part(&s, ',', &option))
    if (span_is(option, word))
      return true;
  return false;
}

static bool is_hierarchy(const struct mountinfo *m, bool is_v1) {
  return is_v1 ? span_is(m->type, "cgroup") &&
                     has_option(m->super_options, "memory")
               : span_is(m->type, "cgroup2");
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
static bool is_shown_by(struct cgroup_place *place, const struct mountinfo *m) {
  char root[PATH_MAX];
  const char *rest;
  size_t len;

  if (!is_hierarchy(m, place->is_v1) ||
      !mountinfo_decode(m->root, root, PATH_MAX))
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

int cgroup_place_of(struct procfs *procfs, int process_fd,
                    struct cgroup_place *ret) {
  struct span text, path;
  int rc = procfs_read(procfs, process_fd, "cgroup", &text);

  ret->mount_len = 0;
  if (rc == 0)
    rc = cgroup_parse_memory(text.text, text.len, &ret->is_v1, &path);
  if (rc != 0)
    return rc;
  if (path.len >= PATH_MAX)
    return -ENAMETOOLONG;
  memcpy(ret->path, path.text, path.len);
  ret->path[path.len] = '\0';
  return 0;
}

/* --- mounts --- */

static int add_line(struct cgroup_mounts *m, struct span line) {
  char *text = realloc(m->text, m->len + line.len + 1);

  if (!text)
    return -ENOMEM;
  m->text = text;
  memcpy(text + m->len, line.text, line.len);
  text[m->len + line.len] = '\n';
  m->len += line.len + 1;
  return 0;
}

struct feeding {
  struct cgroup_mounts *mounts;
  int rc;
};

/* Looks through whole lines. */
static size_t feed(void *ctx, const char *text, size_t len) {
  struct feeding *f = ctx;
  struct cursor s = cursor_begin(text, len);
  struct mountinfo m;
  struct span line;
  size_t used = 0;

  while (parse_line(&s, &line) && s.at > line.text + line.len) {
    if (mountinfo_parse_line(line, &m) == 0 &&
        (is_hierarchy(&m, true) || is_hierarchy(&m, false)))
      f->rc = add_line(f->mounts, line);
    if (f->rc < 0)
      return PROCFS_ENOUGH;
    used = (size_t)(s.at - text);
  }
  return used;
}

int cgroup_mounts_read(struct procfs *procfs, struct cgroup_mounts *ret) {
  struct feeding f = {.mounts = ret};
  int rc;

  cgroup_mounts_done(ret);
  rc = procfs_read_pieces(procfs, PROCFS_ROOT, "self/mountinfo", feed, &f);
  if (rc == 0)
    rc = f.rc;
  if (rc != 0 && rc != PROCFS_GONE)
    return rc;
  ret->is_new = true;
  return 0;
}

void cgroup_mounts_done(struct cgroup_mounts *m) {
  free(m->text);
  *m = (struct cgroup_mounts){.text = NULL};
}

void cgroup_place_find(const struct cgroup_mounts *mounts,
                       struct cgroup_place *place) {
  struct cursor s = cursor_begin(mounts->text, mounts->len);
  struct mountinfo m;
  struct span line;

  place->mount_len = 0;
  while (!cursor_is_done(&s) && parse_line(&s, &line))
    if (mountinfo_parse_line(line, &m) == 0 && is_shown_by(place, &m))
      return;
}

/* --- files --- */

static int fill(int fd, struct cgroup_file *f) {
  ssize_t n = read(fd, f->text, sizeof(f->text));
  struct stat st;

  if (n < 0 || fstat(fd, &st) < 0)
    return -errno;
  f->len = (size_t)n;
  f->ino = st.st_ino;
  return 0;
}

int cgroup_place_read(const struct cgroup_place *place, const char *name,
                      struct cgroup_file *ret) {
  char path[PATH_MAX + 64];
  int fd, rc;

  snprintf(path, sizeof(path), "%s/%s", place->directory, name);
  fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  rc = fill(fd, ret);
  close(fd);
  return rc;
}

bool cgroup_place_climb(struct cgroup_place *place) {
  if (strlen(place->directory) <= place->mount_len)
    return false;
  *strrchr(place->directory, '/') = '\0';
  return true;
}
