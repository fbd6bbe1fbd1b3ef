/* SPDX-License-Identifier: MIT */
#include "proctree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 512

static void fail(const char *what) {
  perror(what);
  abort();
}

static int remove_one(const char *path, const struct stat *st, int kind,
                      struct FTW *ftw) {
  (void)st;
  (void)kind;
  (void)ftw;
  return remove(path);
}

static void remove_tree(const char *path) {
  nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void proctree_make(struct proctree *t) {
  static const char meminfo[] = "MemTotal:        1048576 kB\n"
                                "MemAvailable:     524288 kB\n";

  /* In memory where that is there: the trees are written over and over. */
  strcpy(t->root, access("/dev/shm", W_OK) == 0
                      ? "/dev/shm/smaps-proctree-XXXXXX"
                      : "/tmp/smaps-proctree-XXXXXX");
  if (!mkdtemp(t->root))
    fail("mkdtemp");
  proctree_write(t, "meminfo", meminfo, strlen(meminfo));
}

void proctree_remove(struct proctree *t) { remove_tree(t->root); }

struct fake fake_process(uint32_t pid, const char *comm) {
  return (struct fake){.pid = pid,
                       .ppid = 1,
                       .comm = comm,
                       .starttime = 100 + pid,
                       .start_stack = 0x7ff000000000 + pid * 0x100000ULL};
}

struct fake fake_child(const struct fake *parent, uint32_t pid) {
  struct fake f = *parent;

  f.pid = pid;
  f.ppid = parent->pid;
  f.starttime = 100 + pid;
  return f;
}

void proctree_make_own(const struct proctree *t) {
  char path[PATH_SIZE], target[16];

  snprintf(path, sizeof(path), "%s/self", t->root);
  snprintf(target, sizeof(target), "%d", (int)getpid());
  if (symlink(target, path) < 0)
    fail(path);
}

int proctree_setup(void **state) {
  static struct proctree tree;

  proctree_make(&tree);
  *state = &tree;
  return 0;
}

int proctree_teardown(void **state) {
  proctree_remove(*state);
  return 0;
}

static void make_directories(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash;
       slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0755);
    *slash = '/';
  }
}

/* The directories are mostly there. */
static int open_to_write(char *path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

  if (fd >= 0 || errno != ENOENT)
    return fd;
  make_directories(path);
  return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
}

void proctree_write(const struct proctree *t, const char *path,
                    const char *text, size_t len) {
  char whole[PATH_SIZE];
  int fd;

  snprintf(whole, sizeof(whole), "%s/%s", t->root, path);
  fd = open_to_write(whole);
  if (fd < 0 || write(fd, text, len) != (ssize_t)len)
    fail(whole);
  close(fd);
}

void proctree_print(const struct proctree *t, uint32_t pid, const char *file,
                    const char *format, ...) {
  char path[PATH_SIZE], text[4096];
  va_list args;
  int len;

  if (pid)
    snprintf(path, sizeof(path), "%u/%s", pid, file);
  else
    snprintf(path, sizeof(path), "%s", file);
  va_start(args, format);
  len = vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  if (len < 0 || (size_t)len >= sizeof(text))
    fail(path);
  proctree_write(t, path, text, (size_t)len);
}

void proctree_hang(const struct proctree *t, const char *path) {
  char whole[PATH_SIZE];

  proctree_unlink(t, path);
  snprintf(whole, sizeof(whole), "%s/%s", t->root, path);
  make_directories(whole);
  if (mkfifo(whole, 0644) < 0)
    fail(whole);
}

void proctree_rename(const struct proctree *t, const char *from,
                     const char *to) {
  char old[PATH_SIZE], new[PATH_SIZE];

  snprintf(old, sizeof(old), "%s/%s", t->root, from);
  snprintf(new, sizeof(new), "%s/%s", t->root, to);
  if (rename(old, new) < 0)
    fail(old);
}

