/* SPDX-License-Identifier: MIT */
/*
 * Starts processes of known shape and activity for measurements.
 *
 *   population [-t SECONDS] [-m SIZE] GROUP...
 *
 * Each group has a leader that forks `count` workers. GROUP is
 * NAME:KEY=VALUE,... and is in the command line of all of them, after --group=.
 * Sizes may end in K, M or G:
 *
 *   count       workers (0)
 *   private     private memory of each worker
 *   shared      one shared mapping of the group, touched by all
 *   inherited   memory that the leader writes before it forks
 *   mappings    further mappings of one page in each worker
 *   busy        per cent of the workers that are active (100)
 *   do          their action, each `tick` milliseconds (1000), with `rate`
 *               bytes (0); see the table of actions
 *   restart_ms  time between two restarts of the oldest worker (never)
 *   save_ms     time between two forks of the leader, like a Redis that saves
 *               (never): the leader does the action instead of the workers
 *   life_ms     lifetime of the child of such a fork (2000)
 *
 * Prints "READY processes=N" when all processes have touched their memory.
 * Ends, with all processes, at the end of its standard input, on SIGTERM or
 * SIGINT, and after -t seconds (3600). Refuses to begin if the groups would
 * take more than -m (14G) or more than the available memory.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define MAX_GROUPS 16
#define WALK_STEPS 4U  /* above `private` */
#define GROW_STEPS 32U /* until it starts again */
#define SPARE_BYTES (UINT64_C(1) << 30)
#define KERNEL_BYTES (UINT64_C(160) << 10) /* stack, mm, page tables, libc */

struct worker;

struct action {
  const char *name;
  void (*act)(struct worker *w);
  unsigned steps; /* of `rate`, that it may add to `private` */
};

struct group {
  char name[16];
  const char *spec;
  const struct action *action;
  uint64_t count, private_bytes, shared_bytes, inherited_bytes, mappings;
  uint64_t busy_percent, rate_bytes, tick_ms, restart_ms, save_ms, life_ms;
};

/* The state of one process; the leader has one too. */
struct worker {
  const struct group *group;
  char *own;         /* room for what it may grow to */
  size_t used, room; /* of that, touched; and all */
  char *shared;
  char *inherited;
  size_t at; /* where it goes on next time */
  uint64_t random;
  char value; /* what it writes: never the same twice */
};

struct timer {
  uint64_t every_ns, due_ns;
};

struct leader {
  struct worker self;
  pid_t *workers;
  uint64_t oldest;
  pid_t saver;
  struct timer restart, save, tick;
};

/* ---- memory ---- */

static char *map_memory(size_t bytes, int sharing) {
  char *p;

  if (bytes == 0)
    return NULL;
  p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
           sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    bench_die("population: mmap");
  /* Huge pages would come and go, and change the numbers. */
  madvise(p, bytes, MADV_NOHUGEPAGE);
  return p;
}

/* Makes every page present. */
static void write_pages(char *p, size_t bytes, char value) {
  for (size_t at = 0; at < bytes; at += PAGE)
    p[at] = (char)(value | 1);
}

static void read_pages(const char *p, size_t bytes) {
  for (size_t at = 0; at < bytes; at += PAGE)
    *(volatile const char *)(p + at);
}

/* Different permissions keep neighbours from becoming one mapping. */
static void make_mappings(uint64_t count) {
  char *p = map_memory(count * PAGE, MAP_PRIVATE);

  write_pages(p, count * PAGE, 1);
  for (uint64_t i = 1; i < count; i += 2)
    if (mprotect(p + i * PAGE, PAGE, PROT_READ) < 0)
      bench_die("population: mprotect (vm.max_map_count?)");
}

/* ---- actions ---- */

