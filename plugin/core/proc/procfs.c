/* SPDX-License-Identifier: MIT */
#include "proc/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/array.h"

/* Large enough for each file of a cycle and for a piece of smaps (4 KiB). */
#define BUFFER_START ((size_t)16 << 10)

struct procfs {
  DIR *dir;
  int root_fd;               /* of dir */
  unsigned n_kept, max_kept; /* files */
  unsigned n_low, max_low;   /* of needed files, with low descriptors */
  bool has_own_pids;
  bool is_captured;
  _Atomic(const char *) announced;
  struct procfs_entry *entries;
  size_t n_entries, cap_entries;
  char *buffer;
  size_t cap_buffer;
};

int procfs_outcome_of(int error) {
  switch (error) {
  case ENOENT:
  case ESRCH:
    return PROCFS_GONE;
  case EACCES:
  case EPERM:
    return PROCFS_DENIED;
  default:
    return -error;
  }
}

static bool parse_id(const char *name, uint32_t *ret) {
  struct cursor s = cursor_begin(name, strlen(name));
  uint32_t id;

  if (!parse_u32(&s, &id) || !cursor_is_done(&s) || id == 0 || *name == '0')
    return false;
  *ret = id;
  return true;
}

/* Compares "self" with our own pid: only if they agree, kcmp(2) understands the
 * tree's pids. A /proc of another pid namespace shows us under another number.
 * (A "self" that is not a link, or not readable for us, is not the kernel's.)
 */
static bool detect_own_pids(int root_fd) {
  char target[16];
  uint32_t pid;
  ssize_t n = readlinkat(root_fd, "self", target, sizeof(target) - 1);

  target[n > 0 ? n : 0] = '\0';
  return parse_id(target, &pid) && pid == (uint32_t)getpid();
}

