#include <smaps/place.h>

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

static bool is_full(const struct statfs *fs) {
  return (fs->f_blocks > 0 && (geteuid() ? fs->f_bavail : fs->f_bfree) == 0) ||
         (fs->f_files > 0 && fs->f_ffree == 0);
}

static int check_rights(const char *directory, struct config_error *cause) {
  if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0)
    return 0;
  if (errno == EROFS)
    return config_error_set(cause, "the file system of \"%s\" is read-only",
                            directory);
  if (errno == EACCES)
    return config_error_set(cause, "user %u may not write to \"%s\"", geteuid(),
                            directory);
  return config_error_set(cause, "\"%s\": %s", directory, strerror(errno));
}

static int check_writable(const char *directory, struct config_error *cause) {
  struct stat st;
  struct statfs fs;

  if (stat(directory, &st) != 0 || statfs(directory, &fs) != 0)
    return errno == ENOENT
               ? config_error_set(cause, "the directory \"%s\" does not exist",
                                  directory)
               : config_error_set(cause, "\"%s\": %s", directory,
                                  strerror(errno));
  if (!S_ISDIR(st.st_mode))
    return config_error_set(cause, "\"%s\" is not a directory", directory);
  if (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC)
    return config_error_set(cause, "the kernel allows no new file in \"%s\"",
                            directory);
  if (check_rights(directory, cause) < 0)
    return -EINVAL;
  return is_full(&fs)
             ? config_error_set(cause, "the file system of \"%s\" is full",
                                directory)
             : 0;
}

static int check_parent(const char *path, struct config_error *cause) {
  const char *slash = strrchr(path, '/');
  char parent[PATH_MAX];

  snprintf(parent, sizeof(parent), "%.*s",
           slash && slash > path ? (int)(slash - path) : 1, path);
  return check_writable(parent, cause);
}

int place_check_file(const char *path, struct config_error *cause) {
  struct stat st;

  if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
    return config_error_set(cause, "it is a directory");
  return check_parent(path, cause);
}

int place_check_directory(const char *path, struct config_error *cause) {
  struct stat st;

  if (lstat(path, &st) != 0)
    return errno == ENOENT ? check_parent(path, cause)
                           : config_error_set(cause, "%s", strerror(errno));
  if (S_ISLNK(st.st_mode))
    return config_error_set(cause, "it is a symbolic link");
  if (!S_ISDIR(st.st_mode))
    return config_error_set(cause, "it is not a directory");
  if (st.st_uid != geteuid() && st.st_uid != 0)
    return config_error_set(cause,
                            "user %u owns it; expected root or the user of "
                            "collectd",
                            st.st_uid);
  if (st.st_mode & S_IWOTH)
    return config_error_set(cause, "others can write to it (mode %04o)",
                            st.st_mode & 07777);
  return check_writable(path, cause);
}
