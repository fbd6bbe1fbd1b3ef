#include "mirror.h"
#include "memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* In each capture, and right in the directory that stands for /proc. */
#define MARK "meminfo"
#define OPEN_DIRECTORIES 16

struct mirror {
  char *root;
  char *name;
  char *unpacked; /* NULL: a directory of the user's */
};

static char *join(const char *directory, const char *name) {
  char *path;

  return memory_check(asprintf(&path, "%s/%s", directory, name) < 0 ? NULL
                                                                    : path);
}

/* The last name in the path, without what tells the kind of archive. */
static char *name_of(const char *path) {
  size_t end = strlen(path);
  char *name, *suffix;

  while (end > 1 && path[end - 1] == '/')
    end--;
  name = memory_check(strndup(path, end));
  suffix = strrchr(name, '/');
  if (suffix && suffix[1])
    memmove(name, suffix + 1, strlen(suffix));
  suffix = strstr(name, ".tar");
  if (!suffix)
    suffix = strstr(name, ".tgz");
  if (suffix && suffix > name)
    *suffix = '\0';
  return name;
}

/* ---- the directory that stands for /proc ---- */

static bool is_root(const char *directory) {
  char *mark = join(directory, MARK);
  bool is = access(mark, R_OK) == 0;

  free(mark);
  return is;
}

static bool is_hidden(const struct dirent *entry) {
  return entry->d_name[0] == '.';
}

/* An archive has the files themselves, or a directory of them. */
static char *find_root(const char *directory) {
  struct dirent *entry;
  char *root = NULL;
  DIR *dir;

  if (is_root(directory))
    return memory_check(strdup(directory));
  dir = opendir(directory);
  while (dir && !root && (entry = readdir(dir))) {
    char *inner = join(directory, entry->d_name);

    if (!is_hidden(entry) && is_root(inner))
      root = inner;
    else
      free(inner);
  }
  if (dir)
    closedir(dir);
  return root;
}

/* ---- archives ---- */

/* The archive is tar's standard input by a path that tar can open again, to
 * find out how it is compressed. */
static void run_tar(int archive, const char *directory) {
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

  if (nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0 &&
      dup2(archive, STDIN_FILENO) >= 0)
    execlp("tar", "tar", "-xf", "/dev/stdin", "-C", directory, (char *)NULL);
  _exit(127);
}

static int unpack(int archive, const char *directory,
                  struct config_error *reason) {
  pid_t child = fork();
  int status;

  if (child == 0)
    run_tar(archive, directory);
  if (child < 0 || waitpid(child, &status, 0) < 0)
    return config_error_set(reason, "tar cannot be run: %s", strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    return config_error_set(reason, "is no directory, and there is no tar");
  if (status != 0)
    return config_error_set(reason,
                            "is no directory, and tar cannot unpack it");
  return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *at) {
  (void)st;
  (void)type;
  (void)at;
  return remove(path);
}

static int open_archive(struct mirror *m, const char *path,
                        struct config_error *reason) {
  const char *tmp = getenv("TMPDIR");
  int archive = open(path, O_RDONLY | O_CLOEXEC), rc;
  char *directory = join(tmp && *tmp ? tmp : "/tmp", "smaps-report.XXXXXX");

  if (archive < 0 || !mkdtemp(directory)) {
    rc = config_error_set(reason, "%s", strerror(errno));
    free(directory);
  } else {
    m->unpacked = directory;
    rc = unpack(archive, directory, reason);
  }
  if (archive >= 0)
    close(archive);
  return rc;
}

/* ---- both ---- */

static bool is_directory(const char *path) {
  struct stat st;

  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int mirror_open(const char *path, struct mirror **ret,
                struct config_error *reason) {
  struct mirror *m = memory_array(NULL, 1, sizeof(*m));
  int rc = 0;

  *m = (struct mirror){.name = name_of(path)};
  if (!is_directory(path))
    rc = open_archive(m, path, reason);
  if (rc == 0)
    m->root = find_root(m->unpacked ? m->unpacked : path);
  if (rc == 0 && !m->root)
    rc = config_error_set(reason,
                          "has no " MARK ": expected a capture of /proc");
  if (rc == 0)
    *ret = m;
  else
    mirror_close(m);
  return rc;
}

void mirror_close(struct mirror *m) {
  if (!m)
    return;
  if (m->unpacked)
    nftw(m->unpacked, remove_entry, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
  free(m->unpacked);
  free(m->root);
  free(m->name);
  free(m);
}

const char *mirror_root(const struct mirror *m) { return m->root; }

const char *mirror_name(const struct mirror *m) { return m->name; }