static bool is_kernels(int root_fd) {
  struct statfs fs;

  return fstatfs(root_fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

static unsigned max_kept_files(int root_fd) {
  struct rlimit limit;
  rlim_t n;

  /* In any other file system a rewritten file may be another file. */
  if (!is_kernels(root_fd) || getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
      limit.rlim_cur <= PROCFS_KEPT_LEAST_FD)
    return 0;
  n = (limit.rlim_cur - PROCFS_KEPT_LEAST_FD) / 2;
  return n < PROCFS_KEPT_MAX ? (unsigned)n : PROCFS_KEPT_MAX;
}

static int grow_buffer(struct procfs *p) {
  size_t cap = p->cap_buffer ? p->cap_buffer * 2 : BUFFER_START;
  char *buffer;

  if (cap > PROCFS_FILE_MAX)
    return -EFBIG;
  buffer = realloc(p->buffer, cap);
  if (!buffer)
    return -ENOMEM;
  p->buffer = buffer;
  p->cap_buffer = cap;
  return 0;
}

/* A handle on the directory at that path below another, or of our own. */
static int new_handle(int at_fd, const char *path, struct procfs **ret) {
  struct procfs *p = calloc(1, sizeof(*p));
  int rc;

  if (!p)
    return -ENOMEM;
  p->root_fd = openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  p->dir = p->root_fd < 0 ? NULL : fdopendir(p->root_fd);
  rc = p->dir ? grow_buffer(p) : -errno;
  if (!p->dir || rc < 0) {
    procfs_free(p);
    return rc < 0 ? rc : -EIO;
  }
  p->has_own_pids = detect_own_pids(p->root_fd);
  p->is_captured = !p->has_own_pids && !is_kernels(p->root_fd);
  *ret = p;
  return 0;
}

int procfs_new_second(const struct procfs *first, struct procfs **ret) {
  return new_handle(first->root_fd, ".", ret);
}

int procfs_new(const char *root, struct procfs **ret) {
  const struct procfs_entry *entries;
  struct procfs *p;
  size_t n;
  int rc = new_handle(AT_FDCWD, root, &p);

  if (rc != 0)
    return rc;
  p->max_kept = max_kept_files(p->root_fd);
  p->max_low = is_kernels(p->root_fd) ? PROCFS_KEPT_LOW_MAX : 0;
  rc = procfs_list(p, &entries, &n);
  if (rc != 0) {
    procfs_free(p);
    return rc;
  }
  *ret = p;
  return 0;
}

void procfs_announce(struct procfs *p, const char *what) {
  atomic_store_explicit(&p->announced, what, memory_order_relaxed);
}

const char *procfs_announced(const struct procfs *p) {
  return atomic_load_explicit(&p->announced, memory_order_relaxed);
}

void procfs_free(struct procfs *p) {
  if (!p)
    return;
  if (p->dir)
    closedir(p->dir);
  else if (p->root_fd >= 0)
    close(p->root_fd);
  free(p->entries);
  free(p->buffer);
  free(p);
}

static int add_entry(struct procfs *p, uint32_t pid, uint64_t ino) {
  struct procfs_entry *entries =
      array_room(p->entries, p->n_entries, &p->cap_entries, sizeof(*entries));

  if (!entries)
    return -ENOMEM;
  p->entries = entries;
  p->entries[p->n_entries++] = (struct procfs_entry){.pid = pid, .ino = ino};
  return 0;
}

static int compare_entries(const void *a, const void *b) {
  uint32_t x = ((const struct procfs_entry *)a)->pid;
  uint32_t y = ((const struct procfs_entry *)b)->pid;

  return (x > y) - (x < y);
}

/* procfs lists each process once and in this order; a tree that is captured, or
 * changes while it is listed, need not. */
static void sort_entries(struct procfs *p) {
  size_t n = 0;

  qsort(p->entries, p->n_entries, sizeof(*p->entries), compare_entries);
  for (size_t i = 0; i < p->n_entries; i++)
    if (n == 0 || p->entries[n - 1].pid != p->entries[i].pid)
      p->entries[n++] = p->entries[i];
  p->n_entries = n;
}

int procfs_list(struct procfs *p, const struct procfs_entry **ret, size_t *n) {
  p->n_entries = 0;
  rewinddir(p->dir);
  for (;;) {
    struct dirent *e;
    uint32_t pid;

    errno = 0;
    e = readdir(p->dir);
    if (!e && errno)
      return -errno;
    if (!e)
      break;
    if (!parse_id(e->d_name, &pid) ||
        (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
      continue;
    int rc = add_entry(p, pid, e->d_ino);
    if (rc < 0)
      return rc;
  }
  if (p->n_entries == 0)
    return -ENOTTY;
  sort_entries(p);
  *ret = p->entries;
  *n = p->n_entries;
  return 0;
}

/* Room for a path in map_files. */
#define PATH_SIZE 64

/* "PID/NAME"; snprintf would cost a tenth of the whole read. */
static void make_path(char *ret, uint32_t pid, const char *name) {
  char digits[10];
  size_t n = 0;

  for (uint32_t rest = pid; rest > 0; rest /= 10)
    digits[n++] = (char)('0' + rest % 10);
  while (n > 0)
    *ret++ = digits[--n];
  if (pid > 0)
    *ret++ = '/';
  strcpy(ret, name);
}

static int open_at(int at_fd, const char *name, int flags, int *ret_fd) {
  int fd = openat(at_fd, name, flags | O_CLOEXEC);

  if (fd < 0)
    return procfs_outcome_of(errno);
  *ret_fd = fd;
  return 0;
}

static int open_of(struct procfs *p, uint32_t pid, const char *name, int flags,
                   int *ret_fd) {
  char path[PATH_SIZE];

  make_path(path, pid, name);
  return open_at(p->root_fd, path, flags, ret_fd);
}

int procfs_open_outside(struct procfs *p, const char *path, int *ret_fd) {
  return open_at(p->root_fd, path + !is_kernels(p->root_fd),
                 O_PATH | O_DIRECTORY, ret_fd);
}

int procfs_list_threads(struct procfs *p, uint32_t pid, uint32_t *tids,
                        size_t max, size_t *ret_n) {
  struct dirent *e;
  size_t n = 0;
  DIR *dir;
  int fd = -1, rc = open_of(p, pid, "task", O_RDONLY | O_DIRECTORY, &fd);

  if (rc != 0)
    return rc;
  dir = fdopendir(fd);
  if (!dir) {
    rc = -errno;
    close(fd);
    return rc;
  }
  while (n < max && (e = readdir(dir)))
    if (parse_id(e->d_name, &tids[n]))
      n++;
  closedir(dir);
  *ret_n = n;
  return 0;
}

int procfs_open_file(struct procfs *p, uint32_t pid, const char *name,
                     int *ret_fd) {
  procfs_announce(p, name);
  return open_of(p, pid, name, O_RDONLY, ret_fd);
}

int procfs_file_system(struct procfs *p, uint32_t pid, const char *name,
                       uint64_t *ret) {
  struct statfs fs;
  int fd = -1, rc = open_of(p, pid, name, O_PATH, &fd);

  if (rc != 0)
    return rc;
  rc = fstatfs(fd, &fs) == 0 ? 0 : procfs_outcome_of(errno);
  close(fd);
  if (rc == 0)
    *ret = (uint32_t)fs.f_type; /* an int on some machines */
  return rc;
}

/*
 * One read(2) returns the whole file if it fits the buffer. There may be more
 * only if the buffer came back full; it then grows for good, so that one read
 * is enough next time.
 */
static int fill_buffer(struct procfs *p, int fd, size_t max, size_t *ret_len) {
  size_t len = 0;

  for (;;) {
    size_t room = p->cap_buffer - 1 - len;
    size_t want = max - len < room ? max - len : room;
    ssize_t n = read(fd, p->buffer + len, want);

    if (n < 0)
      return procfs_outcome_of(errno);
    len += (size_t)n;
    if ((size_t)n < want || len == max)
      break;
    int rc = grow_buffer(p);
    if (rc < 0)
      return rc;
  }
  p->buffer[len] = '\0';
  *ret_len = len;
  return len == 0 ? PROCFS_NO_MM : 0;
}

static unsigned *count_of(struct procfs *p, int fd) {
  return fd < PROCFS_KEPT_LEAST_FD ? &p->n_low : &p->n_kept;
}

/* Duplicates fd, which stays open. A file for which there is no room is not
 * kept. */
static void keep_open(struct procfs *p, int fd, bool is_needed,
                      struct procfs_file *file) {
  bool is_low = p->n_kept >= p->max_kept;
  int kept;

  if (is_low && !(is_needed && p->n_low < p->max_low))
    return;
  kept = fcntl(fd, F_DUPFD_CLOEXEC, is_low ? 3 : PROCFS_KEPT_LEAST_FD);
  if (kept < 0)
    return;
  file->fd = kept;
  (*count_of(p, kept))++;
}

/* Closes fd, and keeps the file open in `file` unless that is NULL. */
static int read_opened(struct procfs *p, int fd, size_t max,
                       struct procfs_file *file, struct span *ret) {
  size_t len = 0;
  int rc = fill_buffer(p, fd, max, &len);

  if (rc == 0 && file)
    keep_open(p, fd, false, file);
  close(fd);
  if (rc == 0)
    *ret = (struct span){.text = p->buffer, .len = len};
  return rc;
}

int procfs_read_in(struct procfs *p, int dir_fd, const char *name,
                   struct span *ret) {
  int fd = -1, rc;

  procfs_announce(p, name);
  rc = open_at(dir_fd, name, O_RDONLY, &fd);
  return rc != 0 ? rc : read_opened(p, fd, SIZE_MAX, NULL, ret);
}

int procfs_read_head(struct procfs *p, uint32_t pid, const char *name,
                     size_t max, struct span *ret) {
  int fd = -1, rc = procfs_open_file(p, pid, name, &fd);

  return rc != 0 ? rc : read_opened(p, fd, max, NULL, ret);
}

int procfs_read(struct procfs *p, uint32_t pid, const char *name,
                struct span *ret) {
  return procfs_read_head(p, pid, name, SIZE_MAX, ret);
}

void procfs_drop(struct procfs *p, struct procfs_file *file) {
  if (file->fd <= 0)
    return;
  close(file->fd);
  (*count_of(p, file->fd))--;
  file->fd = 0;
}

void procfs_keep(struct procfs *p, const char *path, int flags, bool is_needed,
                 struct procfs_file *file) {
  int fd = -1;

  if (file->fd <= 0 && (is_needed || p->n_kept < p->max_kept) &&
      open_at(p->root_fd, path, flags, &fd) == 0) {
    keep_open(p, fd, is_needed, file);
    close(fd);
  }
}

void procfs_write_open(struct procfs *p, struct procfs_file *file,
                       const char *text) {
  if (file->fd > 0 && pwrite(file->fd, text, strlen(text), 0) < 0)
    procfs_drop(p, file);
}

int procfs_read_open(struct procfs *p, struct procfs_file *file,
                     struct span *ret) {
  ssize_t n;

  if (file->fd <= 0)
    return PROCFS_GONE;
  n = pread(file->fd, p->buffer, p->cap_buffer - 1, 0);
  if (n <= 0) {
    procfs_drop(p, file);
    return n < 0 ? procfs_outcome_of(errno) : PROCFS_NO_MM;
  }
  p->buffer[n] = '\0';
  *ret = (struct span){.text = p->buffer, .len = (size_t)n};
  return 0;
}

int procfs_read_kept(struct procfs *p, uint32_t pid, const char *name,
                     struct procfs_file *file, struct span *ret) {
  int fd = -1, rc;

  if (file && file->fd > 0) {
    procfs_announce(p, name);
    return procfs_read_open(p, file, ret);
  }
  rc = procfs_open_file(p, pid, name, &fd);
  return rc != 0 ? rc : read_opened(p, fd, SIZE_MAX, file, ret);
}

int procfs_count_threads(struct procfs *p, uint32_t pid, uint32_t *ret) {
  char path[PATH_SIZE];
  struct stat st;

  make_path(path, pid, "task");
  if (fstatat(p->root_fd, path, &st, 0) < 0)
    return procfs_outcome_of(errno);
  /* ".", ".." and one directory per thread. */
  if (st.st_nlink < 3)
    return -EBADMSG;
  *ret = (uint32_t)st.st_nlink - 2;
  return 0;
}

int procfs_read_pieces(struct procfs *p, uint32_t pid, const char *name,
                       size_t (*feed)(void *ctx, const char *text, size_t len),
                       void *ctx) {
  bool is_empty = true;
  size_t len = 0;
  ssize_t n;
  int fd = -1, rc = procfs_open_file(p, pid, name, &fd);

  if (rc != 0)
    return rc;
  while ((n = read(fd, p->buffer + len, p->cap_buffer - len)) > 0) {
    size_t used;

    is_empty = false;
    len += (size_t)n;
    used = feed(ctx, p->buffer, len);
    if (used == PROCFS_ENOUGH) {
      len = 0;
      n = 0;
      break;
    }
    len -= used;
    memmove(p->buffer, p->buffer + used, len);
    if (len == p->cap_buffer && (rc = grow_buffer(p)) < 0)
      break;
  }
  if (n < 0)
    rc = procfs_outcome_of(errno);
  close(fd);
  if (rc != 0)
    return rc;
  if (is_empty)
    return PROCFS_NO_MM;
  return len > 0 ? -EBADMSG : 0;
}

int procfs_read_link(struct procfs *p, uint32_t pid, const char *name,
                     struct span *ret) {
  char path[PATH_SIZE];
  ssize_t n;

  procfs_announce(p, name);
  make_path(path, pid, name);
  n = readlinkat(p->root_fd, path, p->buffer, p->cap_buffer - 1);
  if (n < 0)
    return procfs_outcome_of(errno);
  p->buffer[n] = '\0';
  *ret = (struct span){.text = p->buffer, .len = (size_t)n};
  return 0;
}

bool procfs_has_own_pids(const struct procfs *p) { return p->has_own_pids; }

bool procfs_is_captured(const struct procfs *p) { return p->is_captured; }

int procfs_is_same_mm(struct procfs *p, uint32_t pid_a, uint32_t pid_b,
                      bool *ret) {
  long rc;

  procfs_announce(p, "kcmp");
  rc = syscall(SYS_kcmp, pid_a, pid_b, KCMP_VM, 0, 0);
  if (rc < 0)
    return -errno;
  *ret = rc == 0;
  return 0;
}
