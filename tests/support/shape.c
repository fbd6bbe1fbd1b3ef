/* SPDX-License-Identifier: MIT */
/*
 * shape - makes real processes of a known shape for the integration tests.
 *
 * The program itself is only the supervisor. It forks a root process, which
 * makes the shape of its kind, alone or with forked children. When all memory
 * is touched and everything stands, the supervisor prints
 *
 *   READY root-pid pid ...
 *
 * and takes commands on standard input, one a line, each answered by one line:
 *
 *   grow N   the root allocates N MiB more ("OK"); not vfork, forkexec, churn
 *   go       forkexec: the child execs now ("OK"); once
 *   count    churn: how many processes were started so far ("COUNT N")
 *   exit     ends, as do end of file and SIGTERM
 *
 * Every process gets a SIGKILL when its parent ends, so nothing survives the
 * supervisor.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define COMM_SIZE 16

/* A process that runs this program again by exec learns its role from this
 * variable, because --argv-hex needs argv for itself. */
#define SHAPE_HELD "SHAPE_HELD"

struct shape;

struct kind {
  const char *name;
  void (*run)(struct shape *s); /* in the root process; does not return */
  const char *command;          /* what it understands: "grow", "go", NULL */
  unsigned children;            /* default of --children */
};

struct shape {
  const struct kind *kind;
  char name[COMM_SIZE];
  char child_name[COMM_SIZE]; /* empty: as the root */
  const char *argv_hex;
  size_t bytes;
  size_t rewrite_bytes;
  unsigned children;
  unsigned threads;
  unsigned rate;
  unsigned seconds;
  unsigned life_ms;               /* churn: of each; 0 is for ever */
  int report_fd;                  /* records to the supervisor, or -1 */
  int command_fd;                 /* command lines from it */
  _Atomic unsigned long *started; /* churn: shared with the supervisor */
};

/* Messages of the processes to the supervisor. */
enum event {
  EVENT_EXPECT, /* value: how many processes will be ready */
  EVENT_READY,  /* this one stands */
  EVENT_DONE,   /* a command has been carried out */
};

struct record {
  enum event event;
  pid_t pid;
  unsigned long value;
};

#define HUGE_PAGE (2 * MIB)
#define CLONE_STACK (64 * KIB)
#define MAX_LIVE 64 /* short-lived processes at one time */
#define CHURN_BYTES (256 * KIB)
#define CHURN_LIFE_MS 100
#define MAX_PIDS 4096
#define MAX_NUMBER (1ul << 30)

/* Prints what failed, with errno, and ends the process. */
__attribute__((noreturn)) static void shape_die(const char *what) {
  fprintf(stderr, "shape: %s: %s\n", what, strerror(errno));
  _exit(1);
}

static void shape_report(const struct shape *s, enum event event,
                         unsigned long value) {
  struct record r = {.event = event, .pid = getpid(), .value = value};

  /* Below PIPE_BUF, so records of several processes do not mix. */
  if (s->report_fd >= 0 && write(s->report_fd, &r, sizeof(r)) < 0)
    shape_die("report");
}

/* Bytes from hexadecimal, ended by a NUL that is not counted. -1 where it is
 * none, or too long for `size`. */
static int shape_decode_hex(const char *hex, char *ret, size_t size,
                            size_t *ret_len) {
  size_t n = strlen(hex) / 2;

  if (strlen(hex) % 2 != 0 || n >= size)
    return -1;
  for (size_t i = 0; i < n; i++) {
    char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
    char *end;

    ret[i] = (char)strtoul(pair, &end, 16);
    if (*end != '\0')
      return -1;
  }
  ret[n] = '\0';
  *ret_len = n;
  return 0;
}

static void shape_sleep_ms(unsigned ms) {
  struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

  nanosleep(&t, NULL);
}

/* ---- memory ---- */

static char *shape_map(size_t bytes, int flags, int fd) {
  int protection = PROT_READ | (fd < 0 ? PROT_WRITE : 0);
  char *p = mmap(NULL, bytes, protection, flags, fd, 0);

  if (p == MAP_FAILED)
    shape_die("mmap");
  return p;
}

