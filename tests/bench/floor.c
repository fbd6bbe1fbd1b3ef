/* SPDX-License-Identifier: MIT */
/*
 * Measures the kernel's part of reading every process: open, read and close of
 * its files, and nothing else. No program that reads the same files can use
 * less CPU, so the other programs are compared with this.
 *
 *   floor [-n PASSES] [-p MS] [-f FILES]
 *
 *   -n  passes (5); one more runs first and does not count
 *   -p  milliseconds of sleep before each pass (0): a daemon that wakes once
 *       a second finds the caches cold, so compare it with such a pause
 *   -f  files, separated by commas (smaps_rollup,statm)
 *
 * Prints one line of key=value with medians over the passes.
 *
 *   floor -S -g NAME=REGEX [-g ...]
 *
 * Prints the truth instead: for each line on standard input it reads all
 * processes once and prints the sums of each group and the times of the begin
 * and the end. The first extended regular expression that matches the command
 * line takes the process. Ends at the end of input.
 */
#include "bench.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <regex.h>
#include <string.h>
#include <unistd.h>

#define MAX_FILES 4
#define MAX_GROUPS 64
#define PATH_SIZE 48
#define TEXT_SIZE 16384 /* above any smaps_rollup, and what smaps comes in */

struct floor {
  int proc_fd;
  const char *files[MAX_FILES];
  unsigned n_files;
  unsigned passes;
  uint64_t pause_ns;
  unsigned *pids;
  size_t n_pids, cap_pids;
  char text[TEXT_SIZE];
};

struct pass {
  uint64_t cpu_ns, wall_ns;
  size_t read, gone;
};

struct group {
  const char *name;
  regex_t pattern;
  uint64_t processes, rss_kb, pss_kb, uss_kb, swap_kb;
};

/* ---- processes ---- */

static void append_pid(struct floor *f, unsigned pid) {
  if (f->n_pids == f->cap_pids) {
    size_t cap = f->cap_pids ? 2 * f->cap_pids : 1024;
    unsigned *pids = reallocarray(f->pids, cap, sizeof(*pids));

    if (!pids)
      bench_die("floor");
    f->pids = pids;
    f->cap_pids = cap;
  }
  f->pids[f->n_pids++] = pid;
}

/* Not snprintf(): it would take a tenth of the time of a small process. */
static void write_path(char *path, unsigned pid, const char *file) {
  char digits[12];
  unsigned n = 0;

  do {
    digits[n++] = (char)('0' + pid % 10);
    pid /= 10;
  } while (pid > 0);
  while (n > 0)
    *path++ = digits[--n];
  *path++ = '/';
  while ((*path++ = *file++)) {
  }
}

static int open_file(const struct floor *f, unsigned pid, const char *file) {
  char path[PATH_SIZE];

  write_path(path, pid, file);
  return openat(f->proc_fd, path, O_RDONLY | O_CLOEXEC);
}

/* Reads the beginning of a file and adds a NUL. Empty if there is no such file.
 */