static uint64_t next_random(struct worker *w) {
  uint64_t x = w->random += UINT64_C(0x9e3779b97f4a7c15);

  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static void grow(struct worker *w) {
  size_t step = w->group->rate_bytes;

  if (w->used + step > w->room)
    return;
  write_pages(w->own + w->used, step, w->value);
  w->used += step;
}

static void shrink_to(struct worker *w, size_t bytes) {
  madvise(w->own + bytes, w->used - bytes, MADV_DONTNEED);
  w->used = bytes;
}

static void act_walk(struct worker *w) {
  size_t step = w->group->rate_bytes;

  if (next_random(w) & 1)
    grow(w);
  else if (w->used >= w->group->private_bytes / 2 + step)
    shrink_to(w, w->used - step);
}

static void act_grow(struct worker *w) {
  if (w->used + w->group->rate_bytes > w->room)
    shrink_to(w, w->group->private_bytes);
  else
    grow(w);
}

/* The next `rate` bytes of a memory that is used in a circle. */
static char *next_piece(struct worker *w, char *memory, size_t bytes,
                        size_t *ret_bytes) {
  char *piece;

  if (w->at >= bytes)
    w->at = 0;
  *ret_bytes = bytes - w->at;
  if (*ret_bytes > w->group->rate_bytes)
    *ret_bytes = w->group->rate_bytes;
  piece = memory + w->at;
  w->at += *ret_bytes;
  return piece;
}

static void act_touch(struct worker *w) {
  size_t bytes;
  char *piece = next_piece(w, w->own, w->used, &bytes);

  write_pages(piece, bytes, w->value);
}

static void act_cow(struct worker *w) {
  size_t bytes;
  char *piece = next_piece(w, w->inherited, w->group->inherited_bytes, &bytes);

  write_pages(piece, bytes, w->value);
}

/* The pages stay in memory; only this process unmaps them. */
static void act_shm(struct worker *w) {
  size_t bytes;
  char *piece = next_piece(w, w->shared, w->group->shared_bytes, &bytes);

  if (next_random(w) & 1)
    madvise(piece, bytes, MADV_DONTNEED);
  else
    read_pages(piece, bytes);
}

static const struct action actions[] = {
    {"idle", NULL, 0},
    {"walk", act_walk, WALK_STEPS}, /* grows or shrinks at random */
    {"grow", act_grow, GROW_STEPS}, /* step by step, then starts again */
    {"touch", act_touch, 0},        /* writes its own: nothing moves */
    {"cow", act_cow, 0},            /* writes what was inherited */
    {"shm", act_shm, 0},            /* maps and unmaps shared pages */
    {NULL, NULL, 0}};

/* ---- groups ---- */

static const struct key {
  const char *name;
  size_t offset;
} keys[] = {{"count", offsetof(struct group, count)},
            {"private", offsetof(struct group, private_bytes)},
            {"shared", offsetof(struct group, shared_bytes)},
            {"inherited", offsetof(struct group, inherited_bytes)},
            {"mappings", offsetof(struct group, mappings)},
            {"busy", offsetof(struct group, busy_percent)},
            {"rate", offsetof(struct group, rate_bytes)},
            {"tick", offsetof(struct group, tick_ms)},
            {"restart_ms", offsetof(struct group, restart_ms)},
            {"save_ms", offsetof(struct group, save_ms)},
            {"life_ms", offsetof(struct group, life_ms)},
            {NULL, 0}};

static bool set_action(struct group *g, const char *name) {
  for (const struct action *a = actions; a->name; a++) {
    if (strcmp(a->name, name) != 0)
      continue;
    g->action = a;
    return true;
  }
  return false;
}

static bool set_key(struct group *g, const char *name, const char *value) {
  if (strcmp(name, "do") == 0)
    return set_action(g, value);
  for (const struct key *k = keys; k->name; k++)
    if (strcmp(k->name, name) == 0)
      return bench_parse_number(value,
                                (uint64_t *)(void *)((char *)g + k->offset));
  return false;
}

__attribute__((noreturn)) static void refuse(const char *spec,
                                             const char *what) {
  fprintf(stderr, "population: \"%s\": %s\n", spec, what);
  exit(2);
}

static bool takes_pages(const struct group *g) {
  return g->private_bytes % PAGE == 0 && g->shared_bytes % PAGE == 0 &&
         g->inherited_bytes % PAGE == 0 && g->rate_bytes % PAGE == 0;
}

static struct group parse_group(const char *spec) {
  struct group g = {.spec = spec,
                    .action = &actions[0],
                    .busy_percent = 100,
                    .tick_ms = 1000,
                    .life_ms = 2000};
  char *text = strdup(spec), *rest = text ? strchr(text, ':') : NULL;

  if (!rest || rest == text || (size_t)(rest - text) >= sizeof(g.name))
    refuse(spec, "expected NAME:KEY=VALUE,...");
  *rest++ = '\0';
  strcpy(g.name, text);
  for (char *key = strtok_r(rest, ",", &rest); key;
       key = strtok_r(NULL, ",", &rest)) {
    char *value = strchr(key, '=');

    if (value)
      *value++ = '\0';
    if (!value || !set_key(&g, key, value))
      refuse(key, "no such key, or no value for it");
  }
  if (!takes_pages(&g) || g.tick_ms == 0)
    refuse(spec, "sizes are in pages of 4 KiB, and a tick is not 0");
  free(text);
  return g;
}

static uint64_t room_bytes(const struct group *g) {
  return g->private_bytes + g->action->steps * g->rate_bytes;
}

/* Returns the maximum memory of the group. */
static uint64_t needed_bytes(const struct group *g) {
  uint64_t each = room_bytes(g) + g->mappings * (PAGE + 200) + KERNEL_BYTES +
                  (g->shared_bytes + g->inherited_bytes) / 512;
  uint64_t copies = g->save_ms > 0 ? 1 : 0;

  if (g->action->act == act_cow && g->save_ms == 0)
    copies = g->count * g->busy_percent / 100;
  return g->shared_bytes + (1 + copies) * g->inherited_bytes +
         (g->count + 1) * each;
}

/* ---- processes ---- */

/* Ends with its parent: no other process would end it. */
static void die_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
}

