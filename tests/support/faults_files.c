#include "faults.h"

#include "faults_call.h"
#include "wrap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 256

static char opened[FILES_MAX][FAULTS_NAME_SIZE]; /* by descriptor */
static char root[PATH_MAX];

void faults_set_root(const char *path) {
  snprintf(root, sizeof(root), "%s", path);
}

/* --- reading --- */

WRAPPED(DIR *, opendir, const char *path);
WRAPPED(DIR *, fdopendir, int fd);
WRAPPED(struct dirent *, readdir, DIR *dir);
WRAPPED(int, scandirat, int dir_fd, const char *path, struct dirent ***ret,
        int (*wants)(const struct dirent *),
        int (*compare)(const struct dirent **, const struct dirent **));
WRAPPED(FILE *, setmntent, const char *path, const char *mode);
WRAPPED(int, open, const char *path, int flags, ...);
WRAPPED(int, openat, int dir_fd, const char *path, int flags, ...);
WRAPPED(ssize_t, read, int fd, void *buffer, size_t size);
WRAPPED(int, close, int fd);
WRAPPED(int, fstat, int fd, struct stat *st);
WRAPPED(int, fstatat, int dir_fd, const char *path, struct stat *st, int flags);
WRAPPED(ssize_t, readlinkat, int dir_fd, const char *path, char *buffer,
        size_t size);

static const char *name_of(int fd) {
  return fd >= 0 && fd < FILES_MAX ? opened[fd] : "";
}

static void remember(int fd, int dir_fd, const char *path) {
  if (fd < 0 || fd >= FILES_MAX)
    return;
  /* One's descriptor is nobody else's before it is closed. */
  snprintf(opened[fd], FAULTS_NAME_SIZE, "%.60s/%.60s", name_of(dir_fd), path);
}

/* The name by which a file is opened: a descriptor of our own is the file that
 * it was opened for. */
static const char *original(const char *path) {
  static const char own[] = "/proc/self/fd/";

  return strncmp(path, own, strlen(own)) == 0
             ? name_of(atoi(path + strlen(own)))
             : path;
}

/* Redirects paths by which the plugin means the running kernel. */
static const char *redirect(const char *path, char *ret) {
  static const char *const live[] = {"/proc", "/sys/kernel/mm/ksm"};

  for (size_t i = 0; i < sizeof(live) / sizeof(*live); i++) {
    if (!faults_are_counted() || strncmp(path, live[i], strlen(live[i])) != 0 ||
        original(path) != path)
      continue;
    snprintf(ret, PATH_MAX, "%.2000s%s%s", root, i ? "/ksm" : "",
             path + strlen(live[i]));
    return ret;
  }
  return path;
}

DIR *__wrap_opendir(const char *path) {
  char other[PATH_MAX];
  DIR *dir;

  if (faults_fail(CALL_OPENDIR, path))
    return NULL;
  dir = __real_opendir(redirect(path, other));
  if (dir)
    remember(dirfd(dir), -1, "");
  return dir;
}

DIR *__wrap_fdopendir(int fd) {
  return faults_fail(CALL_FDOPENDIR, name_of(fd)) ? NULL : __real_fdopendir(fd);
}

struct dirent *__wrap_readdir(DIR *dir) {
  return faults_fail(CALL_READDIR, name_of(dirfd(dir))) ? NULL
                                                        : __real_readdir(dir);
}

int __wrap_scandirat(int dir_fd, const char *path, struct dirent ***ret,
                     int (*wants)(const struct dirent *),
                     int (*compare)(const struct dirent **,
                                    const struct dirent **)) {
  int n = -1;

  if (!faults_fail(CALL_SCANDIRAT, name_of(dir_fd)))
    n = __real_scandirat(dir_fd, path, ret, wants, compare);
  for (int i = 0; i < n + (n > 0); i++) /* the names, and their list */
    faults_take_block();
  return n;
}

FILE *__wrap_setmntent(const char *path, const char *mode) {
  char other[PATH_MAX];

  return __real_setmntent(redirect(path, other), mode);
}

