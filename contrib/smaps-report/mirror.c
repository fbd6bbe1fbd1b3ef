#include "mirror.h"
#include "input.h"
#include "memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* In each capture, and right in the directory that stands for /proc. */
#define MARK "meminfo"
#define OPEN_DIRECTORIES 16

/* Of a file in an archive: smaps of a process with millions of mappings. */
#define FILE_BYTES_MAX ((rlim_t)1 << 30)

struct mirror {
  char *root;
  char *name;
  char *unpacked;  /* NULL: a directory of the user's */
  sigset_t before; /* the signals that were blocked before it was unpacked */
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
    memmove(name, suffix + 1, strlen(suffix + 1) + 1);
  for (suffix = name; (suffix = strchr(suffix + 1, '.'));)
    if (strcmp(suffix, ".tgz") == 0 || strcmp(suffix, ".tar") == 0 ||
        strncmp(suffix, ".tar.", 5) == 0) {
      *suffix = '\0';
      break;
    }
  return name;
}

/* ---- the directory that stands for /proc ---- */

/* A pipe or a device in its place would never end. */
static bool is_root(const char *directory) {
  char *mark = join(directory, MARK);
  struct stat st;
  bool is =
      stat(mark, &st) == 0 && S_ISREG(st.st_mode) && access(mark, R_OK) == 0;

  free(mark);
  return is;
}

static bool is_hidden(const struct dirent *entry) {
  return entry->d_name[0] == '.';
}

/* A link of an archive may lead to /proc of this host. */
static bool is_link(const char *path) {
  struct stat st;

  return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Counts the roots in the directory, and returns one of them. */
static size_t find_inner(const char *directory, char **ret) {
  DIR *dir = opendir(directory);
  struct dirent *entry;
  size_t n = 0;

  while (dir && (entry = readdir(dir))) {
    char *inner = join(directory, entry->d_name);

    if (is_hidden(entry) || is_link(inner) || !is_root(inner)) {
      free(inner);
      continue;
    }
    free(*ret);
    *ret = inner;
    n++;
  }
  if (dir)
    closedir(dir);
  return n;
}

/* An archive has the files themselves, or a directory of them. */
static int find_root(const char *directory, char **ret,
                     struct config_error *reason) {
  size_t n;

  if (is_root(directory)) {
    *ret = memory_check(strdup(directory));
    return 0;
  }
  n = find_inner(directory, ret);
  if (n == 1)
    return 0;
  if (n == 0)
    return config_error_set(reason,
                            "has no " MARK ": expected a capture of /proc");
  return config_error_set(reason, "has %zu captures of /proc: expected one", n);
}

/* ---- tar ---- */

/* A signal that ends the program waits until what was unpacked is removed. One
 * that is ignored, as after nohup, does not end it. */
static void list_signals(sigset_t *ret) {
  static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action;

  sigemptyset(ret);
  for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++)
    if (sigaction(ending[i], NULL, &action) == 0 &&
        action.sa_handler != SIG_IGN)
      sigaddset(ret, ending[i]);
}

/* The archive is tar's standard input by a path that tar can open again, to
 * find out how it is compressed. Owners (-o) are of another host. */
static void run_tar(const struct mirror *m, int archive) {
  const struct rlimit limit = {FILE_BYTES_MAX, FILE_BYTES_MAX};
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

  sigprocmask(SIG_SETMASK, &m->before, NULL);
  setrlimit(RLIMIT_FSIZE, &limit);
  if (nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0 &&
      dup2(archive, STDIN_FILENO) >= 0)
    execlp("tar", "tar", "-xof", "/dev/stdin", "-C", m->unpacked, (char *)NULL);
  _exit(127);
}

/* A signal that ends the program ends tar first. */
static pid_t await(pid_t child, int *ret_status) {
  int number = 0, ended_by = 0;
  sigset_t signals;
  pid_t pid;

  list_signals(&signals);
  sigaddset(&signals, SIGCHLD);
  while ((pid = waitpid(child, ret_status, WNOHANG)) == 0)
    if (sigwait(&signals, &number) == 0 && number != SIGCHLD) {
      ended_by = number;
      kill(child, SIGTERM);
    }
  if (ended_by)
    raise(ended_by);
  return pid;
}