void proctree_wake(const struct proctree *t, const char *path) {
  char whole[PATH_SIZE];
  int fd;

  snprintf(whole, sizeof(whole), "%s/%s", t->root, path);
  while ((fd = open(whole, O_WRONLY | O_NONBLOCK)) < 0 && errno == ENXIO)
    sched_yield();
  if (fd < 0)
    fail(whole);
  proctree_unlink(t, path);
  close(fd);
}

void proctree_release(const struct proctree *t, const char *path) {
  char whole[PATH_SIZE];
  int fd;

  snprintf(whole, sizeof(whole), "%s/%s", t->root, path);
  fd = open(whole, O_WRONLY | O_NONBLOCK);
  proctree_unlink(t, path);
  if (fd >= 0)
    close(fd);
}

void proctree_unlink(const struct proctree *t, const char *path) {
  char whole[PATH_SIZE];

  snprintf(whole, sizeof(whole), "%s/%s", t->root, path);
  remove_tree(whole);
}

void proctree_end(const struct proctree *t, uint32_t pid) {
  char path[16];

  snprintf(path, sizeof(path), "%u", pid);
  proctree_unlink(t, path);
}

/* Writes a file of the process whose directory is `dir`. */
static void put(const struct proctree *t, const char *dir, const char *file,
                const char *text, size_t len) {
  char path[PATH_SIZE];

  snprintf(path, sizeof(path), "%s/%s", dir, file);
  proctree_write(t, path, text, len);
}

static void put_stat(const struct proctree *t, const char *dir,
                     const struct fake *f) {
  char text[1024];
  int n =
      snprintf(text, sizeof(text),
               "%u (%s) %c %u 1 1 0 -1 %u %u 0 0 0 5 5 0 0 20 0 %u 0 %" PRIu64
               " 1000000 250 18446744073709551615 %" PRIu64 " 2 %" PRIu64
               " 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 3 4 5 %" PRIu64 " 7 8 9 0\n",
               f->pid, f->comm, f->state ? f->state : 'S', f->ppid, f->flags,
               f->faults ? f->faults : 10, f->threads ? f->threads : 1,
               f->starttime, f->start_stack ? f->start_stack + 4096 : 1,
               f->start_stack, f->start_stack ? f->start_stack + 64 : 0);

  put(t, dir, "stat", text, (size_t)n);
}

static unsigned pages(unsigned kb) {
  return kb / ((unsigned)sysconf(_SC_PAGESIZE) / 1024);
}

static void put_statm(const struct proctree *t, const char *dir,
                      const struct fake *f) {
  unsigned resident = pages(f->private_kb + f->shared_kb);
  unsigned size = f->size ? f->size : resident + 100;
  bool is_dead = (f->state == 'Z' || f->state == 'X') && !f->size;
  char text[128];
  int n = snprintf(text, sizeof(text), "%u %u %u %u 0 %u 0\n",
                   is_dead ? 0 : size, is_dead ? 0 : resident,
                   is_dead ? 0 : pages(f->shared_kb - f->cow_kb),
                   is_dead ? 0 : f->text, is_dead ? 0 : f->data);

  put(t, dir, "statm", text, (size_t)n);
}

static void put_rollup(const struct proctree *t, const char *dir,
                       const struct fake *f) {
  unsigned pss_anon = f->private_kb + f->cow_kb / (f->sharers ? f->sharers : 2);
  unsigned pss =
      f->pss_kb ? f->pss_kb : pss_anon + (f->shared_kb - f->cow_kb) / 2;
  char text[2048];
  int n = snprintf(
      text, sizeof(text),
      "55d0c8f7d000-7ffe1d7f2000 ---p 00000000 00:00 0          [rollup]\n"
      "Rss:            %8u kB\nPss:            %8u kB\n"
      "Pss_Dirty:      %8u kB\nPss_Anon:       %8u kB\n"
      "Pss_File:       %8u kB\nPss_Shmem:      %8u kB\n"
      "Shared_Clean:          0 kB\nShared_Dirty:   %8u kB\n"
      "Private_Clean:         0 kB\nPrivate_Dirty:  %8u kB\n"
      "Referenced:     %8u kB\nAnonymous:      %8u kB\n"
      "KSM:                   0 kB\nLazyFree:       %8u kB\n"
      "AnonHugePages:  %8u kB\nShmemPmdMapped:        0 kB\n"
      "FilePmdMapped:         0 kB\nShared_Hugetlb:        0 kB\n"
      "Private_Hugetlb:       0 kB\nSwap:           %8u kB\n"
      "SwapPss:        %8u kB\nLocked:                0 kB\n",
      f->private_kb + f->shared_kb, pss, pss, pss_anon,
      pss - pss_anon - f->shmem_kb, f->shmem_kb, f->shared_kb, f->private_kb,
      f->private_kb + f->shared_kb, f->private_kb + f->cow_kb, f->lazy_kb,
      f->huge_kb, f->swap_kb, f->swap_kb / (f->sharers ? f->sharers : 1));

  put(t, dir, "smaps_rollup", text, (size_t)n);
}