static pid_t fork_child(void) {
  pid_t parent = getpid(), pid = fork();

  if (pid < 0)
    bench_die("population: fork");
  if (pid == 0)
    die_with_parent(parent);
  return pid;
}

static void report_ready(int fd) {
  if (fd < 0)
    return;
  if (write(fd, "", 1) != 1)
    _exit(1);
  close(fd);
}

static bool is_busy(const struct group *g, uint64_t index) {
  return g->action->act && g->save_ms == 0 &&
         index * 100 < g->busy_percent * g->count;
}

static void touch_all(struct worker *w) {
  const struct group *g = w->group;

  w->room = room_bytes(g);
  w->own = map_memory(w->room, MAP_PRIVATE);
  w->used = g->private_bytes;
  write_pages(w->own, w->used, w->value);
  read_pages(w->shared, g->shared_bytes);
  read_pages(w->inherited, g->inherited_bytes);
  make_mappings(g->mappings);
}

/* Ticks begin at different moments, so the workers act one after the other. */
__attribute__((noreturn)) static void run_worker(struct worker *w,
                                                 uint64_t index, int ready_fd) {
  const struct group *g = w->group;
  uint64_t tick_ns = g->tick_ms * BENCH_NS_PER_MS;

  w->random = (uint64_t)getpid() << 32 | index;
  touch_all(w);
  report_ready(ready_fd);
  if (!is_busy(g, index))
    for (;;)
      pause();
  bench_sleep_ns(next_random(w) % tick_ns);
  for (;; bench_sleep_ns(tick_ns)) {
    g->action->act(w);
    w->value++;
  }
}

static pid_t start_worker(const struct leader *l, uint64_t index,
                          int ready_fd) {
  struct worker w = l->self;
  pid_t pid = fork_child();

  if (pid == 0)
    run_worker(&w, index, ready_fd);
  return pid;
}

/* ---- leaders ---- */

static struct timer timer_start(uint64_t every_ms) {
  uint64_t every_ns = every_ms * BENCH_NS_PER_MS;

  return (struct timer){
      .every_ns = every_ns,
      .due_ns = every_ns == 0 ? UINT64_MAX
                              : bench_now_ns(CLOCK_MONOTONIC) + every_ns};
}

/* True if it is time. A late action runs at once, if it is only a little late.
 */
static bool timer_is_due(struct timer *t, uint64_t now_ns) {
  if (now_ns < t->due_ns)
    return false;
  t->due_ns += t->every_ns;
  if (now_ns > t->due_ns + BENCH_NS_PER_S)
    t->due_ns = now_ns + t->every_ns;
  return true;
}

