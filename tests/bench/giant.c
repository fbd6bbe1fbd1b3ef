/* SPDX-License-Identifier: MIT */
/*
 * A process of large memory, and the time that one of its threads waits to map
 * memory: whoever walks its page tables holds the lock that the thread needs.
 *
 *   giant KIND [-s SIZE] [-n COUNT] [-r RATE] [-o OUTSIDERS] [-p PERCENT]
 *
 *   anon    SIZE of private memory
 *   thp     the same in huge pages
 *   thpfork the same after a fork, and the parent has written to the first page
 *           of each
 *   set     COUNT processes that map the same SIZE and have 5 MB of their own;
 *           OUTSIDERS more map it too, with the command line "giant out". Each
 *           has touched PERCENT (100) of it, here and there
 *   redis   SIZE, then a fork; the parent has written to a quarter of it, and
 *           goes on with RATE bytes a second, here and there
 *   jvm     a heap of SIZE that is mapped three times and half in use, 64 GiB
 *           that are reserved, and of further 3 * SIZE one page in 16
 *   vmas    COUNT mappings of four pages
 *   grow    SIZE, and half as much again and back at RATE bytes a second
 *
 * Prints "READY". Each line of standard input is a number of milliseconds: for
 * that long a thread of the first process maps and unmaps 64 KiB, some thousand
 * times a second, and its latency is printed as one line of key=value, in
 * nanoseconds. All ends at the end of its input.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "latency.h"

#define PAGE 4096
#define HUGE (UINT64_C(2) << 20)
#define MAP_BYTES (16 * PAGE)
#define OWN_BYTES (UINT64_C(5) << 20) /* of each member of a set */
#define BUFFER_BYTES (2 * PAGE)
#define RESERVED_BYTES (UINT64_C(64) << 30)
#define HEAP_VIEWS 3
#define RUN_BYTES (UINT64_C(256) << 10) /* of a heap, in use or not */
#define MAPPING_BYTES (4 * PAGE)
#define GROW_STEP (UINT64_C(4) << 20)
#define MOVE_NS (10 * BENCH_NS_PER_MS)
#define SETTLE_NS (100 * BENCH_NS_PER_MS) /* above most latencies */
#define REST_NS (100 * UINT64_C(1000))

struct giant {
  const struct kind *kind;
  char *command; /* in our command line, as ps shows it */
  uint64_t size, count, rate, outsiders, percent;
  uint64_t random;
  char *memory;
  uint64_t used; /* of `memory` */
  bool is_shrinking;
  atomic_bool is_measuring;
  struct latencies maps;
};

struct kind {
  const char *name;
  void (*make)(struct giant *g);
  /* Changes at most `bytes`, and returns how many. NULL if it stands still. */
  uint64_t (*move)(struct giant *g, uint64_t bytes);
};

/* ---- memory ---- */

static char *map(uint64_t bytes, int flags, int fd) {
  char *p =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);

  if (p == MAP_FAILED)
    bench_die("giant: mmap");
  return p;
}

/* In small pages: huge ones would come and go, and change the numbers. */
static char *map_small(uint64_t bytes, int sharing) {
  char *p = map(bytes, sharing | MAP_ANONYMOUS, -1);

  madvise(p, bytes, MADV_NOHUGEPAGE);
  return p;
}

/* Nothing is read: reading a page of a file maps its neighbours too. */
static void write_pages(char *p, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += PAGE)
    *(volatile char *)(p + at) = 1;
}