static void put_cmdline(const struct proctree *t, const char *dir,
                        const struct fake *f) {
  size_t len = f->cmdline ? strlen(f->cmdline) + 1 : 0;
  char *text = strdup(f->cmdline ? f->cmdline : "");

  for (char *p = text; *p; p++)
    if (*p == ' ')
      *p = '\0';
  put(t, dir, "cmdline", text, len);
  free(text);
}

static void put_exe(const struct proctree *t, const char *dir,
                    const struct fake *f) {
  char path[PATH_SIZE];

  snprintf(path, sizeof(path), "%s/%s/exe", t->root, dir);
  unlink(path);
  if (f->exe && symlink(f->exe, path) < 0)
    fail(path);
}

static void put_all(const struct proctree *t, const char *dir,
                    const struct fake *f) {
  char text[512], tables[32] = "", swap[32] = "";
  int n;

  if (f->tables_kb)
    snprintf(tables, sizeof(tables), "VmPTE:\t%8u kB\n", f->tables_kb);
  if (f->swap_kb)
    snprintf(swap, sizeof(swap), "VmSwap:\t%8u kB\n", f->swap_kb);
  put_stat(t, dir, f);
  put_statm(t, dir, f);
  put_rollup(t, dir, f);
  put_cmdline(t, dir, f);
  put_exe(t, dir, f);
  n = snprintf(text, sizeof(text),
               "Name:\tx\nUid:\t%u\t%u\t%u\t%u\nThreads:\t%u\n"
               "%s%s",
               f->uid, f->uid, f->uid, f->uid, f->threads ? f->threads : 1,
               tables, swap);
  put(t, dir, "status", text, (size_t)n);
  n = snprintf(text, sizeof(text), "0::%s\n", f->cgroup ? f->cgroup : "/");
  put(t, dir, "cgroup", text, (size_t)n);
  n = snprintf(text, sizeof(text), "%s\n", f->comm ? f->comm : "");
  put(t, dir, "comm", text, (size_t)n);
}

void proctree_put(const struct proctree *t, const struct fake *f) {
  char dir[16];

  snprintf(dir, sizeof(dir), "%u", f->pid);
  put_all(t, dir, f);
}

void proctree_put_stat(const struct proctree *t, const struct fake *f) {
  char dir[16];

  snprintf(dir, sizeof(dir), "%u", f->pid);
  put_stat(t, dir, f);
}

void proctree_put_thread(const struct proctree *t, uint32_t pid,
                         const struct fake *thread) {
  char dir[48], link[sizeof(t->root) + 16];

  snprintf(dir, sizeof(dir), "%u/task/%u", pid, thread->pid);
  put_all(t, dir, thread);
  /* There is nothing at the id of a thread to be listed. */
  snprintf(link, sizeof(link), "%s/%u", t->root, thread->pid);
  if (thread->pid != pid && symlink(dir, link) != 0 && errno != EEXIST)
    fail(link);
}

