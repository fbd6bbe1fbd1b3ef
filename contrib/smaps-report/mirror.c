#include "mirror.h"

#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* In each capture, and right in the directory that stands for /proc. */
#define MARK "meminfo"

/* The last name in the path. */
static void set_name(struct mirror *m) {
  size_t end = strlen(m->root), begin;

  while (end > 1 && m->root[end - 1] == '/')
    end--;
  for (begin = end; begin > 0 && m->root[begin - 1] != '/';)
    begin--;
  if (begin == end)
    begin = 0; /* "/" */
  snprintf(m->name, sizeof(m->name), "%.*s", (int)(end - begin),
           m->root + begin);
}

/* A pipe or a device in its place would never end. */
static bool set_time(struct mirror *m) {
  char mark[PATH_MAX];
  struct statfs fs;
  struct stat st;

  snprintf(mark, sizeof(mark), "%s/" MARK, m->root);
  if (stat(mark, &st) < 0 || !S_ISREG(st.st_mode) || access(mark, R_OK) < 0)
    return false;
  m->is_captured = statfs(mark, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC;
  m->time = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
  return true;
}

int mirror_open(const char *path, struct mirror *ret,
                struct config_error *reason) {
  struct stat st;

  *ret = (struct mirror){.root = path};
  set_name(ret);
  if (stat(path, &st) < 0)
    return config_error_set(reason, "%s", strerror(errno));
  if (!S_ISDIR(st.st_mode))
    return config_error_set(
        reason, "expected a directory; unpack an archive first, with tar");
  if (!set_time(ret))
    return config_error_set(reason,
                            "has no " MARK ": expected a capture of /proc");
  return 0;
}