int __wrap_open(const char *path, int flags, ...) {
  char other[PATH_MAX];
  va_list args;
  int fd, mode;

  if (faults_fail(CALL_OPEN, original(path)))
    return -1;
  va_start(args, flags);
  mode = flags & O_CREAT ? va_arg(args, int) : 0;
  va_end(args);
  fd = __real_open(redirect(path, other), flags, mode);
  remember(fd, -1, original(path));
  return fd;
}

int __wrap_openat(int dir_fd, const char *path, int flags, ...) {
  va_list args;
  int fd, mode;

  if (faults_fail(CALL_OPENAT, path))
    return -1;
  va_start(args, flags);
  mode = flags & O_CREAT ? va_arg(args, int) : 0;
  va_end(args);
  fd = __real_openat(dir_fd, path, flags, mode);
  remember(fd, dir_fd, path);
  return fd;
}

ssize_t __wrap_read(int fd, void *buffer, size_t size) {
  int error = faults_fail(CALL_READ, name_of(fd));
  ssize_t n;

  if (error > 0)
    return -1;
  n = __real_read(fd, buffer, size);
  return error == CUT_SHORT ? n / 2 : error == AT_END ? 0 : n;
}

/* Linux closes even where it reports an error. */
int __wrap_close(int fd) {
  int error = faults_fail(CALL_CLOSE, name_of(fd));
  int r = __real_close(fd);

  if (error)
    errno = error;
  return error ? -1 : r;
}

int __wrap_fstat(int fd, struct stat *st) {
  return faults_fail(CALL_FSTAT, name_of(fd)) ? -1 : __real_fstat(fd, st);
}

int __wrap_fstatat(int dir_fd, const char *path, struct stat *st, int flags) {
  return faults_fail(CALL_FSTATAT, path)
             ? -1
             : __real_fstatat(dir_fd, path, st, flags);
}

ssize_t __wrap_readlinkat(int dir_fd, const char *path, char *buffer,
                          size_t size) {
  return faults_fail(CALL_READLINKAT, path)
             ? -1
             : __real_readlinkat(dir_fd, path, buffer, size);
}

/* --- writing --- */

WRAPPED(ssize_t, write, int fd, const void *bytes, size_t size);
int __wrap_fsync(int fd);
WRAPPED(int, fchmod, int fd, mode_t mode);
WRAPPED(int, renameat, int from_fd, const char *from, int to_fd,
        const char *to);
WRAPPED(int, unlinkat, int dir_fd, const char *path, int flags);
WRAPPED(int, mkdir, const char *path, mode_t mode);
WRAPPED(int, faccessat, int dir_fd, const char *path, int mode, int flags);

ssize_t __wrap_write(int fd, const void *bytes, size_t size) {
  int error = faults_fail(CALL_WRITE, name_of(fd));

  return error > 0 ? -1 : __real_write(fd, bytes, error ? size / 2 : size);
}

/* The disk is not what is tested. */
int __wrap_fsync(int fd) {
  return faults_fail(CALL_FSYNC, name_of(fd)) ? -1 : 0;
}

int __wrap_fchmod(int fd, mode_t mode) {
  return faults_fail(CALL_FCHMOD, name_of(fd)) ? -1 : __real_fchmod(fd, mode);
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to) {
  return faults_fail(CALL_RENAMEAT, to)
             ? -1
             : __real_renameat(from_fd, from, to_fd, to);
}

int __wrap_unlinkat(int dir_fd, const char *path, int flags) {
  return faults_fail(CALL_UNLINKAT, path)
             ? -1
             : __real_unlinkat(dir_fd, path, flags);
}

int __wrap_mkdir(const char *path, mode_t mode) {
  return faults_fail(CALL_MKDIR, path) ? -1 : __real_mkdir(path, mode);
}

int __wrap_faccessat(int dir_fd, const char *path, int mode, int flags) {
  return faults_fail(CALL_FACCESSAT, path)
             ? -1
             : __real_faccessat(dir_fd, path, mode, flags);
}
