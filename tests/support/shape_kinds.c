/* The kinds of "shape", one run_*() for each, in the table at the end. */
#include "shape.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HUGE_PAGE (2 * MIB)
#define CLONE_STACK (64 * KIB)
#define MAX_LIVE 64 /* short-lived processes at one time */
#define CHURN_BYTES (256 * KIB)
#define CHURN_LIFE_MS 100

static void own_private(const struct shape *s, char *memory) {
  (void)memory;
  shape_new_private(s->bytes);
}

/* Private memory, as much in each child as in the root. */
static void run_anon(struct shape *s) {
  shape_fork_children(s, NULL, own_private);
  shape_new_private(s->bytes);
  shape_stand(s);
}

static void write_all(const struct shape *s, char *memory) {
  shape_write(memory, s->bytes);
}

/* One shared mapping, touched by the children and not by the root. */
static void run_shm(struct shape *s) {
  char *memory = shape_map_small(s->bytes, MAP_SHARED);

  shape_fork_children(s, memory, write_all);
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

static unsigned long read_vm_swap_kib(void) {
  char line[256];
  unsigned long kib = 0;
  FILE *f = fopen("/proc/self/status", "r");

  while (f && fgets(line, sizeof(line), f))
    if (strncmp(line, "VmSwap:", 7) == 0)
      kib = strtoul(line + 7, NULL, 10);
  if (f)
    fclose(f);
  return kib;
}

static void touch_nothing(const struct shape *s, char *memory) {
  (void)s;
  (void)memory;
}

/* Written and paged out; then forked, so that the children share what is in
 * swap. The kernel may leave some in memory, so it is asked a few times, and
 * the supervisor is told how much really went. */
static void run_swap(struct shape *s) {
  char *memory = shape_new_private(s->bytes);

  for (int i = 0; i < 20 && read_vm_swap_kib() * KIB < s->bytes; i++)
    if (madvise(memory, s->bytes, MADV_PAGEOUT) < 0)
      break;
  shape_report(s, EVENT_SWAPPED, read_vm_swap_kib());
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

static bool has_main_thread_exited(void) {
  char text[512];
  FILE *f = fopen("/proc/self/stat", "r");
  size_t len = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
  const char *end;

  if (f)
    fclose(f);
  text[len] = '\0';
  end = strrchr(text, ')');
  return end && strncmp(end, ") Z", 3) == 0;
}

static void *outlive_main(void *arg) {
  /* The signal at the parent's end is a thread's own. */
  shape_die_with_parent(getppid());
  while (!has_main_thread_exited())
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

/* Children that share their memory with each other, and not with the root. */
static void run_siblings(struct shape *s) {
  if (shape_fork(s) == 0) {
    shape_new_private(s->bytes);
    for (unsigned i = 1; i < s->children; i++)
      clone_in_same_mm(s, CLONE_PARENT);
    shape_report(s, EVENT_READY, 0);
    shape_hold();
  }
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
  shape_exec(&after, shape_own_path(), s->child_name);
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

/* Execs itself, for an argv of its own. */
static void run_named(struct shape *s) {
  shape_exec(s, shape_own_path(), s->name);
}

/* Runs from a copy, which the supervisor deletes. */
static void run_deleted(struct shape *s) {
  if (!s->copy) {
    errno = EINVAL;
    shape_die("--copy");
  }
  shape_copy_program(s->copy);
  shape_exec(s, s->copy, s->name);
}

/* Half of them as forked, half through an exec. */
__attribute__((noreturn)) static void live_shortly(const struct shape *s,
                                                   unsigned long number) {
  struct shape brief = *s;

  brief.report_fd = -1;
  brief.bytes = CHURN_BYTES;
  if (number % 2 == 0)
    shape_exec(&brief, shape_own_path(), s->name);
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

const struct kind shape_kinds[] = {
    {"anon", run_anon, "grow", 0},
    {"shm", run_shm, "grow", 3},
    {"cow", run_cow, "grow", 3},
    {"file", run_file, "grow", 3},
    {"huge", run_huge, "grow", 0},
    {"swap", run_swap, "grow", 0},
    {"threads", run_threads, "grow", 0},
    {"zombie", run_zombie, "grow", 1},
    {"zombie-leader", run_zombie_leader, "grow", 0},
    {"vfork", run_vfork, NULL, 1},
    {"clonevm", run_clonevm, "grow", 2},
    {"siblings", run_siblings, NULL, 2},
    {"forkexec", run_forkexec, "go", 1},
    {"named", run_named, "grow", 0},
    {"deleted", run_deleted, "grow", 0},
    {"churn", run_churn, NULL, 0},
    {NULL, NULL, NULL, 0},
};
