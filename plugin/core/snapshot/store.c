/* SPDX-License-Identifier: MIT */
#include <smaps/store.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/duration.h"

#define FILE_MODE 0640
#define DIRECTORY_MODE 0750
#define PREFIX "smaps-"
#define SUFFIX ".json"
/* The temporary name does not match *.json, so no program reads half a file. */
#define UNFINISHED ".smaps-unfinished"
#define TIME_FORMAT "%Y%m%dT%H%M%SZ"
#define FOUR_DIGITS "[0-9][0-9][0-9][0-9]"

static int write_all(int fd, const char *text, size_t len) {
  while (len > 0) {
    ssize_t n = write(fd, text, len);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return n < 0 ? -errno : -EIO;
    text += n;
    len -= (size_t)n;
  }
  return 0;
}

/* Only one writer writes here, so an existing file is left over from a crash.
 */
static int create(int dir_fd, const char *name) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int fd = openat(dir_fd, name, flags, 0600);

  if (fd < 0 && errno == EEXIST && unlinkat(dir_fd, name, 0) == 0)
    fd = openat(dir_fd, name, flags, 0600);
  return fd < 0 ? -errno : fd;
}

/* Some file systems report a full disk only in close(). Without fsync() a power
 * failure could leave a name without contents. */
static int fill(int fd, const char *text, size_t len) {
  int rc = write_all(fd, text, len);

  if (rc == 0 && fsync(fd) != 0)
    rc = -errno;
  if (rc == 0 && fchmod(fd, FILE_MODE) != 0)
    rc = -errno;
  if (close(fd) != 0 && rc == 0)
    rc = -errno;
  return rc;
}

static int write_file(int dir_fd, const char *unfinished, const char *name,
                      const char *text, size_t len) {
  int fd = create(dir_fd, unfinished);
  int rc;

  if (fd < 0)
    return fd;
  rc = fill(fd, text, len);
  if (rc == 0 && renameat(dir_fd, unfinished, dir_fd, name) != 0)
    rc = -errno;
  if (rc < 0)
    unlinkat(dir_fd, unfinished, 0);
  return rc;
}

int store_replace(const char *path, const char *text, size_t len) {
  char unfinished[PATH_MAX];
  int n = snprintf(unfinished, sizeof(unfinished), "%s.unfinished", path);

  if (n < 0 || (size_t)n >= sizeof(unfinished))
    return -ENAMETOOLONG;
  return write_file(AT_FDCWD, unfinished, path, text, len);
}

/* --- the directory --- */

/* A user who can write to the directory could replace our files. */
static int check_directory(int fd) {
  struct stat st;

  if (fstat(fd, &st) != 0)
    return -errno;
  if (st.st_uid != geteuid() && st.st_uid != 0)
    return -EPERM;
  return st.st_mode & S_IWOTH ? -EPERM : 0;
}

/* Opened for each file: since the last one the directory may have been moved,
 * mounted over or made writable. An open directory would also prevent an
 * unmount. mkdir() comes last: an automounter and NFS may refuse it, and not
 * say that the directory is there. */
static int open_directory(const char *directory, bool makes) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int fd = open(directory, flags), rc;
  bool is_new = makes && fd < 0 && errno == ENOENT;

  if (is_new)
    fd = mkdir(directory, DIRECTORY_MODE) == 0 ? open(directory, flags) : -1;
  if (fd < 0)
    return -errno;
  /* mkdir() applies the umask. */
  rc = is_new && fchmod(fd, DIRECTORY_MODE) != 0 ? -errno : check_directory(fd);
  if (rc == 0)
    return fd;
  close(fd);
  return rc;
}

int store_check(const char *directory, bool makes) {
  int fd = open_directory(directory, makes), rc;

  if (fd < 0)
    return fd;
  rc = faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0 ? 0 : -errno;
  close(fd);
  return rc;
}

const char *store_error(int error) {
  switch (error) {
  case -EPERM:
    return "access is denied, others can write to the directory, or neither "
           "root nor the user of collectd owns it";
  case -ENOTDIR:
    return "it is a symbolic link, or no directory";
  case -EFBIG:
    return "it is larger than MaxBytes";
  default:
    return strerror(-error);
  }
}

/* --- names --- */

#define DAY_S UINT64_C(86400)

static void format_time(uint64_t seconds, char *ret, size_t size) {
  time_t when = (time_t)seconds;
  struct tm tm;

  strftime(ret, size, TIME_FORMAT, gmtime_r(&when, &tm));
}

static void make_name(const char *subject, uint64_t seconds, char *ret,
                      size_t size) {
  char when[32];

  format_time(seconds, when, sizeof(when));
  snprintf(ret, size, PREFIX "%s-%s" SUFFIX, when, subject);
  for (char *c = ret; *c; c++)
    if (*c == '/')
      *c = '_';
}