static void print_mapping(FILE *file, const struct fake_mapping *m,
                          uint64_t start) {
  unsigned pss = m->pss_kb ? m->pss_kb : m->private_kb + m->shared_kb / 2;
  unsigned size = m->size_kb ? m->size_kb : m->private_kb + m->shared_kb;

  fprintf(file,
          "%" PRIx64 "-%" PRIx64 " %s 00000000 00:00 0 %s\n"
          "Size: %8u kB\nRss: %8u kB\nPss: %8u kB\n"
          "Shared_Clean: 0 kB\nShared_Dirty: %8u kB\n"
          "Private_Clean: 0 kB\nPrivate_Dirty: %8u kB\n"
          "Anonymous: %8u kB\nSwap: %8u kB\nSwapPss: %8u kB\nVmFlags: rd wr mr "
          "mw me ac\n",
          start, start + UINT64_C(1024) * size,
          m->permissions ? m->permissions : "rw-p", m->name ? m->name : "",
          size, m->private_kb + m->shared_kb, pss, m->shared_kb, m->private_kb,
          m->private_kb, m->swap_kb, m->swap_kb);
}

void proctree_put_smaps(const struct proctree *t, uint32_t pid,
                        const struct fake_mapping *mappings, size_t n) {
  char dir[16], *text = NULL;
  size_t len = 0;
  FILE *file = open_memstream(&text, &len);

  if (!file)
    fail("open_memstream");
  for (size_t i = 0; i < n; i++)
    print_mapping(file, &mappings[i], 0x10000000000 + ((uint64_t)i << 32));
  fclose(file);
  snprintf(dir, sizeof(dir), "%u", pid);
  put(t, dir, "smaps", text, len);
  free(text);
}

/* --- pages --- */

void fake_pages_map(const struct proctree *t, uint32_t pid,
                    const struct fake_range *ranges, size_t n) {
  char path[32], *text = NULL;
  size_t len = 0;
  FILE *out = open_memstream(&text, &len);

  if (!out)
    fail("open_memstream");
  for (size_t i = 0; i < n; i++)
    fprintf(out, "%" PRIx64 "-%" PRIx64 " %s 00000000 00:00 0 %s%s\n",
            ranges[i].start, ranges[i].end,
            ranges[i].permissions ? ranges[i].permissions : "rw-p",
            ranges[i].name ? "                 " : "",
            ranges[i].name ? ranges[i].name : "");
  fclose(out);
  snprintf(path, sizeof(path), "%u/maps", pid);
  proctree_write(t, path, text, len);
  free(text);
}

/* The files are sparse: most pages of an address space are not present. */
static void put_numbers(const struct proctree *t, const char *path,
                        uint64_t first, const uint64_t *numbers, size_t n) {
  char whole[PATH_SIZE];
  size_t size = n * sizeof(*numbers);
  int fd;

  snprintf(whole, sizeof(whole), "%s/%s", t->root, path);
  fd = open(whole, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || pwrite(fd, numbers, size, (off_t)(first * sizeof(*numbers))) !=
                    (ssize_t)size)
    fail(whole);
  close(fd);
}

void fake_pages_put_each(const struct proctree *t, uint32_t pid, uint64_t page,
                         const uint64_t *entries, size_t n) {
  char path[32];

  snprintf(path, sizeof(path), "%u/pagemap", pid);
  put_numbers(t, path, page, entries, n);
}

void fake_pages_put(const struct proctree *t, uint32_t pid, uint64_t page,
                    size_t n, uint64_t entry, uint64_t frame) {
  uint64_t *entries = calloc(n, sizeof(*entries));

  if (!entries)
    fail("calloc");
  for (size_t i = 0; i < n; i++)
    entries[i] = entry | (frame ? frame + i : 0);
  fake_pages_put_each(t, pid, page, entries, n);
  free(entries);
}

void fake_pages_count_each(const struct proctree *t, uint64_t frame,
                           const uint64_t *mappings, size_t n) {
  put_numbers(t, "kpagecount", frame, mappings, n);
}

void fake_pages_count(const struct proctree *t, uint64_t frame, size_t n,
                      uint64_t mappings) {
  uint64_t *numbers = calloc(n, sizeof(*numbers));

  if (!numbers)
    fail("calloc");
  for (size_t i = 0; i < n; i++)
    numbers[i] = mappings;
  fake_pages_count_each(t, frame, numbers, n);
  free(numbers);
}