/* tar reads the beginning twice to find out how an archive is compressed. */
static const char *hint_of(int archive) {
  struct stat st;

  return fstat(archive, &st) == 0 && S_ISFIFO(st.st_mode)
             ? ": in a pipe it may not be compressed"
             : "";
}

static int unpack(const struct mirror *m, int archive,
                  struct config_error *reason) {
  pid_t child = fork();
  int status;

  if (child == 0)
    run_tar(m, archive);
  if (child < 0 || await(child, &status) < 0)
    return config_error_set(reason, "tar cannot be run: %s", strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    return config_error_set(reason, "is no directory, and there is no tar");
  if (status != 0)
    return config_error_set(reason,
                            "is no directory, and tar cannot unpack it%s",
                            hint_of(archive));
  return 0;
}

/* ---- what was unpacked ---- */

static bool is_name(const char *path, const struct FTW *at, const char *name) {
  return strcmp(path + at->base, name) == 0;
}

/* A capture has directories, files and links to executables. All else is of no
 * good: pipes and devices that never end, links to files of this host. What is
 * not readable in /proc should be readable here, and removable. */
static int tidy_entry(const char *path, const struct stat *st, int type,
                      struct FTW *at) {
  if (type == FTW_D || type == FTW_F)
    if (S_ISDIR(st->st_mode) || S_ISREG(st->st_mode))
      return chmod(path, st->st_mode | S_IRWXU);
  if (type == FTW_DNR)
    return chmod(path, S_IRWXU) < 0
               ? -1
               : nftw(path, tidy_entry, OPEN_DIRECTORIES, FTW_PHYS);
  return type == FTW_SL && is_name(path, at, "exe") ? 0 : remove(path);
}

static int tidy(const char *directory) {
  return nftw(directory, tidy_entry, OPEN_DIRECTORIES, FTW_PHYS);
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *at) {
  (void)st;
  (void)type;
  (void)at;
  return remove(path);
}

static void remove_unpacked(struct mirror *m) {
  tidy(m->unpacked);
  nftw(m->unpacked, remove_entry, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
  free(m->unpacked);
  m->unpacked = NULL;
  sigprocmask(SIG_SETMASK, &m->before, NULL);
}

static int make_directory(struct mirror *m, struct config_error *reason) {
  const char *tmp = getenv("TMPDIR");
  char *directory = join(tmp && *tmp ? tmp : "/tmp", "smaps-report.XXXXXX");
  sigset_t signals;
  int rc;

  list_signals(&signals);
  sigaddset(&signals, SIGCHLD); /* for await() */
  sigprocmask(SIG_BLOCK, &signals, &m->before);
  if (mkdtemp(directory)) {
    m->unpacked = directory;
    return 0;
  }
  rc = config_error_set(reason, "%s", strerror(errno));
  sigprocmask(SIG_SETMASK, &m->before, NULL);
  free(directory);
  return rc;
}

static int open_archive(struct mirror *m, const char *path,
                        struct config_error *reason) {
  FILE *archive = input_open(path, reason);
  int rc = archive ? make_directory(m, reason) : -EINVAL;

  if (rc == 0)
    rc = unpack(m, fileno(archive), reason);
  if (rc == 0 && tidy(m->unpacked) != 0)
    rc = config_error_set(reason, "%s: %s", m->unpacked, strerror(errno));
  if (archive)
    fclose(archive);
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
    rc = find_root(m->unpacked ? m->unpacked : path, &m->root, reason);
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
    remove_unpacked(m);
  free(m->root);
  free(m->name);
  free(m);
}

const char *mirror_root(const struct mirror *m) { return m->root; }

const char *mirror_name(const struct mirror *m) { return m->name; }

bool mirror_is_captured(const struct mirror *m, double *ret_time) {
  char *mark = join(m->root, MARK);
  struct statfs fs;
  struct stat st;
  bool is = statfs(mark, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC &&
            stat(mark, &st) == 0;

  free(mark);
  if (is)
    *ret_time = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
  return is;
}