/* Anonymous, in small pages only: khugepaged must not change the numbers. */
static char *shape_map_small(size_t bytes, int flags) {
  char *p = shape_map(bytes, flags | MAP_ANONYMOUS, -1);

  /* Fails where the kernel has no huge pages, which is as good. */
  madvise(p, bytes, MADV_NOHUGEPAGE);
  return p;
}

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* Makes every page present, different from every other and from before. */
static void shape_write(char *p, size_t bytes) {
  uint64_t stamp = (uint64_t)getpid() << 40;

  for (size_t at = 0; at < bytes; at += page_size()) {
    stamp++;
    memcpy(p + at, &stamp, sizeof(stamp));
  }
}

static void shape_read(const char *p, size_t bytes) {
  for (size_t at = 0; at < bytes; at += page_size())
    (void)*(const volatile char *)(p + at);
}

/* Maps private anonymous memory, and writes it. */
static char *shape_new_private(size_t bytes) {
  char *p;

  if (bytes == 0)
    return NULL;
  p = shape_map_small(bytes, MAP_PRIVATE);
  shape_write(p, bytes);
  return p;
}

/* ---- processes ---- */

/* Asks for a SIGKILL at the parent's end, and checks that it is still there. */
static void shape_die_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent)
    _exit(0);
}

/* The first steps of a child: its end, its name. */
static void shape_begin_child(const struct shape *s, pid_t parent) {
  shape_die_with_parent(parent);
  if (s->child_name[0] != '\0')
    prctl(PR_SET_NAME, s->child_name, 0, 0, 0);
}

/* Forks a child that has begun; otherwise as fork(), but it does not fail. */
static pid_t shape_fork(const struct shape *s) {
  pid_t parent = getpid();
  pid_t pid = fork();

  if (pid < 0)
    shape_die("fork");
  if (pid == 0)
    shape_begin_child(s, parent);
  return pid;
}

__attribute__((noreturn)) static void shape_hold(void) {
  for (;;)
    pause();
}

/* Forks all children; each runs body() on the memory, reports and holds. */
static void shape_fork_children(struct shape *s, char *memory,
                                void (*body)(const struct shape *s,
                                             char *memory)) {
  for (unsigned i = 0; i < s->children; i++) {
    if (shape_fork(s) != 0)
      continue;
    body(s, memory);
    shape_report(s, EVENT_READY, 0);
    shape_hold();
  }
}

/* Reads one command line, without its newline. False at the end of file. Byte
 * by byte: what follows the line may be for another process. */
static bool shape_read_line(int fd, char *line, size_t size) {
  size_t len = 0;
  char c = '\0';

  while (len + 1 < size && read(fd, &c, 1) == 1 && c != '\n')
    line[len++] = c;
  line[len] = '\0';
  return c == '\n';
}

/* The root and its children stand. Says so, and then takes commands. */
__attribute__((noreturn)) static void shape_stand(const struct shape *s) {
  char line[64];

  shape_report(s, EVENT_EXPECT, s->children + 1);
  shape_report(s, EVENT_READY, 0);
  while (shape_read_line(s->command_fd, line, sizeof(line))) {
    if (strncmp(line, "grow ", 5) == 0)
      shape_new_private(strtoul(line + 5, NULL, 10) * MIB);
    shape_report(s, EVENT_DONE, 0);
  }
  shape_hold();
}

/* ---- exec ---- */

/* The path is resolved first: an exec of /proc/self/exe would be called "exe"
 * until the process has set its name. */
static const char *shape_own_path(void) {
  static char path[4096];
  ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

  if (len < 0)
    shape_die("readlink /proc/self/exe");
  path[len] = '\0';
  return path;
}

/* Memory for an argv and its strings, never freed: an exec follows. */
static void *allocate(size_t n, size_t size) {
  void *p = calloc(n, size);

  if (!p)
    shape_die("calloc");
  return p;
}

/* The strings are given as bytes, with a NUL between each two. */
static char **argv_of_hex(const char *hex) {
  size_t size = strlen(hex) / 2 + 1;
  char *bytes = allocate(size, 1);
  char **argv = allocate(size + 1, sizeof(*argv));
  size_t n = 0;
  size_t len = 0;

  if (shape_decode_hex(hex, bytes, size, &len) < 0)
    shape_die("--argv-hex");
  for (size_t at = 0; at <= len; at += strlen(bytes + at) + 1)
    argv[n++] = bytes + at;
  return argv;
}

