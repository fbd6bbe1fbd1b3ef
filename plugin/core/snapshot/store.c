#include <smaps/store.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILE_MODE 0640
#define DIRECTORY_MODE 0750
#define PREFIX "smaps-"
#define SUFFIX ".json"
/* The temporary name does not match *.json, so no program reads half a file. */
#define UNFINISHED ".smaps-unfinished"
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

/* --- keeping within the limits --- */

#define DAY_NS (UINT64_C(86400) * 1000000000)

static void format_time(uint64_t when_ns, char *ret, size_t size) {
  time_t seconds = (time_t)(when_ns / 1000000000);
  struct tm tm;

  strftime(ret, size, "%Y%m%dT%H%M%SZ", gmtime_r(&seconds, &tm));
}

/* Only names such as smaps-20261121T134501Z-….json are ours to remove. */
static int is_ours(const struct dirent *entry) {
  static const char shape[] =
      PREFIX FOUR_DIGITS FOUR_DIGITS "T" FOUR_DIGITS "[0-9][0-9]Z-?*" SUFFIX;

  return fnmatch(shape, entry->d_name, 0) == 0;
}

/* A file is removed if the newer ones leave no room for it. */
static int keep_or_remove(const struct store *s, int dir_fd, const char *name,
                          uint64_t *files, uint64_t *bytes) {
  struct stat st;

  if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? 0 : -errno;
  if (!S_ISREG(st.st_mode))
    return 0;
  ++*files;
  *bytes += (uint64_t)st.st_size;
  if (*files <= s->max_files && *bytes <= s->max_bytes)
    return 0;
  return unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Files of the future, by a clock that was wrong, count as the oldest:
 * otherwise they would stay for years. */
static int make_room(const struct store *s, int dir_fd, uint64_t when_ns,
                     size_t len) {
  uint64_t files = 1, bytes = len; /* with the new one */
  struct dirent **entries = NULL;
  char tomorrow[32];
  int n = scandirat(dir_fd, ".", &entries, is_ours, alphasort);
  int rc = n < 0 ? -errno : 0, past = n;

  format_time(when_ns + DAY_NS, tomorrow, sizeof(tomorrow));
  while (past > 0 && strncmp(entries[past - 1]->d_name + strlen(PREFIX),
                             tomorrow, strlen(tomorrow)) > 0)
    past--;
  for (int i = 0; i < n && rc == 0; i++)
    rc = keep_or_remove(s, dir_fd, entries[(past + n - 1 - i) % n]->d_name,
                        &files, &bytes);
  for (int i = 0; i < n; i++)
    free(entries[i]);
  free(entries);
  return rc;
}

/* --- adding --- */

static void make_name(const char *subject, uint64_t when_ns, char *ret,
                      size_t size) {
  char when[32];

  format_time(when_ns, when, sizeof(when));
  snprintf(ret, size, PREFIX "%s-%s" SUFFIX, when, subject);
  for (char *c = ret; *c; c++)
    if (*c == '/')
      *c = '_';
}

int store_add(const struct store *s, const char *subject, uint64_t when_ns,
              const char *text, size_t len, char *ret_path, size_t size) {
  char name[NAME_MAX + 1];
  int fd, rc;

  if (len > s->max_bytes)
    return -EFBIG;
  fd = open_directory(s->directory, true);
  if (fd < 0)
    return fd;
  make_name(subject, when_ns, name, sizeof(name));
  if (s->is_one_a_time && faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
    rc = -EEXIST;
  else
    rc = make_room(s, fd, when_ns, len);
  if (rc == 0)
    rc = write_file(fd, UNFINISHED, name, text, len);
  if (rc == 0)
    snprintf(ret_path, size, "%s/%s", s->directory, name);
  close(fd);
  return rc;
}