bool store_parse_name(const char *name, uint64_t *ret_seconds) {
  static const char shape[] =
      PREFIX FOUR_DIGITS FOUR_DIGITS "T" FOUR_DIGITS "[0-9][0-9]Z-?*" SUFFIX;
  struct tm tm = {.tm_mday = 1};
  time_t when;

  if (fnmatch(shape, name, 0) != 0 ||
      !strptime(name + strlen(PREFIX), TIME_FORMAT, &tm))
    return false;
  when = timegm(&tm);
  *ret_seconds = when > 0 ? (uint64_t)when : 0;
  return true;
}

/* --- keeping within the limits --- */

/* The files of a store, the oldest first. */
struct listing {
  struct dirent **all;
  size_t n;
};

/* Only names such as smaps-20261121T134501Z-….json are ours to remove. */
static int is_ours(const struct dirent *e) {
  uint64_t seconds;

  return (e->d_type == DT_REG || e->d_type == DT_UNKNOWN) &&
         store_parse_name(e->d_name, &seconds);
}

/* Not as the locale has it. */
static int compare(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static uint64_t seconds_at(const struct listing *l, size_t i) {
  uint64_t seconds = 0;

  store_parse_name(l->all[i]->d_name, &seconds);
  return seconds;
}

/* 0 if it has gone. */
static uint64_t bytes_at(const struct listing *l, size_t i, int dir_fd) {
  struct stat st;

  return fstatat(dir_fd, l->all[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0
             ? (uint64_t)st.st_size
             : 0;
}

/* How little it is missed: the gap that it would leave, as a part of its age.
 * So states stay the closer together the younger they are. */
static double sparseness(const struct listing *l, size_t i, uint64_t now) {
  uint64_t next = i + 1 < l->n ? seconds_at(l, i + 1) : now;
  double gap = (double)next - (double)seconds_at(l, i - 1);
  double age = (double)now - (double)seconds_at(l, i);

  return gap / fmax(age, 1);
}

/* Files of the future, by a clock that was wrong, go first: otherwise they
 * would stay for years. */
static size_t first_to_go(const struct store *s, const struct listing *l,
                          uint64_t now) {
  size_t past = l->n, ret = 0;

  while (past > 0 && seconds_at(l, past - 1) > now + DAY_S)
    past--;
  if (past < l->n)
    return past;
  if (s->step_s == 0 || seconds_at(l, 0) + DAY_S < now)
    return 0;
  for (size_t i = 1; i < l->n; i++)
    if (ret == 0 || sparseness(l, i, now) < sparseness(l, ret, now))
      ret = i;
  return ret;
}

static int make_room(const struct store *s, int dir_fd, struct listing *l,
                     uint64_t now, size_t len) {
  uint64_t bytes = len;

  for (size_t i = 0; i < l->n; i++)
    bytes += bytes_at(l, i, dir_fd);
  while (l->n > 0 && (l->n + 1 > s->max_files || bytes > s->max_bytes)) {
    size_t i = first_to_go(s, l, now);

    bytes -= bytes_at(l, i, dir_fd);
    if (unlinkat(dir_fd, l->all[i]->d_name, 0) != 0 && errno != ENOENT)
      return -errno;
    free(l->all[i]);
    array_remove(l->all, &l->n, sizeof(*l->all), i);
  }
  return 0;
}

/* True if a file of this step is there. */
static bool has_step(const struct store *s, const struct listing *l,
                     uint64_t now) {
  for (size_t i = 0; s->step_s > 0 && i < l->n; i++)
    if (seconds_at(l, i) / s->step_s == now / s->step_s)
      return true;
  return false;
}

static int prepare(const struct store *s, int dir_fd, uint64_t now,
                   size_t len) {
  struct listing l;
  char path[64];
  int rc, n;

  /* musl has no scandirat(). */
  snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
  n = scandir(path, &l.all, is_ours, compare);
  if (n < 0)
    return -errno;
  l.n = (size_t)n;
  rc = has_step(s, &l, now) ? -EEXIST : make_room(s, dir_fd, &l, now, len);
  while (l.n > 0)
    free(l.all[--l.n]);
  free(l.all);
  return rc;
}

/* --- adding --- */

int store_add(const struct store *s, const char *subject, uint64_t when_ns,
              const char *text, size_t len, char *ret_path, size_t size) {
  uint64_t now = when_ns / NS_PER_S;
  char name[NAME_MAX + 1];
  int fd, rc;

  if (len > s->max_bytes)
    return -EFBIG;
  fd = open_directory(s->directory, true);
  if (fd < 0)
    return fd;
  make_name(subject, now, name, sizeof(name));
  rc = prepare(s, fd, now, len);
  if (rc == 0)
    rc = write_file(fd, UNFINISHED, name, text, len);
  if (rc == 0)
    snprintf(ret_path, size, "%s/%s", s->directory, name);
  close(fd);
  return rc;
}