/* Becomes this program again, under the name and the argv asked for. */
__attribute__((noreturn)) static void shape_exec(const struct shape *s,
                                                 const char *name) {
  const char *path = shape_own_path();
  char hex[2 * COMM_SIZE] = "";
  char spec[256];
  char *env[] = {spec, NULL};

  for (size_t i = 0; name[i] != '\0'; i++)
    snprintf(hex + 2 * i, 3, "%02x", (unsigned)(unsigned char)name[i]);
  snprintf(spec, sizeof(spec), SHAPE_HELD "=%d %d %zu %u %s", s->report_fd,
           s->command_fd, s->bytes, s->life_ms, hex);
  execve(path, argv_of_hex(s->argv_hex), env);
  shape_die(path);
}

/* The main function of what has been exec'ed so. Lives for ever, or for its
 * time if it has one. */
__attribute__((noreturn)) static void shape_run_held(const char *spec) {
  struct shape s = {.report_fd = -1};
  char hex[2 * COMM_SIZE] = "";
  size_t len;

  if (sscanf(spec, "%d %d %zu %u %31s", &s.report_fd, &s.command_fd, &s.bytes,
             &s.life_ms, hex) < 4 ||
      shape_decode_hex(hex, s.name, sizeof(s.name), &len) < 0)
    _exit(2);
  prctl(PR_SET_NAME, s.name, 0, 0, 0);
  shape_new_private(s.bytes);
  if (s.life_ms == 0)
    shape_stand(&s);
  shape_sleep_ms(s.life_ms);
  _exit(0);
}

/* ---- kinds ---- */

static void own_private(const struct shape *s, char *memory) {
  (void)memory;
  shape_new_private(s->bytes);
}

/* Each child has as much private memory as the root. */
static void run_anon(struct shape *s) {
  shape_fork_children(s, NULL, own_private);
  shape_new_private(s->bytes);
  shape_stand(s);
}

static void write_all(const struct shape *s, char *memory) {
  shape_write(memory, s->bytes);
}

/* The children touch one shared mapping, and the root does not. */
static void run_shm(struct shape *s) {
  char *memory = shape_map_small(s->bytes, MAP_SHARED);

  shape_fork_children(s, memory, write_all);
  shape_stand(s);
}

/* One shared mapping, which the root alone has, at two addresses. */
static void run_twice(struct shape *s) {
  char *memory = shape_map_small(s->bytes, MAP_SHARED);
  /* Of shared memory an old size of 0 makes another mapping of it. */
  char *again = mremap(memory, 0, s->bytes, MREMAP_MAYMOVE);

  if (again == MAP_FAILED)
    shape_die("mremap");
  shape_write(memory, s->bytes);
  shape_read(again, s->bytes);
  shape_stand(s);
}

static void rewrite(const struct shape *s, char *memory) {
  shape_write(memory, s->rewrite_bytes);
}

/* Written before the fork; every child then rewrites the first part. */
static void run_cow(struct shape *s) {
  char *memory = shape_new_private(s->bytes);

  shape_fork_children(s, memory, rewrite);
  shape_stand(s);
}

static void read_all(const struct shape *s, char *memory) {
  shape_read(memory, s->bytes);
}

/* A mapped file, read by the children and not by the root. */
static void run_file(struct shape *s) {
  static char chunk[MIB];
  FILE *f = tmpfile();

  if (!f)
    shape_die("tmpfile");
  for (size_t at = 0; at < s->bytes; at += sizeof(chunk))
    if (fwrite(chunk, sizeof(chunk), 1, f) != 1)
      shape_die("tmpfile");
  /* Pages under writeback may move, which looks shared while it lasts. */
  if (fflush(f) != 0 || fsync(fileno(f)) < 0)
    shape_die("tmpfile");
  shape_fork_children(s, shape_map(s->bytes, MAP_PRIVATE, fileno(f)), read_all);
  shape_stand(s);
}

