#include <smaps/pid_file.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <smaps/scan.h>

/* A number that goes on behind what was read is another one. */
#define HEAD_SIZE 32

static int last_error(void) { return errno > 0 ? -errno : -EIO; }

/* What says that there is no such file. */
static bool is_no_file(int error) {
  return error == -ENOENT || error == -ENOTDIR || error == -ELOOP ||
         error == -ENAMETOOLONG;
}

/* O_NONBLOCK for a file that is leased to somebody. */
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
  struct scan s = scan_begin(text, len);
  uint32_t pid;

  scan_skip_blanks(&s);
  if (!scan_u32(&s, &pid))
    return 0;
  return scan_is_done(&s) && len == HEAD_SIZE ? 0 : pid;
}

/* Files of the kernel look regular, and to read one can have an effect
 * (/proc/kmsg). A link to one is made by a stranger. */
static bool is_of_kernel(int found_fd) {
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
  int r = 0;

  if (fstat(found_fd, &st) < 0)
    return last_error();
  if (S_ISREG(st.st_mode) && !is_of_kernel(found_fd))
    r = read_head(found_fd, text, sizeof(text), &len);
  if (r == 0)
    *ret = parse(text, len);
  return r;
}

/* A file that is opened with O_PATH has not noticed yet, and can be looked at
 * and then opened itself, without its path leading elsewhere meanwhile. */
int pid_file_read(const char *path, uint32_t *ret) {
  int fd = open(path, O_PATH | O_CLOEXEC);
  int r = fd < 0 ? last_error() : read_found(fd, ret);

  if (fd >= 0)
    close(fd);
  if (fd >= 0 || !is_no_file(r))
    return r;
  *ret = 0;
  return 0;
}
