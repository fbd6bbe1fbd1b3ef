#include "mirror.h"
#include "memory.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* In each capture, and right in the directory that stands for /proc. */
#define MARK "meminfo"

struct mirror {
  const char *root;
  char *name;
  char *mark;
};

/* The last name in the path. */
static char *name_of(const char *path) {
  size_t end = strlen(path), begin;

  while (end > 1 && path[end - 1] == '/')
    end--;
  for (begin = end; begin > 0 && path[begin - 1] != '/';)
    begin--;
  if (begin == end)
    begin = 0; /* "/" */
  return memory_check(strndup(path + begin, end - begin));
}

static char *mark_of(const char *root) {
  char *path;

  return memory_check(asprintf(&path, "%s/" MARK, root) < 0 ? NULL : path);
}

/* A pipe or a device in its place would never end. */
static bool is_capture(const struct mirror *m) {
  struct stat st;

  return stat(m->mark, &st) == 0 && S_ISREG(st.st_mode) &&
         access(m->mark, R_OK) == 0;
}

static int check(const struct mirror *m, struct config_error *reason) {
  struct stat st;

  if (stat(m->root, &st) < 0)
    return config_error_set(reason, "%s", strerror(errno));
  if (!S_ISDIR(st.st_mode))
    return config_error_set(
        reason, "expected a directory; unpack an archive first, with tar");
  if (!is_capture(m))
    return config_error_set(reason,
                            "has no " MARK ": expected a capture of /proc");
  return 0;
}

int mirror_open(const char *path, struct mirror **ret,
                struct config_error *reason) {
  struct mirror *m = memory_array(NULL, 1, sizeof(*m));
  int rc;

  *m = (struct mirror){
      .root = path, .name = name_of(path), .mark = mark_of(path)};
  rc = check(m, reason);
  if (rc == 0)
    *ret = m;
  else
    mirror_close(m);
  return rc;
}

void mirror_close(struct mirror *m) {
  if (!m)
    return;
  free(m->name);
  free(m->mark);
  free(m);
}

const char *mirror_root(const struct mirror *m) { return m->root; }

const char *mirror_name(const struct mirror *m) { return m->name; }

bool mirror_is_captured(const struct mirror *m, double *ret_time) {
  struct statfs fs;
  struct stat st;

  if (statfs(m->mark, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC ||
      stat(m->mark, &st) < 0)
    return false;
  *ret_time = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
  return true;
}