/* Aligned, so that it takes as many huge pages as it can. */
static void run_huge(struct shape *s) {
  char *p = shape_map(s->bytes + HUGE_PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  size_t misfit = (size_t)p % HUGE_PAGE;

  p += misfit ? HUGE_PAGE - misfit : 0;
  if (madvise(p, s->bytes, MADV_HUGEPAGE) < 0)
    fprintf(stderr, "shape: MADV_HUGEPAGE: %s\n", strerror(errno));
  shape_write(p, s->bytes);
  shape_stand(s);
}

/* Returns the text after a key in our status, which is that of the main thread.
 */
static const char *read_status(const char *key) {
  static char line[256];
  size_t len = strlen(key);
  FILE *f = fopen("/proc/self/status", "r");

  if (!f)
    shape_die("/proc/self/status");
  while (fgets(line, sizeof(line), f) && strncmp(line, key, len) != 0)
    ;
  fclose(f);
  return line + len + strspn(line + len, "\t ");
}

static void touch_nothing(const struct shape *s, char *memory) {
  (void)s;
  (void)memory;
}

/* Written and paged out; then forked, so that the children share what is in
 * swap. The kernel may leave some in memory, so it is asked a few times. */
static void run_swap(struct shape *s) {
  char *memory = shape_new_private(s->bytes);

  for (int i = 0;
       i < 20 && strtoul(read_status("VmSwap:"), NULL, 10) * KIB < s->bytes;
       i++)
    if (madvise(memory, s->bytes, MADV_PAGEOUT) < 0)
      break;
  shape_fork_children(s, memory, touch_nothing);
  shape_stand(s);
}

static void *hold_thread(void *arg) {
  (void)arg;
  shape_hold();
}

static void start_thread(void *(*body)(void *), void *arg) {
  pthread_t thread;

  errno = pthread_create(&thread, NULL, body, arg);
  if (errno != 0)
    shape_die("pthread_create");
}

static void run_threads(struct shape *s) {
  shape_new_private(s->bytes);
  for (unsigned i = 1; i < s->threads; i++)
    start_thread(hold_thread, NULL);
  shape_stand(s);
}

/* The children have exited and are not waited for. */
static void run_zombie(struct shape *s) {
  siginfo_t info;

  shape_new_private(s->bytes);
  for (unsigned i = 0; i < s->children; i++) {
    pid_t pid = shape_fork(s);

    if (pid == 0) {
      shape_report(s, EVENT_READY, 0);
      _exit(0);
    }
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0)
      shape_die("waitid");
  }
  shape_stand(s);
}

static void *outlive_main(void *arg) {
  /* The signal at the parent's end is a thread's own. */
  shape_die_with_parent(getppid());
  while (*read_status("State:") != 'Z')
    shape_sleep_ms(1);
  shape_stand(arg);
}

/* The main thread is gone; the memory is kept by the other one. */
static void run_zombie_leader(struct shape *s) {
  shape_new_private(s->bytes);
  start_thread(outlive_main, s);
  pthread_exit(NULL);
}

static int hold_in_same_mm(void *arg) {
  const struct shape *s = arg;

  shape_begin_child(s, getppid());
  shape_report(s, EVENT_READY, 0);
  shape_hold();
}

static void clone_in_same_mm(struct shape *s, int flags) {
  char *stack = shape_map(CLONE_STACK, MAP_PRIVATE | MAP_ANONYMOUS, -1);

  if (clone(hold_in_same_mm, stack + CLONE_STACK, CLONE_VM | flags | SIGCHLD,
            s) < 0)
    shape_die("clone");
}

/* As vfork(2) does it: the root sleeps until the child execs or exits. */
static void run_vfork(struct shape *s) {
  shape_new_private(s->bytes);
  shape_report(s, EVENT_EXPECT, 2);
  shape_report(s, EVENT_READY, 0);
  clone_in_same_mm(s, CLONE_VFORK);
  shape_hold();
}

static void run_clonevm(struct shape *s) {
  shape_new_private(s->bytes);
  for (unsigned i = 0; i < s->children; i++)
    clone_in_same_mm(s, 0);
  shape_stand(s);
}

/* The child does what a shell's child does, but waits before its exec. */
static void exec_at_command(const struct shape *s) {
  struct shape after = *s;
  char line[64];

  shape_report(s, EVENT_READY, 0);
  if (!shape_read_line(s->command_fd, line, sizeof(line)))
    shape_hold();
  shape_report(s, EVENT_DONE, 0);
  after.bytes = 0;
  shape_exec(&after, s->child_name);
}

