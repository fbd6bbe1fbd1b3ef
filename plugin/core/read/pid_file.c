/* SPDX-License-Identifier: MIT */
#include "read/pid_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/duration.h"
#include <smaps/text.h>

/* A number that continues after this is another number. */
#define HEAD_SIZE 32

static int last_error(void) { return errno > 0 ? -errno : -EIO; }

/* True for errors that say that there is no such file. */
static bool is_no_file(int error) {
  return error == -ENOENT || error == -ENOTDIR || error == -ELOOP ||
         error == -ENAMETOOLONG;
}

static uint32_t parse(const char *text, size_t len) {
  struct cursor s = cursor_begin(text, len);
  uint32_t pid;

  skip_blanks(&s);
  if (!parse_u32(&s, &pid))
    return 0;
  return cursor_is_done(&s) && len == HEAD_SIZE ? 0 : pid;
}

/* The kernel's files look regular, and reading one can have an effect
 * (/proc/kmsg). An unprivileged user could have linked the path to one. */
static bool is_kernel_file(const struct statfs *fs) {
  static const long kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC,
                               TRACEFS_MAGIC, SECURITYFS_MAGIC};

  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
    if ((long)fs->f_type == kinds[i])
      return true;
  return false;
}

static void add_writer(struct pid_claim *c, uint32_t uid) {
  if (uid != 0 && uid != geteuid())
    c->writer = c->writer && c->writer != uid ? WRITER_IS_ANYBODY : uid;
}

/* Whoever owns a link on the way chooses the file. */
static void add_owners_of_links(struct pid_claim *c, const char *path) {
  char part[PATH_MAX];
  struct stat st;

  for (size_t i = 1; i <= strlen(path) && i < sizeof(part); i++)
    if ((path[i] == '/' || !path[i]) && snprintf(part, i + 1, "%s", path) > 0 &&
        lstat(part, &st) == 0 && S_ISLNK(st.st_mode))
      add_writer(c, st.st_uid);
}

/* O_NONBLOCK for a file under a lease. A change after fstat() is seen by the
 * next read. */
static int read_found(const char *path, int found_fd, struct pid_claim *ret) {
  char text[HEAD_SIZE], reopened[32];
  struct statfs fs = {0};
  struct stat st;
  ssize_t n;
  int fd, rc;

  if (fstat(found_fd, &st) < 0)
    return last_error();
  fstatfs(found_fd, &fs); /* fails on some file systems */
  if (!S_ISREG(st.st_mode) || is_kernel_file(&fs))
    return 0;
  snprintf(reopened, sizeof(reopened), "/proc/self/fd/%d", found_fd);
  fd = open(reopened, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0)
    return last_error();
  n = read(fd, text, sizeof(text));
  rc = n < 0 ? last_error() : 0;
  close(fd);
  ret->number = parse(text, n > 0 ? (size_t)n : 0);
  ret->ino = st.st_ino;
  ret->changed_ns =
      (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
  ret->is_of_boot = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
  ret->group = st.st_mode & S_IWGRP ? st.st_gid : 0;
  add_writer(ret, st.st_mode & S_IWOTH ? WRITER_IS_ANYBODY : st.st_uid);
  add_owners_of_links(ret, path);
  return rc;
}

/* Opening with O_PATH has no effect on the file. The descriptor can be checked
 * and then opened for reading, and the path cannot change in between. */
int pid_file_read(const char *path, struct pid_claim *ret) {
  struct pid_claim found = {.number = 0};
  int fd = open(path, O_PATH | O_CLOEXEC), rc;

  if (fd >= 0) {
    rc = read_found(path, fd, &found);
    close(fd);
  } else {
    rc = last_error();
    rc = is_no_file(rc) ? 0 : rc;
  }
  if (rc == 0)
    *ret = found;
  return rc;
}
