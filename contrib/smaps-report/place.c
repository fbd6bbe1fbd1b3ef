#include "place.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_writable(const char *directory, struct config_error *cause) {
  struct stat st;

  if (stat(directory, &st) == 0 && !S_ISDIR(st.st_mode))
    errno = ENOTDIR;
  else if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0)
    return 0;
  return config_error_set(cause, "directory \"%s\", user %u: %s", directory,
                          geteuid(), strerror(errno));
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