static void run_forkexec(struct shape *s) {
  struct shape before = *s;

  before.child_name[0] = '\0';
  shape_new_private(s->bytes);
  if (shape_fork(&before) == 0)
    exec_at_command(s);
  shape_report(s, EVENT_EXPECT, 2);
  shape_report(s, EVENT_READY, 0);
  shape_hold();
}

/* The process calls exec with its own program, to set its argv. */
static void run_named(struct shape *s) { shape_exec(s, s->name); }

/* Half of them as forked, half through an exec. */
__attribute__((noreturn)) static void live_shortly(const struct shape *s,
                                                   unsigned long number) {
  struct shape brief = *s;

  brief.report_fd = -1;
  brief.bytes = CHURN_BYTES;
  if (number % 2 == 0)
    shape_exec(&brief, s->name);
  shape_new_private(brief.bytes);
  shape_sleep_ms(brief.life_ms);
  _exit(0);
}

static void add_nanoseconds(struct timespec *t, long ns) {
  t->tv_nsec += ns;
  t->tv_sec += t->tv_nsec / 1000000000L;
  t->tv_nsec %= 1000000000L;
}

/* Starts R processes a second for S seconds. The schedule is absolute, so what
 * a busy machine delays is made up for. */
static void run_churn(struct shape *s) {
  unsigned long total = (unsigned long)s->rate * s->seconds;
  unsigned live = 0;
  struct timespec due;

  if (s->life_ms == 0)
    s->life_ms = CHURN_LIFE_MS;
  shape_report(s, EVENT_EXPECT, 1);
  shape_report(s, EVENT_READY, 0);
  clock_gettime(CLOCK_MONOTONIC, &due);
  for (unsigned long i = 0; i < total; i++) {
    if (shape_fork(s) == 0)
      live_shortly(s, i);
    live++;
    atomic_fetch_add(s->started, 1);
    while (live > 0 && waitpid(-1, NULL, live < MAX_LIVE ? WNOHANG : 0) > 0)
      live--;
    add_nanoseconds(&due, 1000000000L / s->rate);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
  }
  while (wait(NULL) > 0)
    ;
  shape_hold();
}

/* Ends with an entry without a name. */
static const struct kind shape_kinds[] = {
    {"anon", run_anon, "grow", 0},
    {"shm", run_shm, "grow", 3},
    {"twice", run_twice, "grow", 0},
    {"cow", run_cow, "grow", 3},
    {"file", run_file, "grow", 3},
    {"huge", run_huge, "grow", 0},
    {"swap", run_swap, "grow", 0},
    {"threads", run_threads, "grow", 0},
    {"zombie", run_zombie, "grow", 1},
    {"zombie-leader", run_zombie_leader, "grow", 0},
    {"vfork", run_vfork, NULL, 1},
    {"clonevm", run_clonevm, "grow", 2},
    {"forkexec", run_forkexec, "go", 1},
    {"named", run_named, "grow", 0},
    {"churn", run_churn, NULL, 0},
    {NULL, NULL, NULL, 0},
};

/* ---- options ---- */

static const char usage_text[] =
    "usage: shape KIND [--option=VALUE ...]\n"
    "  --name=TEXT        comm of every process (default: shaped)\n"
    "  --name-hex=BYTES   the same as hexadecimal bytes, may be empty\n"
    "  --child-name=TEXT  comm of the children (forkexec: after the exec)\n"
    "  --mib=N            memory (default 1)\n"
    "  --children=K       how many are forked; the root is one more\n"
    "  --rewrite-mib=M    cow: what each child rewrites\n"
    "  --threads=T        threads: with the main one (default 4)\n"
    "  --argv-hex=BYTES   named: the arguments, with a 00 between each two\n"
    "  --rate=R           churn: starts per second (default 60)\n"
    "  --seconds=S        churn: for so long (default 60)\n"
    "  --life-ms=N        churn: how long each lives (default 100)\n"
    "kinds:";

__attribute__((noreturn)) static void usage(void) {
  fputs(usage_text, stderr);
  for (const struct kind *k = shape_kinds; k->name; k++)
    fprintf(stderr, " %s", k->name);
  fputs("\n", stderr);
  exit(2);
}

static const struct kind *find_kind(const char *name) {
  for (const struct kind *k = shape_kinds; k->name; k++)
    if (strcmp(k->name, name) == 0)
      return k;
  usage();
}