static void restart_oldest(struct leader *l) {
  uint64_t index = l->oldest++ % l->self.group->count;

  kill(l->workers[index], SIGKILL);
  waitpid(l->workers[index], NULL, 0);
  l->workers[index] = start_worker(l, index, -1);
}

/* The child does nothing: the writes of its parent make the copies. */
static void save(struct leader *l) {
  if (l->saver > 0 && waitpid(l->saver, NULL, WNOHANG) == 0)
    return;
  l->saver = fork_child();
  if (l->saver > 0)
    return;
  bench_sleep_ns(l->self.group->life_ms * BENCH_NS_PER_MS);
  _exit(0);
}

static void reap_saver(struct leader *l) {
  if (l->saver > 0 && waitpid(l->saver, NULL, WNOHANG) != 0)
    l->saver = 0;
}

static uint64_t next_due_ns(const struct leader *l) {
  uint64_t due_ns = l->restart.due_ns;

  if (l->save.due_ns < due_ns)
    due_ns = l->save.due_ns;
  return l->tick.due_ns < due_ns ? l->tick.due_ns : due_ns;
}

__attribute__((noreturn)) static void run_timers(struct leader *l) {
  for (;;) {
    uint64_t now_ns = bench_now_ns(CLOCK_MONOTONIC);

    if (next_due_ns(l) == UINT64_MAX)
      pause();
    if (next_due_ns(l) > now_ns)
      bench_sleep_ns(next_due_ns(l) - now_ns);
    now_ns = bench_now_ns(CLOCK_MONOTONIC);
    reap_saver(l);
    if (timer_is_due(&l->restart, now_ns))
      restart_oldest(l);
    if (timer_is_due(&l->save, now_ns))
      save(l);
    if (timer_is_due(&l->tick, now_ns) && l->self.group->action->act) {
      l->self.group->action->act(&l->self);
      l->self.value++;
    }
  }
}

__attribute__((noreturn)) static void run_leader(const struct group *g,
                                                 int ready_fd) {
  struct leader l = {.self = {.group = g, .value = 1}};
  uint64_t index;

  prctl(PR_SET_NAME, g->name);
  l.self.shared = map_memory(g->shared_bytes, MAP_SHARED);
  l.self.inherited = map_memory(g->inherited_bytes, MAP_PRIVATE);
  write_pages(l.self.shared, g->shared_bytes, 1);
  write_pages(l.self.inherited, g->inherited_bytes, 1);
  l.workers = calloc(g->count + 1, sizeof(*l.workers));
  if (!l.workers)
    bench_die("population");
  for (index = 0; index < g->count; index++)
    l.workers[index] = start_worker(&l, index, ready_fd);
  report_ready(ready_fd);
  l.restart = timer_start(g->count > 0 ? g->restart_ms : 0);
  l.save = timer_start(g->save_ms);
  l.tick = timer_start(g->save_ms > 0 ? g->tick_ms : 0);
  run_timers(&l);
}

/* Executes the program again, so the command line shows the group. */
static void start_leader(const struct group *g, int ready_fd) {
  char spec[512], ready[32];
  char *name = strdup(g->name);

  snprintf(spec, sizeof(spec), "--group=%s", g->spec);
  snprintf(ready, sizeof(ready), "--ready=%d", ready_fd);
  if (!name || fork_child() > 0) {
    free(name);
    return;
  }
  execv("/proc/self/exe", (char *[]){name, spec, ready, NULL});
  _exit(127);
}

/* ---- all of them ---- */

static uint64_t available_bytes(void) {
  FILE *f = fopen("/proc/meminfo", "r");
  char line[128];
  uint64_t kb = 0;

  while (f && fgets(line, sizeof(line), f))
    if (strncmp(line, "MemAvailable:", 13) == 0)
      kb = strtoull(line + 13, NULL, 10);
  if (f)
    fclose(f);
  return kb * 1024;
}

static void check_memory(const struct group *groups, size_t n,
                         uint64_t limit_bytes) {
  uint64_t needed = 0, available = available_bytes();

  for (size_t i = 0; i < n; i++)
    needed += needed_bytes(&groups[i]);
  if (needed <= limit_bytes && needed + SPARE_BYTES <= available)
    return;
  fprintf(stderr,
          "population: needs %" PRIu64 " MiB; allowed are %" PRIu64
          ", available %" PRIu64 " less %" PRIu64 "\n",
          needed >> 20, limit_bytes >> 20, available >> 20, SPARE_BYTES >> 20);
  exit(3);
}

