/* SPDX-License-Identifier: MIT */
/* PID files may hang or be unreadable; their groups have values meanwhile. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/reader.h"

#include "few_threads.h"
#include "world.h"

#define TIMEOUT_NS (50 * NS_PER_MS)

/* --- files that hang -------------------------------------------------------
 */

/* "0.pid" to "3.pid": whether whoever opens it waits to be woken, or fails, and
 * how often it was looked for. */
#define FILES 4
static struct {
  _Atomic bool hangs;
  _Atomic int error;
  _Atomic unsigned opened;
  unsigned woken; /* how often */
} files[FILES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* A waiting reader is woken by the next wake(), whatever hangs after that. */
static void hang(size_t i) {
  unsigned woken;

  pthread_mutex_lock(&mutex);
  woken = files[i].woken;
  while (files[i].hangs && files[i].woken == woken)
    pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void wake(size_t i) {
  pthread_mutex_lock(&mutex);
  files[i].hangs = false;
  files[i].woken++;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
  const char *slash = strrchr(path, '/');
  size_t i = slash ? (size_t)(slash[1] - '0') : FILES;

  va_list args;
  int mode;

  va_start(args, flags);
  mode = flags & O_CREAT ? va_arg(args, int) : 0;
  va_end(args);
  /* When it is written it is opened otherwise. */
  if (i < FILES && strcmp(slash + 2, ".pid") == 0 && (flags & O_PATH)) {
    files[i].opened++;
    hang(i);
    if (files[i].error) {
      errno = files[i].error;
      return -1;
    }
  }
  return __real_open(path, flags, mode);
}

static int make(void **state) {
  struct world *w;

  threads_fail = 0;
  for (size_t i = 0; i < FILES; i++) {
    files[i].hangs = false;
    files[i].error = 0;
    files[i].opened = 0;
  }
  world_setup(state);
  w = *state;
  w->settings.read_timeout_ns = TIMEOUT_NS;
  return 0;
}

static int unmake(void **state) {
  for (size_t i = 0; i < FILES; i++)
    wake(i);
  return world_teardown(state);
}

#define WORLD_TEST(name) TEST_WITH(name, make, unmake, struct world *w)

/* Returns a process of 140 kB. */
static struct fake process(uint32_t pid) {
  return (struct fake){.pid = pid,
                       .ppid = 1,
                       .comm = "server",
                       .starttime = 100 + pid,
                       .private_kb = 100,
                       .shared_kb = 40};
}

static void put(struct world *w, uint32_t pid) {
  struct fake f = process(pid);

  proctree_put(&w->tree, &f);
}

static const char *path_of(const struct world *w, size_t i) {
  static char path[128];

  snprintf(path, sizeof(path), "%s/run/%zu.pid", w->tree.root, i);
  return path;
}

static void write_pid(struct world *w, size_t i, uint32_t pid) {
  char path[32];

  snprintf(path, sizeof(path), "run/%zu.pid", i);
  proctree_print(&w->tree, 0, path, "%u\n", pid);
}

static void group(struct world *w, const char *name, size_t file) {
  world_group(w, name, "PidFile", path_of(w, file), NULL, NULL);
}

/* How many are in a group; NaN where that is not known. */
static double members(const struct world *w, const char *name) {
  return world_value(w, name, "ps_count");
}

static const struct diag *pid_file_diag(const struct world *w) {
  return world_diag(w, DIAG_PID_FILE);
}

/* Runs cycles, as long as it takes the reader to come back. */
static void cycle_until_it_has(struct world *w, const char *name, double n) {
  do {
    sched_yield();
    world_run(w, 1);
  } while (members(w, name) != n);
}

/* --- what it names meanwhile -----------------------------------------------
 */

WORLD_TEST(hung_file_keeps_its_process) {
  put(w, 10);
  put(w, 11);
  write_pid(w, 0, 10);
  group(w, "g", 0);
  world_other(w, "rest");
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1");
  files[0].hangs = true;
  write_pid(w, 0, 11);
  for (unsigned i = 0; i < 5; i++) {
    world_run(w, i * 1000);
    assert_int_equal(pid_file_diag(w)->count, i == 0 || i >= 3);
    if (i == 0)
      assert_string_equal(pid_file_diag(w)->file, path_of(w, 0));
    world_assert(w, "g", "ps_count=1 pss=122880");
    world_assert(w, "rest", "ps_count=1 coverage=100");
    assert_int_equal(files[0].opened, 2); /* once each */
  }
  proctree_end(&w->tree, 10);
  wake(0);
  cycle_until_it_has(w, "g", 1);
  assert_int_equal(world_members(w, "rest"), 0);
}

/* The pid was not written for that one. */
WORLD_TEST(later_process_with_the_pid_is_not_taken) {
  struct fake later = process(10);

  put(w, 1);
  put(w, 10);
  write_pid(w, 0, 10);
  group(w, "g", 0);
  world_other(w, "rest");
  world_run(w, 1);
  files[0].hangs = true;
  later.starttime++;
  proctree_put(&w->tree, &later);
  world_run(w, 1);
  world_assert(w, "g", "ps_count=nan pss=nan");
  assert_int_equal(world_members(w, "rest"), 2);
  wake(0);
  cycle_until_it_has(w, "g", 0);
  assert_int_equal(world_members(w, "rest"), 2);
  write_pid(w, 0, 10);
  cycle_until_it_has(w, "g", 1);
}

/* --- whom it is not believed to name ----------------------------------------
 */

/* The host began an hour ago. */
#define BOOT_S UINT64_C(1700000000)

static void put_boot(const struct world *w) {
  proctree_print(&w->tree, 0, "stat", "cpu  1 2 3\nbtime %" PRIu64 "\n",
                 BOOT_S);
}

/* Sets when the file was last changed, in hundredths of a second after the
 * start of the host. */
static void set_changed(const struct world *w, size_t i, uint64_t ticks) {
  const struct timespec at = {.tv_sec = (time_t)(BOOT_S + ticks / 100),
                              .tv_nsec = (long)(ticks % 100) * 10000000};
  const struct timespec times[] = {at, at};

  assert_int_equal(utimensat(AT_FDCWD, path_of(w, i), times, 0), 0);
}

static void put_begun(struct world *w, uint32_t pid, uint64_t ticks) {
  struct fake f = process(pid);

  f.starttime = ticks;
  proctree_put(&w->tree, &f);
}

/* Has it run as a user, with a number in a namespace of its own if not 0. */
static void put_status(const struct world *w, uint32_t pid, unsigned uid,
                       uint32_t inner) {
  char more[16] = "";

  if (inner)
    snprintf(more, sizeof(more), "\t%u", inner);
  proctree_print(
      &w->tree, pid, "status",
      "Uid:\t%u\t%u\t%u\t%u\nGid:\t7\t7\t7\t7\nNSpid:\t%u%s\nThreads:\t1\n",
      uid, uid, uid, uid, pid, more);
}

/* That the file selects no process, for that reason, which is noted. */
static void assert_doubted(struct world *w, uint32_t pid,
                           enum pid_doubt doubt) {
  const struct diag *d = world_diag(w, DIAG_PID_DOUBT);

  world_assert(w, "g", "ps_count=0 pss=0");
  assert_int_equal(d->count, 1);
  assert_int_equal(d->pid, pid);
  assert_int_equal(d->error, doubt);
  assert_string_equal(d->file, path_of(w, 0));
  world_run(w, 10);
  world_assert(w, "g", "ps_count=0 pss=0");
  assert_int_equal(d->count, 0);
}

WORLD_TEST(process_that_began_after_the_file_is_not_meant) {
  put_boot(w);
  put_begun(w, 10, 360000);
  write_pid(w, 0, 10);
  set_changed(w, 0, 359000);
  group(w, "g", 0);
  world_run(w, 1);
  assert_doubted(w, 10, PID_IS_LATER);
  set_changed(w, 0, 360000);
  world_run(w, 10);
  world_assert(w, "g", "ps_count=1 pss=122880");
}

/* The clock of files is behind by a tick, and others are set by seconds. */
WORLD_TEST(process_that_began_seconds_after_the_file_is_meant) {
  put_boot(w);
  put_begun(w, 10, 360000);
  write_pid(w, 0, 10);
  set_changed(w, 0, 359600);
  group(w, "g", 0);
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1");
}

/* Without the start of the host nobody knows which was first. */
WORLD_TEST(file_of_a_tree_without_times_is_believed) {
  put_begun(w, 10, 360000);
  write_pid(w, 0, 10);
  set_changed(w, 0, 0);
  group(w, "g", 0);
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1");
}

/* The pid is soon another's, and the clock may be set meanwhile. */
WORLD_TEST(file_names_no_later_process_after_its_own) {
  put_boot(w);
  put_begun(w, 10, 1000);
  write_pid(w, 0, 10);
  set_changed(w, 0, 1001);
  group(w, "g", 0);
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1");
  put_begun(w, 10, 1010);
  world_run(w, 1);
  assert_doubted(w, 10, PID_IS_LATER);
  write_pid(w, 0, 10);
  set_changed(w, 0, 1011);
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1");
  proctree_print(&w->tree, 0, "stat", "btime %" PRIu64 "\n", BOOT_S + 3600);
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1");
}

/* A file in memory is not older than the host: the clock was set since. */
WORLD_TEST(file_from_before_the_clock_was_set_is_believed) {
  char file[] = "/dev/shm/smaps-XXXXXX";
  const struct timespec times[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  int fd = mkstemp(file);

  put_boot(w);
  put_begun(w, 10, 1000);
  if (fd < 0)
    return;
  assert_int_equal(dprintf(fd, "10\n"), 3);
  assert_int_equal(futimens(fd, times), 0);
  world_group(w, "g", "PidFile", file, NULL, NULL);
  world_run(w, 1);
  remove(file);
  close(fd);
  world_assert(w, "g", "ps_count=1");
}

WORLD_TEST(first_process_is_never_meant) {
  put(w, 1);
  put(w, 11);
  write_pid(w, 0, 1);
  world_group(w, "g", "PidFile", path_of(w, 0), NULL, NULL)->takes_children =
      true;
  world_other(w, "rest");
  world_run(w, 1);
  assert_int_equal(world_members(w, "rest"), 2);
  assert_doubted(w, 1, PID_IS_KERNEL);
}

WORLD_TEST(kernel_thread_is_never_meant) {
  struct fake f = {.pid = 2, .comm = "kthreadd", .flags = 0x00200000};

  put(w, 10);
  proctree_put(&w->tree, &f);
  write_pid(w, 0, 2);
  group(w, "g", 0);
  world_run(w, 1);
  assert_doubted(w, 2, PID_IS_KERNEL);
}

/* The user's own process 12 is meant, but not the process 10 of root. */
WORLD_TEST(file_of_a_user_names_only_his_processes) {
  if (geteuid() != 0)
    return;
  put(w, 10);
  put(w, 12);
  put_status(w, 10, 0, 0);
  put_status(w, 12, 4242, 0);
  write_pid(w, 0, 10);
  assert_int_equal(chown(path_of(w, 0), 4242, 0), 0);
  group(w, "g", 0);
  world_run(w, 1);
  assert_doubted(w, 10, PID_IS_FORGED);
  write_pid(w, 0, 12);
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1");
  assert_int_equal(chmod(path_of(w, 0), 0666), 0);
  world_run(w, 3600);
  assert_doubted(w, 12, PID_IS_FORGED);
}

/* Whoever is in the group can write it: the group of the process may. */
WORLD_TEST(file_of_a_group_selects_only_its_processes) {
  if (geteuid() != 0)
    return;
  put(w, 10);
  put_status(w, 10, 0, 0);
  write_pid(w, 0, 10);
  assert_int_equal(chown(path_of(w, 0), 0, 7), 0);
  assert_int_equal(chmod(path_of(w, 0), 0664), 0);
  group(w, "g", 0);
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1");
  assert_int_equal(chown(path_of(w, 0), 0, 8), 0);
  world_run(w, 1);
  assert_doubted(w, 10, PID_IS_FORGED);
}

/* --- numbers of other namespaces ---------------------------------------------
 */

/* A container has written its process 7: 20 and 30 have that number there, but
 * 30 was there long before. */
WORLD_TEST(number_of_a_container_names_the_process_in_it) {
  put_boot(w);
  put(w, 1);
  put_begun(w, 20, 360000);
  put_begun(w, 30, 358900);
  put_status(w, 20, 0, 7);
  put_status(w, 30, 0, 7);
  write_pid(w, 0, 7);
  set_changed(w, 0, 360010);
  group(w, "g", 0);
  world_other(w, "rest");
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1 pss=122880");
  assert_int_equal(world_members(w, "rest"), 2);
  proctree_end(&w->tree, 20);
  world_run(w, 1);
  world_assert(w, "g", "ps_count=0");
}

/* A process 1 of the host, which a container's file would name otherwise. */
WORLD_TEST(process_1_of_a_container_is_not_that_of_the_host) {
  put_boot(w);
  put_begun(w, 1, 1);
  put_begun(w, 20, 360000);
  put_status(w, 20, 0, 1);
  write_pid(w, 0, 1);
  set_changed(w, 0, 360010);
  group(w, "g", 0);
  world_other(w, "rest");
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1");
  assert_int_equal(world_members(w, "rest"), 1);
  assert_int_equal(world_diag(w, DIAG_PID_DOUBT)->count, 0);
}

/* Which of two containers wrote it? */
WORLD_TEST(number_of_two_containers_names_none) {
  put_boot(w);
  put_begun(w, 1, 1);
  put_begun(w, 20, 360000);
  put_begun(w, 30, 360001);
  put_status(w, 20, 0, 1);
  put_status(w, 30, 0, 1);
  write_pid(w, 0, 1);
  set_changed(w, 0, 360010);
  group(w, "g", 0);
  world_run(w, 1);
  assert_doubted(w, 1, PID_IS_KERNEL);
}

/* Nobody may have the pid by the next interval, or another. */
WORLD_TEST(file_that_cannot_be_read_is_not_known) {
  static const int errors[] = {EACCES, EPERM, EMFILE, EIO, ESTALE};

  put(w, 10);
  put(w, 11);
  write_pid(w, 0, 10);
  write_pid(w, 1, 11);
  group(w, "stands", 0);
  world_run(w, 1);
  for (size_t i = 0; i < LENGTH(errors); i++) {
    files[0].error = errors[i];
    world_run(w, 3600);
    world_assert(w, "stands", "ps_count=1");
    assert_int_equal(pid_file_diag(w)->count, 1);
    assert_int_equal(pid_file_diag(w)->error, errors[i]);
  }
  proctree_end(&w->tree, 10);
  world_run(w, 1);
  world_assert(w, "stands", "ps_count=nan");
  assert_int_equal(pid_file_diag(w)->count, 0);
  files[0].error = 0;
  world_run(w, 3600);
  world_assert(w, "stands", "ps_count=0");
}

/* The file keeps its process also if there is no thread to read it. */
WORLD_TEST(file_keeps_its_process_if_no_thread_can_read_it) {
  put(w, 10);
  write_pid(w, 0, 10);
  group(w, "g", 0);
  group(w, "h", 1);
  world_run(w, 1);
  files[1].hangs = true;
  world_run(w, 1);
  threads_fail = EAGAIN;
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1");
  world_assert(w, "h", "ps_count=nan");
  threads_fail = 0;
  world_run(w, 3600);
  world_assert(w, "g", "ps_count=1");
}

/* The rules may come in any order. */
WORLD_TEST(file_may_be_of_several_rules) {
  unsigned opened;

  put(w, 10);
  write_pid(w, 0, 10);
  world_group(w, "none", "PidFile", path_of(w, 0), "Comm", "nobody");
  group(w, "g", 0);
  world_group(w, NULL, "PidFile", path_of(w, 0), NULL, NULL);
  world_run(w, 1);
  world_assert(w, "g", "ps_count=1");
  world_assert(w, "none", "ps_count=0");
  opened = files[0].opened;
  files[0].hangs = true;
  world_run(w, 1);
  assert_int_equal(files[0].opened, opened + 1); /* only one thread hangs */
  assert_int_equal(pid_file_diag(w)->count, 1);
  world_assert(w, "g", "ps_count=1");
  world_assert(w, "none", "ps_count=nan");
}

/* --- what it costs ---------------------------------------------------------
 */

/* It has us wait each time. */
WORLD_TEST(file_that_is_too_slow_is_tried_ever_more_rarely) {
  put(w, 10);
  group(w, "g", 0);
  for (unsigned i = 0; i < 4; i++) {
    unsigned before = files[0].opened;

    files[0].hangs = true;
    do { /* the thread may not be back yet */
      sched_yield();
      world_run(w, 1 << i);
    } while (files[0].opened == before);
    wake(0);
    for (unsigned j = 0; j < 20; j++) {
      sched_yield();
      world_run(w, 0);
      assert_int_equal(files[0].opened, before + 1);
    }
  }
  cycle_until_it_has(w, "g", 0);
}

/* The other readers are for processes; and a file that was not tried names whom
 * it named. */
WORLD_TEST(no_more_than_two_readers_hang_in_files) {
  static const char *const names[FILES] = {"a", "b", "c", "d"};
  unsigned opened = 0;

  for (size_t i = 0; i < FILES; i++) {
    put(w, 10 + (uint32_t)i);
    write_pid(w, i, 10 + (uint32_t)i);
    group(w, names[i], i);
  }
  world_other(w, "rest");
  world_run(w, 1);
  for (size_t i = 0; i < FILES; i++)
    files[i].hangs = true;
  for (int i = 0; i < 3; i++) {
    put(w, 20 + (uint32_t)i);
    world_run(w, 1);
    assert_int_equal(world_members(w, "rest"), i + 1);
    world_assert(w, "rest", "coverage=100");
    for (size_t j = 0; j < FILES; j++)
      assert_true(members(w, names[j]) == 1);
    assert_int_equal(world_diag(w, DIAG_READERS_HUNG)->count, 0);
  }
  for (size_t i = 0; i < FILES; i++)
    opened += files[i].opened;
  assert_int_equal(opened, FILES + PATHS_HUNG_MAX);
  for (size_t i = 0; i < FILES; i++)
    wake(i);
  write_pid(w, 3, 20);
  proctree_end(&w->tree, 13);
  cycle_until_it_has(w, "d", 1);
}