static unsigned number(const char *text) {
  char *end;
  unsigned long n = strtoul(text, &end, 10);

  if (end == text || *end != '\0' || n > MAX_NUMBER)
    usage();
  return (unsigned)n;
}

static void copy_name(char *ret, const char *text) {
  if (strlen(text) >= COMM_SIZE)
    usage();
  strcpy(ret, text);
}

/* What the value of an option is. */
enum form { TEXT, NAME, NAME_IN_HEX, NUMBER, MIBS };

static const struct option {
  const char *name;
  enum form form;
  size_t at; /* in struct shape */
} options[] = {
    {"name", NAME, offsetof(struct shape, name)},
    {"name-hex", NAME_IN_HEX, offsetof(struct shape, name)},
    {"child-name", NAME, offsetof(struct shape, child_name)},
    {"mib", MIBS, offsetof(struct shape, bytes)},
    {"children", NUMBER, offsetof(struct shape, children)},
    {"rewrite-mib", MIBS, offsetof(struct shape, rewrite_bytes)},
    {"threads", NUMBER, offsetof(struct shape, threads)},
    {"argv-hex", TEXT, offsetof(struct shape, argv_hex)},
    {"rate", NUMBER, offsetof(struct shape, rate)},
    {"seconds", NUMBER, offsetof(struct shape, seconds)},
    {"life-ms", NUMBER, offsetof(struct shape, life_ms)},
};

static void set(void *at, enum form form, const char *value) {
  size_t len;

  switch (form) {
  case TEXT:
    *(const char **)at = value;
    break;
  case NAME:
    copy_name(at, value);
    break;
  case NAME_IN_HEX:
    if (shape_decode_hex(value, at, COMM_SIZE, &len) < 0)
      usage();
    break;
  case NUMBER:
    *(unsigned *)at = number(value);
    break;
  case MIBS:
    *(size_t *)at = number(value) * MIB;
  }
}

/* "--name=value" */
static void set_option(struct shape *s, const char *arg) {
  for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
    size_t len = strlen(options[i].name);

    if (strncmp(arg, "--", 2) != 0 ||
        strncmp(arg + 2, options[i].name, len) != 0 || arg[2 + len] != '=')
      continue;
    set((char *)s + options[i].at, options[i].form, arg + 2 + len + 1);
    return;
  }
  usage();
}

static void parse_options(struct shape *s, int argc, char **argv) {
  if (argc < 2)
    usage();
  s->kind = find_kind(argv[1]);
  s->children = s->kind->children;
  for (int i = 2; i < argc; i++)
    set_option(s, argv[i]);
  if (s->rewrite_bytes > s->bytes || s->rate == 0)
    usage();
}

/* ---- the root process ---- */

/* The signal mask, and the death with the parent, are the supervisor's. */
__attribute__((noreturn)) static void run_root(struct shape *s, pid_t parent) {
  sigset_t none;

  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  shape_die_with_parent(parent);
  prctl(PR_SET_NAME, s->name, 0, 0, 0);
  s->kind->run(s);
  _exit(0);
}

/* ---- the supervisor ---- */

struct supervisor {
  const struct shape *shape;
  pid_t root;
  int reports;  /* records from the processes */
  int commands; /* lines to them */
  sigset_t while_waiting;
};

static volatile sig_atomic_t is_stopped;

static void stop(int number) {
  (void)number;
  is_stopped = 1;
}

/* The signals that end us are blocked, except while we wait. */
static void block_signals(sigset_t *ret_while_waiting) {
  static const int ending[] = {SIGTERM, SIGINT, SIGHUP};
  struct sigaction action = {.sa_handler = stop};
  sigset_t blocked;

  sigemptyset(&blocked);
  for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++) {
    sigaddset(&blocked, ending[i]);
    sigaction(ending[i], &action, NULL);
  }
  signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &blocked, ret_while_waiting);
}

/* False where we have been told to end. */
static bool wait_readable(const struct supervisor *v, int fd) {
  struct pollfd p = {.fd = fd, .events = POLLIN};

  while (!is_stopped)
    if (ppoll(&p, 1, NULL, &v->while_waiting) > 0)
      return true;
  return false;
}