static uint64_t next_random(struct giant *g) {
  uint64_t x = g->random += UINT64_C(0x9e3779b97f4a7c15);

  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

/* ---- kinds ---- */

static void make_anon(struct giant *g) {
  g->memory = map_small(g->size, MAP_PRIVATE);
  write_pages(g->memory, g->size);
}

static void make_thp(struct giant *g) {
  char *p = map(g->size + HUGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

  p += HUGE - (uintptr_t)p % HUGE;
  if (madvise(p, g->size, MADV_HUGEPAGE) < 0)
    bench_die("giant: MADV_HUGEPAGE");
  write_pages(p, g->size);
  g->memory = p;
}

/* Each member has a part of its own. */
static void touch_as_member(struct giant *g) {
  g->random += (uint64_t)getpid() << 32;
  for (uint64_t at = 0; at < g->size; at += BUFFER_BYTES)
    if (next_random(g) % 100 < g->percent)
      write_pages(g->memory + at, BUFFER_BYTES);
  write_pages(map_small(OWN_BYTES, MAP_PRIVATE), OWN_BYTES);
}

/* A child sleeps until we end. It says so when its memory is there. */
static void run_child(struct giant *g, int ready, bool is_member) {
  if (is_member)
    touch_as_member(g);
  if (write(ready, "", 1) != 1)
    _exit(1);
  for (;;)
    pause();
}

static void fork_child(struct giant *g, bool is_member, bool is_outsider) {
  pid_t parent = getpid(), pid;
  int ready[2];
  char c;

  if (pipe(ready) < 0 || (pid = fork()) < 0)
    bench_die("giant: fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(1);
    if (is_outsider)
      memcpy(g->command, "out", sizeof("out"));
    run_child(g, ready[1], is_member);
  }
  close(ready[1]);
  if (read(ready[0], &c, 1) != 1)
    bench_die("giant: a child");
  close(ready[0]);
}

static void make_set(struct giant *g) {
  g->memory = map_small(g->size, MAP_SHARED);
  for (uint64_t i = 0; i < g->outsiders; i++)
    fork_child(g, true, true);
  for (uint64_t i = 1; i < g->count; i++)
    fork_child(g, true, false);
  touch_as_member(g);
}

static uint64_t break_pages(struct giant *g, uint64_t bytes) {
  uint64_t pages = g->size / PAGE;

  for (uint64_t i = 0; i < bytes / PAGE; i++)
    write_pages(g->memory + next_random(g) % pages * PAGE, PAGE);
  return bytes - bytes % PAGE;
}

static void make_redis(struct giant *g) {
  make_anon(g);
  fork_child(g, false, false);
  break_pages(g, g->size / 4);
}

static void make_jvm(struct giant *g) {
  uint64_t sparse = HEAP_VIEWS * g->size;
  char *p = map_small(sparse, MAP_PRIVATE), *views[HEAP_VIEWS];
  int fd = memfd_create("java_heap", MFD_CLOEXEC);

  for (uint64_t at = 0; at < sparse; at += PAGE)
    if (next_random(g) % 16 == 0)
      write_pages(p + at, PAGE);
  if (fd < 0 || ftruncate(fd, (off_t)g->size) < 0)
    bench_die("giant: memfd");
  for (unsigned i = 0; i < HEAP_VIEWS; i++)
    views[i] = map(g->size, MAP_SHARED, fd);
  for (uint64_t at = 0; at < g->size; at += RUN_BYTES)
    for (unsigned i = 0; i < HEAP_VIEWS && next_random(g) % 4 < 3; i++)
      write_pages(views[i] + at, RUN_BYTES);
  if (mprotect(map(RESERVED_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1),
               RESERVED_BYTES, PROT_NONE) < 0)
    bench_die("giant: mprotect");
}

/* Different permissions keep neighbours from becoming one mapping. */
static void make_vmas(struct giant *g) {
  char *p = map_small(g->count * MAPPING_BYTES, MAP_PRIVATE);

  write_pages(p, g->count * MAPPING_BYTES);
  for (uint64_t i = 0; i < g->count; i += 2)
    if (mprotect(p + i * MAPPING_BYTES, MAPPING_BYTES, PROT_READ) < 0)
      bench_die("giant: mprotect (vm.max_map_count?)");
}

static void make_grow(struct giant *g) {
  g->memory = map_small(g->size + g->size / 2, MAP_PRIVATE);
  write_pages(g->memory, g->size);
  g->used = g->size;
}

static void grow_or_shrink_step(struct giant *g) {
  if (g->is_shrinking) {
    g->used -= GROW_STEP;
    madvise(g->memory + g->used, GROW_STEP, MADV_DONTNEED);
  } else {
    write_pages(g->memory + g->used, GROW_STEP);
    g->used += GROW_STEP;
  }
  if (g->used <= g->size)
    g->is_shrinking = false;
  if (g->used + GROW_STEP > g->size + g->size / 2)
    g->is_shrinking = true;
}

static uint64_t grow_or_shrink(struct giant *g, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes / GROW_STEP; i++)
    grow_or_shrink_step(g);
  return bytes - bytes % GROW_STEP;
}

static void make_thpfork(struct giant *g) {
  make_thp(g);
  fork_child(g, false, false);
  for (uint64_t at = 0; at < g->size; at += HUGE)
    write_pages(g->memory + at, PAGE);
}

static const struct kind kinds[] = {
    {"anon", make_anon, NULL},          {"thp", make_thp, NULL},
    {"thpfork", make_thpfork, NULL},    {"set", make_set, NULL},
    {"redis", make_redis, break_pages}, {"jvm", make_jvm, NULL},
    {"vmas", make_vmas, NULL},          {"grow", make_grow, grow_or_shrink}};

/* ---- threads ---- */

/* An operation that begins in the measured time counts, even if it ends later.
 */
__attribute__((noreturn)) static void *run_mapper(void *arg) {
  struct giant *g = arg;

  for (;;) {
    bool is_measured = atomic_load(&g->is_measuring);
    uint64_t start_ns = bench_now_ns(CLOCK_MONOTONIC);

    munmap(map(MAP_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1), MAP_BYTES);
    if (is_measured)
      latencies_add(&g->maps, bench_now_ns(CLOCK_MONOTONIC) - start_ns);
    bench_sleep_ns(REST_NS);
  }
}

/* The next step makes up for what a late one has missed. */
__attribute__((noreturn)) static void *run_mover(void *arg) {
  struct giant *g = arg;
  uint64_t last_ns = bench_now_ns(CLOCK_MONOTONIC), due = 0;

  for (;;) {
    uint64_t now_ns = bench_now_ns(CLOCK_MONOTONIC);

    due += g->rate * (now_ns - last_ns) / BENCH_NS_PER_S;
    last_ns = now_ns;
    due -= g->kind->move(g, due);
    bench_sleep_ns(MOVE_NS);
  }
}

static void start_thread(void *(*run)(void *), struct giant *g) {
  pthread_t thread;

  if (pthread_create(&thread, NULL, run, g) != 0)
    bench_die("giant: pthread_create");
}

static void answer(struct giant *g) {
  char line[32];

  while (fgets(line, sizeof(line), stdin)) {
    uint64_t ms;

    line[strcspn(line, "\n")] = '\0';
    if (!bench_parse_number(line, &ms)) {
      fprintf(stderr, "giant: expected milliseconds, not \"%s\"\n", line);
      exit(2);
    }
    latencies_clear(&g->maps);
    atomic_store(&g->is_measuring, true);
    bench_sleep_ns(ms * BENCH_NS_PER_MS);
    atomic_store(&g->is_measuring, false);
    bench_sleep_ns(SETTLE_NS);
    latencies_print(&g->maps);
    fflush(stdout);
  }
}

/* ---- options ---- */

__attribute__((noreturn)) static void usage(void) {
  fprintf(stderr, "usage: giant KIND [-s SIZE] [-n COUNT] [-r RATE] "
                  "[-o OUTSIDERS] [-p PERCENT]\nkinds:");
  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
    fprintf(stderr, " %s", kinds[i].name);
  fputs("\n", stderr);
  exit(2);
}

static const struct kind *find_kind(const char *name) {
  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
    if (name && strcmp(kinds[i].name, name) == 0)
      return &kinds[i];
  usage();
}

static void parse_options(struct giant *g, int argc, char **argv) {
  int option;

  while ((option = getopt(argc, argv, "s:n:r:o:p:")) != -1) {
    if (option == '?')
      usage();
    if (option == 's')
      g->size = bench_number_option('s', optarg);
    if (option == 'n')
      g->count = bench_number_option('n', optarg);
    if (option == 'r')
      g->rate = bench_number_option('r', optarg);
    if (option == 'o')
      g->outsiders = bench_number_option('o', optarg);
    if (option == 'p')
      g->percent = bench_number_option('p', optarg);
  }
}

int main(int argc, char **argv) {
  static struct giant g = {
      .size = UINT64_C(1) << 30, .count = 20, .percent = 100};

  g.command = argc > 1 ? argv[1] : NULL;
  g.kind = find_kind(g.command);
  parse_options(&g, argc - 1, argv + 1);
  g.kind->make(&g);
  if (g.kind->move && g.rate > 0)
    start_thread(run_mover, &g);
  start_thread(run_mapper, &g);
  puts("READY");
  fflush(stdout);
  answer(&g);
  return 0;
}