static size_t read_text(const struct floor *f, unsigned pid, const char *file,
                        char *text, size_t size) {
  int fd = open_file(f, pid, file);
  ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

  if (fd >= 0)
    close(fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0 ? (size_t)n : 0;
}

static void list_processes(struct floor *f) {
  const struct dirent *entry;
  DIR *directory;

  directory = opendir("/proc");
  if (!directory)
    bench_die("/proc");
  f->n_pids = 0;
  while ((entry = readdir(directory))) {
    uint64_t pid;

    if (bench_parse_number(entry->d_name, &pid))
      append_pid(f, (unsigned)pid);
  }
  closedir(directory);
}

/* ---- the floor ---- */

/* smaps comes in pieces; one read gets all of any other file. */
static bool read_opened(struct floor *f, unsigned pid, const char *file) {
  int fd = open_file(f, pid, file);
  bool is_whole = strcmp(file, "smaps") != 0;
  bool is_read;

  if (fd < 0)
    return false;
  is_read = read(fd, f->text, sizeof(f->text)) > 0;
  while (!is_whole && read(fd, f->text, sizeof(f->text)) > 0) {
  }
  close(fd);
  return is_read;
}

static void read_all(struct floor *f, struct pass *pass) {
  for (size_t i = 0; i < f->n_pids; i++) {
    bool is_read = true;

    for (unsigned k = 0; is_read && k < f->n_files; k++)
      is_read = read_opened(f, f->pids[i], f->files[k]);
    pass->read += is_read;
    pass->gone += !is_read;
  }
}

/* Lists after the pause, so the list is as new as a daemon's. */
static struct pass run_pass(struct floor *f) {
  struct pass pass = {0};
  uint64_t cpu_ns, wall_ns;

  bench_sleep_ns(f->pause_ns);
  list_processes(f);
  cpu_ns = bench_now_ns(CLOCK_PROCESS_CPUTIME_ID);
  wall_ns = bench_now_ns(CLOCK_MONOTONIC);
  read_all(f, &pass);
  pass.cpu_ns = bench_now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
  pass.wall_ns = bench_now_ns(CLOCK_MONOTONIC) - wall_ns;
  return pass;
}

static int compare_cpu(const void *a, const void *b) {
  uint64_t x = ((const struct pass *)a)->cpu_ns;
  uint64_t y = ((const struct pass *)b)->cpu_ns;

  return (x > y) - (x < y);
}

/* Prints the pass with the median time, so all numbers are of one pass. */
static void print_floor(struct pass *passes, unsigned n) {
  struct pass *p;

  qsort(passes, n, sizeof(*passes), compare_cpu);
  p = &passes[n / 2];
  printf("passes=%u processes=%zu gone=%zu cpu_ns=%" PRIu64
         " cpu_min_ns=%" PRIu64 " "
         "wall_ns=%" PRIu64 " per_process_ns=%" PRIu64 "\n",
         n, p->read, p->gone, p->cpu_ns, passes[0].cpu_ns, p->wall_ns,
         p->read ? p->cpu_ns / p->read : 0);
}

static void run_floor(struct floor *f) {
  struct pass *passes = calloc(f->passes, sizeof(*passes));

  if (!passes)
    bench_die("floor");
  run_pass(f);
  for (unsigned i = 0; i < f->passes; i++)
    passes[i] = run_pass(f);
  print_floor(passes, f->passes);
  free(passes);
}

/* ---- the truth ---- */

/* Our own command line contains all expressions, so we skip ourselves. */
static struct group *find_group(struct floor *f, struct group *groups,
                                size_t n_groups, unsigned pid) {
  char text[4096];
  size_t len = 0;

  if (pid != (unsigned)getpid())
    len = read_text(f, pid, "cmdline", text, sizeof(text));
  for (size_t i = 0; i + 1 < len; i++)
    if (text[i] == '\0')
      text[i] = ' ';
  for (size_t i = 0; len > 0 && i < n_groups; i++)
    if (regexec(&groups[i].pattern, text, 0, NULL, 0) == 0)
      return &groups[i];
  return NULL;
}

/* Returns the number after `key` at the beginning of a line. */
static uint64_t find_kb(const char *text, const char *key) {
  const char *at = strstr(text, key);
  uint64_t n = 0;

  if (!at)
    return 0;
  for (at += strlen(key); *at == ' '; at++) {
  }
  while (*at >= '0' && *at <= '9')
    n = n * 10 + (uint64_t)(*at++ - '0');
  return n;
}

static void add_process(struct floor *f, struct group *g, unsigned pid) {
  if (read_text(f, pid, "smaps_rollup", f->text, sizeof(f->text)) == 0)
    return;
  g->processes++;
  g->rss_kb += find_kb(f->text, "\nRss:");
  g->pss_kb += find_kb(f->text, "\nPss:");
  g->uss_kb += find_kb(f->text, "\nPrivate_Clean:");
  g->uss_kb += find_kb(f->text, "\nPrivate_Dirty:");
  g->swap_kb += find_kb(f->text, "\nSwapPss:");
}

static void scan_groups(struct floor *f, struct group *groups,
                        size_t n_groups) {
  for (size_t i = 0; i < n_groups; i++)
    groups[i].processes = groups[i].rss_kb = groups[i].pss_kb =
        groups[i].uss_kb = groups[i].swap_kb = 0;
  list_processes(f);
  for (size_t i = 0; i < f->n_pids; i++) {
    struct group *g = find_group(f, groups, n_groups, f->pids[i]);

    if (g)
      add_process(f, g, f->pids[i]);
  }
}

static void print_groups(const struct group *groups, size_t n_groups,
                         uint64_t begin_ns, uint64_t end_ns) {
  printf("scan begin_ns=%" PRIu64 " end_ns=%" PRIu64 " groups=%zu\n", begin_ns,
         end_ns, n_groups);
  for (size_t i = 0; i < n_groups; i++) {
    const struct group *g = &groups[i];

    printf("group=%s processes=%" PRIu64 " rss=%" PRIu64 " pss=%" PRIu64
           " uss=%" PRIu64 " swap=%" PRIu64 "\n",
           g->name, g->processes, g->rss_kb * 1024, g->pss_kb * 1024,
           g->uss_kb * 1024, g->swap_kb * 1024);
  }
  fflush(stdout);
}

/* Prints the sums with the real time, which the values of collectd have too. */
static void run_truth(struct floor *f, struct group *groups, size_t n_groups) {
  char line[64];

  while (fgets(line, sizeof(line), stdin)) {
    uint64_t begin_ns = bench_now_ns(CLOCK_REALTIME);

    scan_groups(f, groups, n_groups);
    print_groups(groups, n_groups, begin_ns, bench_now_ns(CLOCK_REALTIME));
  }
}

/* ---- options ---- */

static void set_files(struct floor *f, char *list) {
  char *rest = NULL;

  f->n_files = 0;
  for (char *file = strtok_r(list, ",", &rest); file;
       file = strtok_r(NULL, ",", &rest)) {
    if (f->n_files == MAX_FILES || strlen(file) > PATH_SIZE / 2) {
      fprintf(stderr, "-f: too many files, or too long a name\n");
      exit(2);
    }
    f->files[f->n_files++] = file;
  }
}

static void compile(regex_t *pattern, const char *text) {
  if (regcomp(pattern, text, REG_EXTENDED | REG_NOSUB) != 0) {
    fprintf(stderr, "\"%s\" is no regular expression\n", text);
    exit(2);
  }
}

static void add_group(struct group *groups, size_t *n_groups, char *text) {
  char *equals = strchr(text, '=');

  if (!equals || *n_groups == MAX_GROUPS) {
    fprintf(stderr, "-g: expected NAME=REGEX, at most %d times\n", MAX_GROUPS);
    exit(2);
  }
  *equals = '\0';
  groups[*n_groups].name = text;
  compile(&groups[(*n_groups)++].pattern, equals + 1);
}

struct options {
  struct floor floor;
  struct group groups[MAX_GROUPS];
  size_t n_groups;
  bool is_truth;
};

static bool apply_option(struct options *o, int option) {
  struct floor *f = &o->floor;

  if (option == 'n')
    f->passes = (unsigned)bench_number_option('n', optarg);
  else if (option == 'p')
    f->pause_ns = bench_number_option('p', optarg) * BENCH_NS_PER_MS;
  else if (option == 'f')
    set_files(f, optarg);
  else if (option == 'S')
    o->is_truth = true;
  else if (option == 'g')
    add_group(o->groups, &o->n_groups, optarg);
  else
    return false;
  return true;
}

static bool parse_options(struct options *o, int argc, char **argv) {
  int option;

  while ((option = getopt(argc, argv, "n:p:f:Sg:")) != -1)
    if (!apply_option(o, option))
      return false;
  return optind == argc && o->floor.passes > 0 &&
         (!o->is_truth || o->n_groups > 0);
}

int main(int argc, char **argv) {
  static struct options o = {
      .floor = {.files = {"smaps_rollup", "statm"}, .n_files = 2, .passes = 5}};

  if (!parse_options(&o, argc, argv)) {
    fprintf(stderr, "usage: floor [-n PASSES] [-p MS] [-f FILES]\n"
                    "       floor -S -g NAME=REGEX [-g ...]\n");
    return 2;
  }
  o.floor.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (o.floor.proc_fd < 0)
    bench_die("/proc");
  if (o.is_truth)
    run_truth(&o.floor, o.groups, o.n_groups);
  else
    run_floor(&o.floor);
  return 0;
}