static void start_root(struct supervisor *v, struct shape *s) {
  pid_t parent = getpid();
  int reports[2];
  int commands[2];

  if (pipe(reports) < 0 || pipe(commands) < 0)
    shape_die("pipe");
  v->shape = s;
  v->root = fork();
  if (v->root < 0)
    shape_die("fork");
  if (v->root == 0) {
    close(reports[0]);
    close(commands[1]);
    close(STDIN_FILENO);
    s->report_fd = reports[1];
    s->command_fd = commands[0];
    run_root(s, parent);
  }
  /* Our ends are closed, so the end of the last process is an end of file. */
  close(reports[1]);
  close(commands[0]);
  v->reports = reports[0];
  v->commands = commands[1];
}

static bool next_record(const struct supervisor *v, struct record *r) {
  return wait_readable(v, v->reports) &&
         read(v->reports, r, sizeof(*r)) == sizeof(*r);
}

static bool await_event(const struct supervisor *v, enum event event) {
  struct record r;

  while (next_record(v, &r))
    if (r.event == event)
      return true;
  return false;
}

/* Waits until everything stands and says so; false where the root has died. */
static bool announce(const struct supervisor *v) {
  static pid_t pids[MAX_PIDS];
  unsigned long expected = MAX_PIDS;
  unsigned long n = 0;
  struct record r;

  while (n < expected) {
    if (!next_record(v, &r))
      return false;
    if (r.event == EVENT_EXPECT && r.value < MAX_PIDS)
      expected = r.value;
    else if (r.event == EVENT_READY)
      pids[n++] = r.pid;
  }
  printf("READY %d", (int)v->root);
  for (unsigned long i = 0; i < n; i++)
    if (pids[i] != v->root)
      printf(" %d", (int)pids[i]);
  puts("");
  fflush(stdout);
  return true;
}

static bool pass_on(const struct supervisor *v, const char *line) {
  dprintf(v->commands, "%s\n", line);
  if (!await_event(v, EVENT_DONE))
    return false;
  /* An exec is done when what was exec'ed says so. */
  return strcmp(line, "go") != 0 || await_event(v, EVENT_READY);
}

/* False at "exit", and where nobody is left to take the command. */
static bool execute(const struct supervisor *v, const char *line) {
  const char *taken = v->shape->kind->command;
  bool is_alive = strcmp(line, "exit") != 0;

  if (!is_alive)
    return false;
  if (strcmp(line, "count") == 0 && v->shape->started) {
    printf("COUNT %lu\n", atomic_load(v->shape->started));
  } else if (taken && strncmp(line, taken, strlen(taken)) == 0) {
    is_alive = pass_on(v, line);
    puts(is_alive ? "OK" : "ERROR the shape has ended");
  } else {
    printf("ERROR %s does not take this\n", v->shape->kind->name);
  }
  fflush(stdout);
  return is_alive;
}

static void serve(const struct supervisor *v) {
  char line[64];

  while (wait_readable(v, STDIN_FILENO))
    if (!shape_read_line(STDIN_FILENO, line, sizeof(line)) || !execute(v, line))
      return;
}

/* Orphans come to us, as we asked with PR_SET_CHILD_SUBREAPER,
 * and has got its SIGKILL: nothing is left behind, not even a zombie. */
static void end_everything(const struct supervisor *v) {
  kill(v->root, SIGKILL);
  while (wait(NULL) > 0 || errno == EINTR)
    ;
}

int main(int argc, char **argv) {
  static struct shape s = {
      .name = "shaped",
      .argv_hex = "73686170652d68656c64", /* shape-held */
      .bytes = MIB,
      .threads = 4,
      .rate = 60,
      .seconds = 60,
      .report_fd = -1,
      .command_fd = -1,
  };
  const char *held = getenv(SHAPE_HELD);
  struct supervisor v;
  bool is_up;

  /* First of all: such a process may have no argv, not even argv[0]. */
  if (held)
    shape_run_held(held);
  parse_options(&s, argc, argv);
  s.started = mmap(NULL, sizeof(*s.started), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s.started == MAP_FAILED)
    shape_die("mmap");
  block_signals(&v.while_waiting);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  start_root(&v, &s);
  is_up = announce(&v);
  if (is_up)
    serve(&v);
  end_everything(&v);
  return is_up ? 0 : 1;
}
