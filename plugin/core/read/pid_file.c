#include "read/pid_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <smaps/text.h>

/* A number that continues after this is another number. */
#define HEAD_SIZE 32

static int last_error(void) { return errno > 0 ? -errno : -EIO; }

/* True for errors that say that there is no such file. */
static bool is_no_file(int error) {
  return error == -ENOENT || error == -ENOTDIR || error == -ELOOP ||
         error == -ENAMETOOLONG;
}

/* O_NONBLOCK for a file under a lease. */
static int open_found(int found_fd) {
  char path[32];
  int fd;

  snprintf(path, sizeof(path), "/proc/self/fd/%d", found_fd);
  fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  return fd < 0 ? last_error() : fd;
}

static int read_head(int found_fd, char *ret, size_t size, size_t *ret_len) {
  int fd = open_found(found_fd);
  ssize_t n;

  if (fd < 0)
    return fd;
  n = read(fd, ret, size);
  if (n >= 0)
    *ret_len = (size_t)n;
  else
    n = last_error();
  close(fd);
  return n < 0 ? (int)n : 0;
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
static bool is_kernel_file(int found_fd) {
  static const long kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC,
                               TRACEFS_MAGIC, SECURITYFS_MAGIC};
  struct statfs fs;

  if (fstatfs(found_fd, &fs) != 0)
    return false;
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
    if ((long)fs.f_type == kinds[i])
      return true;
  return false;
}

static int read_found(int found_fd, uint32_t *ret) {
  char text[HEAD_SIZE];
  struct stat st;
  size_t len = 0;
  int rc = 0;

  if (fstat(found_fd, &st) < 0)
    return last_error();
  if (S_ISREG(st.st_mode) && !is_kernel_file(found_fd))
    rc = read_head(found_fd, text, sizeof(text), &len);
  if (rc == 0)
    *ret = parse(text, len);
  return rc;
}

/* Opening with O_PATH has no effect on the file. The descriptor can be checked
 * and then opened for reading, and the path cannot change in between. */
int pid_file_read(const char *path, uint32_t *ret) {
  int fd = open(path, O_PATH | O_CLOEXEC);
  int rc = fd < 0 ? last_error() : read_found(fd, ret);

  if (fd >= 0)
    close(fd);
  if (fd >= 0 || !is_no_file(rc))
    return rc;
  *ret = 0;
  return 0;
}