/* The signals that end us, and SIGCHLD for a leader that has ended. */
static int open_signals(void) {
  sigset_t set;
  int fd;

  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGALRM);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  fd = signalfd(-1, &set, SFD_CLOEXEC);
  if (fd < 0)
    bench_die("population: signalfd");
  return fd;
}

static int read_signal(int fd) {
  struct signalfd_siginfo info;

  return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo
                                                       : SIGTERM;
}

static uint64_t count_ready(int fd) {
  char bytes[256];
  ssize_t n = read(fd, bytes, sizeof(bytes));

  return n > 0 ? (uint64_t)n : 0;
}

/* Waits until it is time to end. Returns the exit status: 1 if a leader has
 * ended by itself. */
static int supervise(int ready_fd, int signal_fd, uint64_t expected) {
  struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                         {.fd = signal_fd, .events = POLLIN},
                         {.fd = ready_fd, .events = POLLIN}};
  uint64_t ready = 0;
  char byte;

  for (;;) {
    if (poll(fds, 3, -1) < 0)
      return 1;
    if (fds[0].revents && read(STDIN_FILENO, &byte, 1) <= 0)
      return 0;
    if (fds[1].revents)
      return read_signal(signal_fd) == SIGCHLD ? 1 : 0;
    if (!fds[2].revents)
      continue;
    ready += count_ready(ready_fd);
    if (ready < expected)
      continue;
    printf("READY processes=%" PRIu64 "\n", ready);
    fflush(stdout);
    fds[2].fd = -1;
  }
}

static void kill_children(void) {
  char path[64];
  FILE *f;
  int pid;

  snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
  f = fopen(path, "r");
  while (f && fscanf(f, "%d", &pid) == 1)
    kill(pid, SIGKILL);
  if (f)
    fclose(f);
}

/* The workers die with their leaders and then become our children to wait for.
 */
static void end_all(void) {
  kill_children();
  while (wait(NULL) > 0 || errno == EINTR) {
  }
}

static int run_groups(const struct group *groups, size_t n) {
  int signal_fd = open_signals(), ready[2], status;
  uint64_t expected = 0;

  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (pipe(ready) < 0)
    bench_die("population: pipe");
  for (size_t i = 0; i < n; i++) {
    start_leader(&groups[i], ready[1]);
    expected += groups[i].count + 1;
  }
  close(ready[1]);
  status = supervise(ready[0], signal_fd, expected);
  end_all();
  if (status != 0)
    fprintf(stderr, "population: a leader has ended by itself\n");
  return status;
}

static bool is_leader(int argc, char **argv, struct group *ret_group,
                      int *ret_ready_fd) {
  uint64_t fd;

  if (argc != 3 || strncmp(argv[1], "--group=", 8) != 0 ||
      strncmp(argv[2], "--ready=", 8) != 0 ||
      !bench_parse_number(argv[2] + 8, &fd))
    return false;
  *ret_group = parse_group(argv[1] + 8);
  *ret_ready_fd = (int)fd;
  return true;
}

int main(int argc, char **argv) {
  struct group groups[MAX_GROUPS];
  uint64_t seconds = 3600, limit_bytes = UINT64_C(14) << 30;
  size_t n = 0;
  int option, ready_fd;

  if (is_leader(argc, argv, &groups[0], &ready_fd))
    run_leader(&groups[0], ready_fd);
  while ((option = getopt(argc, argv, "t:m:")) != -1) {
    if (option == 't')
      seconds = bench_number_option('t', optarg);
    else if (option == 'm')
      limit_bytes = bench_number_option('m', optarg);
    else
      return 2;
  }
  if (optind == argc || argc - optind > MAX_GROUPS) {
    fprintf(stderr, "usage: population [-t SECONDS] [-m SIZE] GROUP...\n");
    return 2;
  }
  for (int i = optind; i < argc; i++)
    groups[n++] = parse_group(argv[i]);
  check_memory(groups, n, limit_bytes);
  alarm((unsigned)seconds);
  return run_groups(groups, n);
}
