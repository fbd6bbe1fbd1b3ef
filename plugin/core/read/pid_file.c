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

/* O_NONBLOCK for a file under a lease. */
static int read_found(int found_fd, char *ret, size_t size, size_t *ret_len) {
  char path[32];
  struct stat st;
  ssize_t n;
  int fd, rc;

  *ret_len = 0;
  if (fstat(found_fd, &st) < 0)
    return last_error();
  if (!S_ISREG(st.st_mode) || is_kernel_file(found_fd))
    return 0;
  snprintf(path, sizeof(path), "/proc/self/fd/%d", found_fd);
  fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0)
    return last_error();
  n = read(fd, ret, size);
  rc = n < 0 ? last_error() : 0;
  close(fd);
  if (n > 0)
    *ret_len = (size_t)n;
  return rc;
}

/* Opening with O_PATH has no effect on the file. The descriptor can be checked
 * and then opened for reading, and the path cannot change in between. */
int pid_file_read(const char *path, uint32_t *ret) {
  char text[HEAD_SIZE];
  size_t len = 0;
  int fd = open(path, O_PATH | O_CLOEXEC), rc;

  if (fd >= 0) {
    rc = read_found(fd, text, sizeof(text), &len);
    close(fd);
  } else {
    rc = last_error();
    rc = is_no_file(rc) ? 0 : rc;
  }
  if (rc == 0)
    *ret = parse(text, len);
  return rc;
}
