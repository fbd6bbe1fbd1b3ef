/* The cycle from a proc tree to sums, and what can happen on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

/* --- system calls that fail, or during which a process ends --------------- */

int __real_openat(int dir_fd, const char *path, int flags, ...);
int __wrap_openat(int dir_fd, const char *path, int flags, ...);

static struct {
  /* Opening a file of this name gives `error`, the first `failures` times. */
  const char *failing;
  int error;
  unsigned failures;
  /* How often a file of this name was asked for. */
  const char *counted;
  unsigned opened;
  /* openat was called so often; before that call something happens. */
  unsigned calls, happens_before;
  void (*happen)(void);
} hook;

static bool is_file(const char *path, const char *name) {
  const char *slash = strrchr(path, '/');

  return name && strcmp(slash ? slash + 1 : path, name) == 0;
}

/* Whether this call is to fail, and what is to happen before it. A reader that
 * hangs has called too. */
static bool note_call(const char *path, void (**happen)(void)) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  bool fails;

  pthread_mutex_lock(&lock);
  hook.calls++;
  if (hook.calls == hook.happens_before) {
    hook.happens_before = 0;
    *happen = hook.happen;
  }
  hook.opened += is_file(path, hook.counted);
  fails = hook.failures && is_file(path, hook.failing);
  hook.failures -= fails;
  pthread_mutex_unlock(&lock);
  return fails;
}

/* Reading any link that is called so is refused; and how often it was. */
static const char *refused_link;
static unsigned links;

ssize_t __real_readlinkat(int dir_fd, const char *path, char *ret, size_t size);
ssize_t __wrap_readlinkat(int dir_fd, const char *path, char *ret, size_t size);
ssize_t __wrap_readlinkat(int dir_fd, const char *path, char *ret,
                          size_t size) {
  if (!is_file(path, refused_link))
    return __real_readlinkat(dir_fd, path, ret, size);
  links++;
  errno = EACCES;
  return -1;
}

int __wrap_openat(int dir_fd, const char *path, int flags, ...) {
  void (*happen)(void) = NULL;
  bool fails = note_call(path, &happen);

  if (happen)
    happen();
  if (fails) {
    errno = hook.error;
    return -1;
  }
  /* Nothing here creates files. */
  return __real_openat(dir_fd, path, flags);
}

/* Opening a file of this name fails from now on. */
static void refuse(const char *name, int error) {
  hook.failing = name;
  hook.error = error;
  hook.failures = UINT_MAX;
}

static int make(void **state) {
  static struct world w;

  memset(&hook, 0, sizeof(hook));
  refused_link = NULL;
  world_make(&w);
  *state = &w;
  return 0;
}

static int unmake(void **state) {
  memset(&hook, 0, sizeof(hook));
  world_remove(*state);
  return 0;
}

/* A process that shares with nobody but for 40 kB of 140. */
static struct fake process(uint32_t pid, const char *comm) {
  return (struct fake){.pid = pid,
                       .ppid = 1,
                       .comm = comm,
                       .starttime = 100 + pid,
                       .start_stack = 0x7ff000000000 + pid * 0x100000UL,
                       .exe = "/usr/bin/thing",
                       .cmdline = "thing --serve",
                       .private_kb = 100,
                       .shared_kb = 40};
}

static void put(struct world *w, struct fake f) { proctree_put(&w->tree, &f); }

static double kb(const struct world *w, const char *group, const char *metric) {
  return world_value(w, group, metric) / 1024;
}

/* --- values ----------------------------------------------------------------
 */

static void sums_are_exact(void **state) {
  struct world *w = *state;
  struct fake a = process(1, "a"), b = process(2, "a");

  b.private_kb = 60;
  b.swap_kb = 12;
  b.threads = 5;
  put(w, a);
  put(w, b);
  world_group(w, "a", "Comm", "a", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_true(kb(w, "a", "pss") == 120 + 80);
  assert_true(kb(w, "a", "uss") == 160);
  assert_true(kb(w, "a", "rss") == 240);
  assert_true(kb(w, "a", "shared") == 80);
  assert_true(kb(w, "a", "swap") == 12);
  assert_true(kb(w, "a", "resident") == 240);
  assert_true(kb(w, "a", "resident_shared") == 80);
  assert_true(world_value(w, "a", "coverage") == 100);
  assert_true(world_value(w, "a", "age") == 0);
  assert_true(world_value(w, "a", "unreadable") == 0);
  assert_true(world_value(w, "a", "pss_error") == 0);
  assert_int_equal(world_find(w, "a")->usage.processes, 2);
  assert_int_equal(world_find(w, "a")->usage.threads, 6);
  assert_int_equal(collector_counts(w->collector)->rollup_reads, 2);
  assert_int_equal(collector_metric_context(w->collector)->mem_total, 1 << 30);
}

static void group_in_the_configuration_reports_zeros_when_empty(void **state) {
  struct world *w = *state;

  put(w, process(1, "a"));
  put(w, process(2, "other"));
  world_group(w, "fixed", "Comm", "a", NULL, NULL);
  world_group(w, "made-%{comm}", "Comm", "o*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_groups(w), 2);
  proctree_end(&w->tree, 1);
  proctree_end(&w->tree, 2);
  put(w, process(3, "x"));
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_groups(w), 1);
  assert_true(world_value(w, "fixed", "pss") == 0);
  assert_true(world_value(w, "fixed", "ps_count") == 0);
  assert_true(world_value(w, "fixed", "coverage") == 100);
}

/* --- the life of processes -------------------------------------------------
 */

/* Whether the group is exactly that of `n` processes, in all of its values. */
static bool is_whole(const struct world *w, unsigned n) {
  return world_value(w, "g", "ps_count") == n && kb(w, "g", "rss") == 140 * n &&
         kb(w, "g", "resident") == 140 * n && kb(w, "g", "pss") == 120 * n &&
         world_value(w, "g", "unreadable") == 0;
}

static struct world *stage;

static void victim_ends(void) { proctree_end(&stage->tree, 20); }

/* Another process, of another group, has the pid. The directory is made aside,
 * because a file system, unlike proc, may use an inode number again at once. */
static void victim_is_replaced(void) {
  struct fake other = process(20, "other");
  char from[80], to[80];

  other.pid = 21;
  other.private_kb = 5000;
  other.starttime = 1000000;
  other.cmdline = "another";
  put(stage, other);
  proctree_end(&stage->tree, 20);
  snprintf(from, sizeof(from), "%s/21", stage->tree.root);
  snprintf(to, sizeof(to), "%s/20", stage->tree.root);
  assert_int_equal(rename(from, to), 0);
}

/* Lets it happen before the first call of openat in a cycle, before the second,
 * and so on; the group has to be whole all the time. */
static void happen_everywhere(struct world *w, void (*happen)(void)) {
  bool is_through = false;

  stage = w;
  world_group(w, "g", "CommandLine", "thing*", "User", "*");
  world_group(w, "%{unit}%{exe}", "Cgroup", "*", NULL, NULL);
  put(w, process(10, "a"));
  assert_int_equal(world_cycle(w, 0), 0);
  for (unsigned k = 1; !is_through; k++) {
    struct fake victim = process(20, "victim");

    victim.starttime += k;
    put(w, victim);
    hook.happen = happen;
    hook.calls = 0;
    hook.happens_before = k;
    assert_int_equal(world_cycle(w, 1), 0);
    is_through = hook.happens_before != 0;
    hook.happens_before = 0;
    assert_true(!is_through || k > 9);
    assert_true(is_whole(w, 1) || is_whole(w, 2));
    proctree_end(&w->tree, 20);
    assert_int_equal(world_cycle(w, 1), 0);
    assert_true(is_whole(w, 1));
    for (int t = 0; t < TROUBLES; t++)
      assert_int_equal(
          collector_trouble(w->collector, (enum trouble_kind)t)->count, 0);
  }
}

static void process_may_end_between_any_two_reads(void **state) {
  happen_everywhere(*state, victim_ends);
}

static void pid_may_come_to_another_between_any_two_reads(void **state) {
  happen_everywhere(*state, victim_is_replaced);
}

static void process_that_ends_is_counted_as_vanished(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  world_group(w, "g", "Comm", "a", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(collector_counts(w->collector)->vanished, 0);
  refuse("smaps_rollup", ESRCH);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(collector_counts(w->collector)->vanished, 1);
  assert_int_equal(world_members(w, "g"), 0);
}

static void zombie_is_no_member(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "a");

  put(w, f);
  world_group(w, "g", "Comm", "a", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "g"), 1);
  f.state = 'Z';
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "g"), 0);
  assert_true(world_value(w, "g", "pss") == 0);
  assert_int_equal(collector_counts(w->collector)->processes, 0);
}

static void template_group_of_a_zombie_is_not_reported(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "a");

  put(w, f);
  world_group(w, "%{comm}", "Comm", "a", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_groups(w), 1);
  f.state = 'Z';
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_groups(w), 0);
}

/* Its memory is given back, and it is no zombie yet. */
static void process_on_its_way_out_is_no_member(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  proctree_write(&w->tree, "10/statm", "0 0 0 0 0 0 0\n", 14);
  world_group(w, "g", "Comm", "a", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "g"), 0);
}

static void
process_whose_main_thread_is_dead_is_read_through_another(void **state) {
  struct world *w = *state;
  struct fake leader = process(10, "a");
  struct fake dead = process(10, "a"), live = process(12, "t");

  leader.state = dead.state = 'Z';
  leader.threads = live.threads = 2;
  leader.cmdline = NULL;
  leader.exe = NULL;
  put(w, leader);
  proctree_write(&w->tree, "10/smaps_rollup", "", 0);
  proctree_put_thread(&w->tree, 10, &dead);
  proctree_put_thread(&w->tree, 10, &live);
  world_group(w, "g", "CommandLine", "thing*", "Executable", "/usr/*");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_true(is_whole(w, 1));
  assert_int_equal(world_find(w, "g")->usage.threads, 2);
}

static void kernel_thread_is_looked_at_once(void **state) {
  struct world *w = *state;
  struct fake k = process(2, "kthreadd");

  k.flags = 0x00208040;
  put(w, k);
  put(w, process(10, "a"));
  proctree_unlink(&w->tree, "2/statm");
  proctree_unlink(&w->tree, "2/cmdline");
  world_group(w, "%{comm}", "CommandLine", "*", NULL, NULL);
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_groups(w), 2);
  assert_int_equal(world_members(w, "rest"), 0);
  hook.counted = "2"; /* its directory, and no other file of it */
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(hook.opened, 0);
  assert_int_equal(collector_counts(w->collector)->processes, 1);
}

static void child_in_vfork_is_counted_with_its_parent_once(void **state) {
  struct world *w = *state;
  struct fake parent = process(10, "java"), child = process(11, "java");

  parent.state = 'D';
  child.ppid = 10;
  child.start_stack = parent.start_stack;
  put(w, parent);
  put(w, child);
  world_group(w, "java", "Comm", "java", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_true(kb(w, "java", "pss") == 120);
  assert_true(kb(w, "java", "resident") == 140);
  assert_true(world_value(w, "java", "ps_count") == 2);
  assert_true(world_value(w, "java", "unreadable") == 0);
  /* The child calls exec: from now on it has memory of its own. */
  parent.state = 'S';
  child.start_stack += 0x1000;
  put(w, parent);
  put(w, child);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_true(kb(w, "java", "pss") == 240);
}

static void child_in_vfork_is_counted_if_its_parent_has_ended(void **state) {
  struct world *w = *state;
  struct fake parent = process(10, "java"), child = process(11, "java");

  parent.state = 'D';
  child.ppid = 10;
  child.start_stack = parent.start_stack;
  put(w, parent);
  put(w, child);
  world_group(w, "java", "Comm", "java", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  refuse("smaps_rollup", ESRCH);
  hook.failures = 1;
  assert_int_equal(world_cycle(w, 1), 0);
  assert_true(kb(w, "java", "pss") == 120);
  assert_true(world_value(w, "java", "ps_count") == 1);
}

static void child_after_fork_is_counted_beside_its_parent(void **state) {
  struct world *w = *state;
  struct fake parent = process(10, "fpm"), child = process(11, "fpm");

  child.ppid = 10;
  child.start_stack = parent.start_stack;
  put(w, parent);
  put(w, child);
  world_group(w, "fpm", "Comm", "fpm", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_true(kb(w, "fpm", "pss") == 240);
}

/* --- names -----------------------------------------------------------------
 */

static void exec_moves_a_process_to_another_group(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "sh");

  put(w, f);
  world_group(w, "%{exe}", "Executable", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "usr_bin_thing"), 1);
  /* The same comm; only the addresses tell. */
  f.start_stack += 0x5000;
  f.size = 999;
  f.exe = "/usr/bin/another (deleted)";
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "usr_bin_another"), 1);
  assert_null(world_find(w, "usr_bin_thing"));
}

static void
exec_is_seen_by_the_text_size_where_addresses_are_hidden(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "sh");

  f.start_stack = 0;
  put(w, f);
  world_group(w, "%{exe}", "Executable", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  f.text = 77;
  f.exe = "/usr/bin/another";
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "usr_bin_another"), 1);
}

static void title_that_a_child_sets_after_fork_is_seen(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "php-fpm");

  f.cmdline = "php-fpm: master process";
  put(w, f);
  world_group(w, "pool-%{1}", "CommandLineMatch", "^php-fpm: pool ([a-z]+)",
              NULL, NULL);
  world_group(w, "master", "Comm", "php-fpm", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "master"), 1);
  f.cmdline = "php-fpm: pool www";
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "pool-www"), 1);
}

static void settled_command_line_is_not_read_again(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  world_group(w, "g", "CommandLine", "*", "Executable", "*");
  hook.counted = "cmdline";
  for (int cycle = 0; cycle < 100; cycle++)
    assert_int_equal(world_cycle(w, 10), 0);
  assert_int_equal(hook.opened, 2);
}

/* As of Ruby's $0=, of sshd after the login, of PostgreSQL on promotion: within
 * a minute, at any interval. */
static void title_that_is_set_late_is_seen_within_a_minute(void **state) {
  static const unsigned intervals[] = {1, 10, 20, 25, 59, 60};
  struct world *w = *state;

  world_group(w, "g", "CommandLine", "sidekiq*", NULL, NULL);
  for (size_t i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++) {
    struct fake f = process(16, "a");
    unsigned waited = 0;

    world_stop(w);
    w->settings.interval_ns = intervals[i] * UINT64_C(1000000000);
    put(w, f);
    for (int again = 0; again < 7; again++)
      assert_int_equal(world_cycle(w, intervals[i]), 0);
    assert_int_equal(world_members(w, "g"), 0);
    f.cmdline = "sidekiq 6.5 busy";
    f.switches++;
    put(w, f);
    while (world_members(w, "g") == 0) {
      assert_in_range(waited += intervals[i], 1, 60);
      assert_int_equal(world_cycle(w, intervals[i]), 0);
    }
  }
}

/* Reading it would bring swapped-out memory back. */
static void command_line_of_one_that_sleeps_is_left_alone(void **state) {
  struct world *w = *state;
  struct fake f = process(16, "a");

  put(w, f);
  world_group(w, "g", "CommandLine", "thing*", NULL, NULL);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  hook.counted = "cmdline";
  for (int minute = 0; minute < 10; minute++)
    assert_int_equal(world_cycle(w, 60), 0);
  assert_int_equal(hook.opened, 0);
  f.switches++;
  put(w, f);
  for (int minute = 0; minute < 10; minute++)
    assert_int_equal(world_cycle(w, 60), 0);
  assert_int_equal(hook.opened, 1);
}

/* Where the addresses are hidden an exec may go unseen; each attempt may cost a
 * line in an audit log. */
static void refused_executable_is_tried_once_an_hour_or_an_exec(void **state) {
  struct world *w = *state;
  struct fake f = process(16, "a");

  f.start_stack = 0;
  put(w, f);
  world_group(w, "g", "Executable", "/usr/bin/thing", NULL, NULL);
  refused_link = "exe";
  links = 0;
  for (int minute = 0; minute < 50; minute++) {
    f.switches++;
    put(w, f);
    assert_int_equal(world_cycle(w, 60), 0);
  }
  assert_int_equal(links, 1);
  f.comm = "b";
  f.size = 999;
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(links, 2);
  for (int minute = 0; minute < 110; minute++)
    assert_int_equal(world_cycle(w, 60), 0);
  assert_int_equal(links, 3);
  refused_link = NULL;
  for (int minute = 0; minute < 20; minute++)
    assert_int_equal(world_cycle(w, 60), 0);
  assert_int_equal(world_members(w, "g"), 1);
}

static void names_that_no_rule_looks_at_are_not_read(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  world_group(w, "g", "Comm", "*", NULL, NULL);
  for (int i = 0; i < 3; i++) {
    hook.counted = (const char *[]){"cmdline", "status", "cgroup"}[i];
    hook.opened = 0;
    assert_int_equal(world_cycle(w, 100), 0);
    assert_int_equal(hook.opened, 0);
  }
}

static void move_to_another_cgroup_is_seen_within_a_minute(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "a");

  f.cgroup = "/system.slice/one.service";
  put(w, f);
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_cycle(w, 10), 0);
  f.cgroup = "/system.slice/two.service";
  put(w, f);
  assert_int_equal(world_cycle(w, 10), 0);
  assert_int_equal(world_members(w, "one.service"), 1);
  assert_int_equal(world_cycle(w, 60), 0);
  assert_int_equal(world_members(w, "two.service"), 1);
}

static void pid_that_comes_to_another_process_starts_afresh(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "a");

  put(w, f);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  f.starttime += 5;
  f.comm = "b";
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_null(world_find(w, "a"));
  assert_int_equal(world_members(w, "b"), 1);
}

static void user_without_a_name_is_its_number(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "a");

  f.uid = 12345;
  put(w, f);
  world_group(w, "%{user}", "User", "12345", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "12345"), 1);
}

static void empty_command_line_is_matched_by_comm(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "sshd");

  f.cmdline = NULL;
  put(w, f);
  world_group(w, "g", "CommandLineMatch", "^sshd$", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "g"), 1);
}

static void of_a_long_command_line_the_first_4_kib_count(void **state) {
  static char line[2 << 20];
  struct world *w = *state;

  put(w, process(10, "a"));
  memset(line, 'x', sizeof(line));
  memcpy(line, "start", 5);
  proctree_write(&w->tree, "10/cmdline", line, sizeof(line));
  world_group(w, "g", "CommandLineMatch", "^startx{100}", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "g"), 1);
}

/* --- what cannot be read ---------------------------------------------------
 */

static void refused_rollup_is_not_known_and_the_rest_is(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  world_group(w, "g", "Comm", "a", NULL, NULL);
  refuse("smaps_rollup", EACCES);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_true(isnan(kb(w, "g", "pss")));
  assert_true(isnan(kb(w, "g", "uss")));
  assert_true(isnan(kb(w, "g", "private_dirty")));
  assert_true(isnan(world_value(w, "g", "age")));
  assert_true(isnan(world_value(w, "g", "pss_error")));
  assert_true(kb(w, "g", "resident") == 140);
  assert_true(world_value(w, "g", "ps_count") == 1);
  assert_true(world_value(w, "g", "unreadable") == 1);
  assert_true(world_value(w, "g", "coverage") == 0);
  assert_int_equal(collector_counts(w->collector)->denied, 1);
  assert_int_equal(collector_trouble(w->collector, TROUBLE_ROLLUP_DENIED)->pid,
                   10);
}

static void
refused_rollup_is_tried_again_after_an_hour_or_an_exec(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "a");

  put(w, f);
  world_group(w, "g", "Comm", "*", NULL, NULL);
  hook.counted = "smaps_rollup";
  refuse("smaps_rollup", EACCES);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_cycle(w, 10), 0);
  assert_int_equal(world_cycle(w, 3000), 0);
  assert_int_equal(hook.opened, 1);
  assert_int_equal(collector_counts(w->collector)->denied, 1);
  assert_int_equal(world_cycle(w, 1000), 0);
  assert_int_equal(hook.opened, 2);
  f.comm = "b";
  f.size = 999;
  f.start_stack += 0x1000;
  put(w, f);
  hook.failing = NULL;
  assert_int_equal(world_cycle(w, 10), 0);
  assert_int_equal(hook.opened, 3);
  assert_true(is_whole(w, 1));
}

static void one_unreadable_member_leaves_other_groups_alone(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  put(w, process(11, "g"));
  proctree_write(&w->tree, "10/smaps_rollup", "Rss: nonsense\n", 14);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_true(is_whole(w, 1));
  assert_true(isnan(kb(w, "a", "pss")));
  assert_true(world_value(w, "a", "unreadable") == 1);
  assert_int_equal(collector_trouble(w->collector, TROUBLE_MALFORMED)->count,
                   1);
}

static void member_whose_statm_fails_makes_statm_values_unknown(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  world_group(w, "g", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  refuse("statm", EMFILE);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_true(isnan(kb(w, "g", "resident")));
  assert_true(isnan(kb(w, "g", "pss")));
  assert_true(world_value(w, "g", "ps_count") == 1);
  assert_int_equal(collector_trouble(w->collector, TROUBLE_FAILED)->error,
                   EMFILE);
  hook.failing = NULL;
  assert_int_equal(world_cycle(w, 1), 0);
  assert_true(is_whole(w, 1));
}

static void
child_of_a_parent_that_fails_at_first_is_linked_later(void **state) {
  struct world *w = *state;
  struct fake parent = process(10, "server"), child = process(11, "worker");

  child.ppid = 10;
  put(w, parent);
  put(w, child);
  proctree_write(&w->tree, "10/stat", "nonsense\n", 9);
  world_group(w, "g", "Comm", "server", NULL, NULL)->takes_children = true;
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "g"), 0);
  put(w, parent);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_true(is_whole(w, 2));
}

static void hidden_process_is_counted_as_denied(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  world_group(w, "g", "Comm", "*", NULL, NULL);
  refuse("stat", EPERM);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(collector_counts(w->collector)->denied, 1);
  assert_int_equal(world_members(w, "g"), 0);
}

/* A snapshot can do without it. */
static void
refused_executable_is_trouble_where_a_rule_asks_for_it(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  world_keep_state(w);
  world_group(w, "g", "Comm", "a", NULL, NULL);
  refused_link = "exe";
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(
      collector_trouble(w->collector, TROUBLE_EXECUTABLE_DENIED)->count, 0);
  assert_true(is_whole(w, 1));
  world_stop(w);
  world_group(w, "h", "Executable", "/usr/bin/thing", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(
      collector_trouble(w->collector, TROUBLE_EXECUTABLE_DENIED)->count, 1);
  assert_int_equal(
      collector_trouble(w->collector, TROUBLE_EXECUTABLE_DENIED)->pid, 10);
}

static void smaps_stands_in_where_there_is_no_rollup(void **state) {
  static const char smaps[] =
      "00400000-00500000 r-xp 00000000 08:01 1  /usr/bin/thing\n"
      "Size:               1024 kB\nRss:                  40 kB\n"
      "Pss:                  20 kB\nShared_Clean:         40 kB\n"
      "Shared_Dirty:          0 kB\nPrivate_Clean:         0 kB\n"
      "Private_Dirty:         0 kB\nSwap:                  0 kB\n"
      "VmFlags: rd ex mr mw me dw\n"
      "01400000-01500000 rw-p 00000000 00:00 0  [heap]\n"
      "Rss:                 100 kB\nPss:                 100 kB\n"
      "Shared_Clean:          0 kB\nShared_Dirty:          0 kB\n"
      "Private_Clean:         0 kB\nPrivate_Dirty:       100 kB\n"
      "Swap:                  0 kB\nVmFlags: rd wr mr mw me ac\n";
  struct world *w = *state;

  put(w, process(10, "a"));
  proctree_unlink(&w->tree, "10/smaps_rollup");
  proctree_write(&w->tree, "10/smaps", smaps, strlen(smaps));
  world_group(w, "g", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_true(is_whole(w, 1));
}

static void
kernel_without_both_is_told_from_a_process_that_ended(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  proctree_unlink(&w->tree, "10/smaps_rollup");
  world_group(w, "g", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(collector_counts(w->collector)->vanished, 0);
  assert_int_equal(collector_trouble(w->collector, TROUBLE_NO_ROLLUP)->count,
                   1);
  assert_true(isnan(kb(w, "g", "pss")));
  assert_true(kb(w, "g", "resident") == 140);
}

/* --- what hangs --------------------------------------------------------------
 */

#define TIMEOUT_NS (100 * NS_PER_MS)

static unsigned stalled(const struct world *w) {
  return (unsigned)collector_counts(w->collector)->stalled;
}

static const struct trouble *stall(const struct world *w) {
  return collector_trouble(w->collector, TROUBLE_STALLED);
}

/* A hung reader that was woken comes back when it does. */
static void cycle_until_none_is_stalled(struct world *w) {
  do {
    sched_yield();
    assert_int_equal(world_cycle(w, 1), 0);
  } while (stalled(w) > 0);
}

static void
member_whose_rollup_hangs_costs_no_other_and_is_read_again(void **state) {
  struct world *w = *state;

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  put(w, process(10, "a"));
  put(w, process(11, "g"));
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  proctree_hang(&w->tree, "10/smaps_rollup");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_true(is_whole(w, 1));
  assert_true(world_value(w, "a", "ps_count") == 1);
  assert_true(kb(w, "a", "resident") == 140);
  assert_true(kb(w, "a", "pss_error") == 140);
  assert_true(world_value(w, "a", "coverage") == 0);
  assert_int_equal(stalled(w), 1);
  assert_int_equal(stall(w)->pid, 10);
  assert_string_equal(stall(w)->comm, "a");
  assert_string_equal(stall(w)->file, "smaps_rollup");

  hook.counted = "smaps_rollup";
  for (unsigned i = 0; i < 5; i++) {
    hook.opened = 0;
    assert_int_equal(world_cycle(w, i * 1000), 0);
    assert_int_equal(hook.opened, 1); /* the other's */
    assert_int_equal(stalled(w), 1);
    assert_int_equal(stall(w)->count, 0);
    assert_true(is_whole(w, 1));
  }
  proctree_wake(&w->tree, "10/smaps_rollup");
  put(w, process(10, "a"));
  cycle_until_none_is_stalled(w);
  assert_true(kb(w, "a", "pss") == 120);
  assert_true(kb(w, "a", "pss_error") == 0);
}

/* It comes back too late each time, and has us wait each time; so it is tried
 * more and more rarely, however well it looks meanwhile. */
static void process_that_is_too_slow_is_tried_ever_more_rarely(void **state) {
  struct world *w = *state;

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  put(w, process(10, "a"));
  world_group(w, "g", "Comm", "*", NULL, NULL);
  hook.counted = "smaps_rollup";
  for (unsigned i = 0; i < 3; i++) {
    proctree_hang(&w->tree, "10/smaps_rollup");
    assert_int_equal(world_cycle(w, 1 << i), 0); /* after 0.2, 0.4 seconds */
    assert_int_equal(stalled(w), 1);
    proctree_wake(&w->tree, "10/smaps_rollup");
    put(w, process(10, "a"));
    hook.opened = 0;
    for (int j = 0; j < 100; j++) {
      sched_yield();
      assert_int_equal(world_cycle(w, 0), 0);
      assert_int_equal(stalled(w), 1);
      assert_int_equal(hook.opened, 0);
    }
  }
  cycle_until_none_is_stalled(w);
  assert_true(is_whole(w, 1));
}

/* Without a name it is in no group; of one that is known before, nothing is
 * lost. */
static void process_that_hangs_at_first_sight_is_in_no_group(void **state) {
  static const char *const files[] = {"stat", "cmdline"};
  struct world *w = *state;

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  put(w, process(10, "a"));
  world_group(w, "g", "CommandLine", "thing*", NULL, NULL);
  for (uint32_t i = 0; i < 2; i++) {
    char path[32];

    put(w, process(20, "b"));
    snprintf(path, sizeof(path), "20/%s", files[i]);
    proctree_hang(&w->tree, path);
    assert_int_equal(world_cycle(w, 1), 0);
    assert_true(is_whole(w, 1));
    assert_int_equal(stalled(w), 1);
    assert_int_equal(stall(w)->pid, 20);
    assert_string_equal(stall(w)->comm, "b");
    assert_string_equal(stall(w)->file, files[i]);
    assert_int_equal(collector_counts(w->collector)->processes, 2);
    proctree_wake(&w->tree, path);
    put(w, process(20, "b"));
    cycle_until_none_is_stalled(w);
    assert_true(is_whole(w, 2));
    proctree_end(&w->tree, 20);
    assert_int_equal(world_cycle(w, 1), 0);
  }
}

static void hang(struct world *w, uint32_t pid, const char *file,
                 bool is_to_hang) {
  char path[32];

  snprintf(path, sizeof(path), "%u/%s", pid, file);
  if (!is_to_hang)
    proctree_wake(&w->tree, path);
  put(w, process(pid, "a"));
  if (is_to_hang)
    proctree_hang(&w->tree, path);
}

static uint64_t unidentified(const struct world *w) {
  return collector_counts(w->collector)->unidentified;
}

/* Whether a group that is named in the configuration is published as one of
 * which nothing is known. */
static bool is_not_known(const struct world *w, const char *group) {
  return isnan(world_value(w, group, "ps_count")) &&
         isnan(world_value(w, group, "pss")) &&
         isnan(world_value(w, group, "resident")) &&
         isnan(world_value(w, group, "unreadable"));
}

/* At first sight: stat hangs of so many, as many as may or one, and whoever
 * comes behind them is not tried. */
static void who_is_not_identified_can_be_in_any_group(void **state) {
  static const struct {
    uint32_t hanging, unidentified;
  } cases[] = {{1, 1}, {4, 6}};
  struct world *w = *state;

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  world_group(w, "g", "Comm", "g", NULL, NULL);
  world_group(w, "none", "Comm", "none", NULL, NULL);
  for (size_t i = 0; i < 2; i++) {
    for (uint32_t pid = 10; pid < 10 + cases[i].hanging; pid++)
      hang(w, pid, "stat", true);
    put(w, process(90, "g"));
    put(w, process(91, "g"));
    for (int again = 0; again < 2; again++) {
      assert_int_equal(world_cycle(w, 1), 0);
      assert_int_equal(unidentified(w), cases[i].unidentified);
      assert_true(is_not_known(w, "none"));
      assert_true(i == 0 ? is_whole(w, 2) : is_not_known(w, "g"));
    }
    for (uint32_t pid = 10; pid < 10 + cases[i].hanging; pid++)
      hang(w, pid, "stat", false);
    cycle_until_none_is_stalled(w);
    assert_int_equal(unidentified(w), 0);
    assert_true(is_whole(w, 2));
    assert_true(world_value(w, "none", "ps_count") == 0);
    for (uint32_t pid = 10; pid < 100; pid++)
      proctree_end(&w->tree, pid);
    put(w, process(8, "b"));
    assert_int_equal(world_cycle(w, 1), 0);
  }
}

/* Without descriptors, or without memory for them: those that are known stay
 * members, and count. */
static void failure_to_look_is_no_sign_that_there_is_nobody(void **state) {
  static const int errors[] = {EMFILE, ENFILE, ENOMEM, EIO};
  struct world *w = *state;

  put(w, process(10, "known"));
  world_group(w, "g", "Comm", "g", NULL, NULL);
  world_group(w, "known", "Comm", "known", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
    assert_true(world_value(w, "g", "ps_count") == 0);
    put(w, process(20, "g"));
    refuse("stat", errors[i]);
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(unidentified(w), 1);
    assert_true(is_not_known(w, "g"));
    assert_true(world_value(w, "known", "ps_count") == 1);
    assert_int_equal(collector_trouble(w->collector, TROUBLE_FAILED)->error,
                     errors[i]);
    hook.failing = NULL;
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(unidentified(w), 0);
    assert_true(is_whole(w, 1));
    proctree_end(&w->tree, 20);
    assert_int_equal(world_cycle(w, 1), 0);
  }
}

/* What is known of it may be of the program before, or of the process that had
 * its pid: it is in the sums of neither group, and neither is known to be empty
 * for sure. */
static void who_may_have_become_another_is_not_known(void **state) {
  static const char *const failing[] = {"stat", "cmdline"};
  struct world *w = *state;

  put(w, process(1, "init")); /* an empty tree is no proc tree */
  world_group(w, "sh", "Comm", "sh", "CommandLineMatch", ".");
  world_group(w, "g", "Comm", "g", NULL, NULL);
  for (uint32_t i = 0; i < 2; i++) {
    struct fake f = process(10 + i, "sh");

    put(w, f);
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(world_cycle(w, 1), 0);
    assert_true(world_value(w, "g", "ps_count") == 0);
    f.comm = "g";
    f.text += 7;
    f.size += 1000;
    f.start_stack += 0x10000;
    put(w, f);
    refuse(failing[i], EMFILE);
    for (int n = 0; n < 5; n++) {
      assert_int_equal(world_cycle(w, 1), 0);
      assert_int_equal(unidentified(w), 1);
      assert_true(is_not_known(w, "g"));
    }
    hook.failing = NULL;
    assert_int_equal(world_cycle(w, 1), 0);
    assert_true(world_value(w, "g", "ps_count") == 1);
    assert_true(world_value(w, "sh", "ps_count") == 0);
    proctree_end(&w->tree, f.pid);
    assert_int_equal(world_cycle(w, 1), 0);
  }
}

/* Its statm is that of a zombie; its threads live on. */
static void dead_main_thread_that_nobody_can_look_at_is_alive(void **state) {
  enum { WORKERS = 4 };
  struct world *w = *state;
  struct fake f = process(90, "g");

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  world_group(w, "g", "Comm", "g", NULL, NULL);
  f.threads = 3;
  put(w, f);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  for (uint32_t pid = 10; pid < 10 + WORKERS; pid++)
    hang(w, pid, "stat", true);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(stalled(w), WORKERS);
  f.state = 'Z';
  put(w, f);
  f.pid = 91; /* is not known either */
  put(w, f);
  f.pid = 92;
  f.threads = 1;
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_true(world_value(w, "g", "ps_count") == 1);
  assert_true(isnan(kb(w, "g", "pss")));
  assert_int_equal(unidentified(w), WORKERS + 1);
  for (uint32_t pid = 10; pid < 10 + WORKERS; pid++)
    hang(w, pid, "stat", false);
}

static void known_process_whose_stat_hangs_stays_a_member(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "a");

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  put(w, f);
  world_group(w, "g", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  f.private_kb += 400; /* which changes the size, so that stat is asked */
  put(w, f);
  proctree_hang(&w->tree, "10/stat");
  for (int i = 0; i < 3; i++) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(stalled(w), 1);
    assert_true(kb(w, "g", "resident") == 540);
    assert_true(world_value(w, "g", "ps_count") == 1);
    assert_true(world_value(w, "g", "unreadable") == 0);
  }
  /* It ends all the same, for what cannot hang. */
  proctree_write(&w->tree, "10/statm", "0 0 0 0 0 0 0\n", 14);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "g"), 0);
  assert_int_equal(stalled(w), 0);
  proctree_wake(&w->tree, "10/stat");
  put(w, f);
  do
    assert_int_equal(world_cycle(w, 1), 0);
  while (world_members(w, "g") == 0);
}

/* What hangs goes on hanging: it is of the old program. */
static void exec_of_one_that_hangs_has_it_looked_at_again(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "a");

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  put(w, f);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  proctree_hang(&w->tree, "10/smaps_rollup");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(stalled(w), 1);
  proctree_rename(&w->tree, "10/smaps_rollup", "fifo");
  f.comm = "g";
  f.start_stack += 0x1000;
  put(w, f);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(stalled(w), 0);
  assert_true(is_whole(w, 1));
  proctree_wake(&w->tree, "fifo");
}

/* Which shows by its directory, where they have the same name. */
static void pid_of_one_that_hung_can_come_to_another_of_its_name(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "g");

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  put(w, f);
  world_group(w, "g", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  proctree_hang(&w->tree, "10/smaps_rollup");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(stalled(w), 1);
  proctree_rename(&w->tree, "10", "old");
  f.starttime += 5;
  put(w, f);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(stalled(w), 0);
  assert_true(is_whole(w, 1));
  proctree_wake(&w->tree, "old/smaps_rollup");
}

/* It shows in its size alone, and that while nothing was to be asked. */
static void exec_while_it_hung_is_seen_when_it_is_free(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "sh");

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  put(w, f);
  world_group(w, "%{exe}", "Executable", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  proctree_hang(&w->tree, "10/smaps_rollup");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(stalled(w), 1);
  proctree_rename(&w->tree, "10/smaps_rollup", "fifo");
  f.start_stack += 0x5000;
  f.size = 999;
  f.exe = "/usr/bin/another";
  put(w, f);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(stalled(w), 1);
  assert_int_equal(world_members(w, "usr_bin_thing"), 1);
  proctree_wake(&w->tree, "fifo");
  cycle_until_none_is_stalled(w);
  assert_int_equal(world_members(w, "usr_bin_another"), 1);
}

/* Six hang, and four may; the others of these are not tried, nor is one that
 * is well. */
static void when_all_readers_hang_statm_alone_is_read(void **state) {
  enum { HANGING = 6, WORKERS = 4 };
  struct world *w = *state;

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  for (uint32_t i = 0; i < HANGING; i++)
    put(w, process(10 + i, "a"));
  put(w, process(90, "g"));
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  for (uint32_t i = 0; i < HANGING; i++)
    hang(w, 10 + i, "smaps_rollup", true);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(stalled(w), WORKERS);
    assert_int_equal(stall(w)->count, i == 0 ? WORKERS : 0);
    assert_int_equal(
        collector_trouble(w->collector, TROUBLE_READERS_STUCK)->count, 1);
    assert_int_equal(collector_counts(w->collector)->deferred,
                     HANGING - WORKERS + 1);
    assert_true(kb(w, "a", "resident") == 140 * HANGING);
    assert_true(kb(w, "g", "resident") == 140);
    assert_true(kb(w, "g", "pss") > 0);
    assert_true(world_value(w, "g", "coverage") == 0);
  }
  for (uint32_t i = 0; i < WORKERS; i++)
    hang(w, 10 + i, "smaps_rollup", false);
  for (uint32_t i = WORKERS; i < HANGING; i++) {
    proctree_unlink(&w->tree, i == 4 ? "14/smaps_rollup" : "15/smaps_rollup");
    put(w, process(10 + i, "a"));
  }
  cycle_until_none_is_stalled(w);
  assert_true(kb(w, "a", "pss") == 120 * HANGING);
  assert_true(is_whole(w, 1));
  assert_int_equal(
      collector_trouble(w->collector, TROUBLE_READERS_STUCK)->count, 0);
}

/* Growth has its stat asked for, and there is nobody to do it; a newcomer is
 * not known at all. */
static void known_process_goes_on_without_a_reader(void **state) {
  enum { WORKERS = 4 };
  struct world *w = *state;
  struct fake f = process(90, "g");

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  for (uint32_t i = 0; i < WORKERS; i++)
    put(w, process(10 + i, "a"));
  put(w, f);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  for (uint32_t i = 0; i < WORKERS; i++)
    hang(w, 10 + i, "smaps_rollup", true);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(stalled(w), WORKERS);
  f.private_kb += 400;
  put(w, f);
  put(w, process(91, "g"));
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "g"), 1);
  assert_true(kb(w, "g", "resident") == 540);
  for (uint32_t i = 0; i < WORKERS; i++)
    hang(w, 10 + i, "smaps_rollup", false);
  cycle_until_none_is_stalled(w);
  assert_int_equal(world_members(w, "g"), 2);
}

/* Whose mm it is stays as it was, and is not asked again before its time. */
static void child_in_vfork_is_counted_once_while_asking_hangs(void **state) {
  struct world *w = *state;
  struct fake parent = process(10, "java"), child = process(11, "java");

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  parent.state = 'D';
  child.ppid = 10;
  child.start_stack = parent.start_stack;
  put(w, parent);
  put(w, child);
  world_group(w, "java", "Comm", "java", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  proctree_hang(&w->tree, "10/stat");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(stalled(w), 1);
  assert_int_equal(stall(w)->pid, 11);
  proctree_wake(&w->tree, "10/stat");
  put(w, parent);
  hook.counted = "stat";
  for (int i = 0; i < 100; i++) {
    sched_yield();
    assert_int_equal(world_cycle(w, 0), 0);
    assert_int_equal(hook.opened, 0);
    assert_true(kb(w, "java", "pss") == 120);
    assert_true(world_value(w, "java", "ps_count") == 2);
  }
  cycle_until_none_is_stalled(w);
  assert_true(kb(w, "java", "pss") == 120);
}

static void collector_ends_without_a_reader_that_hangs(void **state) {
  struct world *w = *state;

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  put(w, process(10, "a"));
  world_group(w, "g", "Comm", "*", NULL, NULL);
  proctree_hang(&w->tree, "10/smaps_rollup");
  assert_int_equal(world_cycle(w, 0), 0);
  collector_free(w->collector);
  w->collector = NULL;
  proctree_wake(&w->tree, "10/smaps_rollup");
}

static void cycle_fails_while_the_tree_is_gone_and_works_again(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  world_group(w, "g", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  proctree_end(&w->tree, 10);
  assert_int_equal(world_cycle(w, 1), -ENOTTY);
  put(w, process(10, "a"));
  assert_int_equal(world_cycle(w, 1), 0);
  assert_true(is_whole(w, 1));
}

static void missing_meminfo_makes_percentages_unknown(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  proctree_unlink(&w->tree, "meminfo");
  world_group(w, "g", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(collector_metric_context(w->collector)->mem_total, 0);
}

/* What has hung is left alone; that it ends, or that its statm fails, is seen
 * all the same. */
static void left_alone_it_goes_by_its_statm(void **state) {
  static const struct {
    const char *statm; /* NULL: it is not there */
    unsigned members, unreadable;
    bool is_known;
  } cases[] = {
      {"9999 35 10 0 0 0 0\n", 1, 0, true},
      {"nonsense\n", 1, 1, false},
      {"9999 35 10 0 0 0 0\n", 1, 0, true},
      {"0 0 0 0 0 0 0\n", 0, 0, true},
      {NULL, 0, 0, true},
  };
  struct world *w = *state;

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  put(w, process(10, "a"));
  world_group(w, "g", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  proctree_hang(&w->tree, "10/smaps_rollup");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(stalled(w), 1);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    proctree_unlink(&w->tree, "10/statm");
    if (cases[i].statm)
      proctree_write(&w->tree, "10/statm", cases[i].statm,
                     strlen(cases[i].statm));
    assert_int_equal(world_cycle(w, 0), 0);
    if (world_members(w, "g") != cases[i].members)
      fail_msg("case %zu: %u members", i, world_members(w, "g"));
    assert_int_equal(world_value(w, "g", "unreadable"), cases[i].unreadable);
    assert_int_equal(!isnan(kb(w, "g", "resident")), cases[i].is_known);
  }
  proctree_wake(&w->tree, "10/smaps_rollup");
}

/* Its main thread shows no memory of its own, and has not lost any. */
static void left_alone_a_dead_main_thread_is_as_it_was(void **state) {
  struct world *w = *state;
  struct fake leader = process(10, "a"), live = process(12, "a");

  w->settings.stall_timeout_ns = TIMEOUT_NS;
  leader.state = 'Z';
  leader.threads = live.threads = 2;
  put(w, leader);
  proctree_put_thread(&w->tree, 10, &live);
  world_group(w, "g", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_true(is_whole(w, 1));
  proctree_hang(&w->tree, "10/task/12/smaps_rollup");
  for (int i = 0; i < 3; i++) {
    assert_int_equal(world_cycle(w, 0), 0);
    assert_int_equal(stalled(w), 1);
    assert_true(kb(w, "g", "resident") == 140);
    assert_int_equal(world_members(w, "g"), 1);
  }
  proctree_wake(&w->tree, "10/task/12/smaps_rollup");
}

/* --- what it is made of ----------------------------------------------------
 */

static void make_settings(struct world *w) {
  struct reason reason;

  world_group(w, "g", "Comm", "*", NULL, NULL);
  assert_int_equal(settings_set_proc_root(&w->settings, w->tree.root, &reason),
                   0);
  assert_int_equal(settings_finish(&w->settings), 0);
}

static void without_hooks_it_goes_by_the_systems_clock(void **state) {
  static const struct collector_hooks nothing = {.clock_ns = NULL};
  struct world *w = *state;

  put(w, process(10, "a"));
  make_settings(w);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(
        collector_new(&w->settings, i ? &nothing : NULL, &w->collector), 0);
    assert_int_equal(collector_cycle(w->collector), 0);
    assert_true(is_whole(w, 1));
    assert_true(collector_counts(w->collector)->cycle_ns > 0);
    world_stop(w);
  }
}

static void without_a_tree_there_is_no_collector(void **state) {
  struct collector *c = NULL;
  struct world *w = *state;

  put(w, process(10, "a"));
  make_settings(w);
  proctree_end(&w->tree, 10);
  assert_int_equal(collector_new(&w->settings, NULL, &c), -ENOTTY);
  assert_null(c);
}

/* --- what is hidden --------------------------------------------------------
 */

/* Makes the tree one of our own pid namespace, where 1 is for all to see. */
static void make_own(struct world *w) {
  char path[128], target[16];

  snprintf(path, sizeof(path), "%s/self", w->tree.root);
  snprintf(target, sizeof(target), "%d", (int)getpid());
  assert_int_equal(symlink(target, path), 0);
}

static void
where_processes_are_hidden_no_group_is_known_to_be_empty(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  make_own(w);
  world_group(w, "g", "Comm", "a", NULL, NULL);
  world_group(w, "empty", "Comm", "b", NULL, NULL);
  for (int has_first = 0; has_first < 2; has_first++) {
    if (has_first)
      put(w, process(1, "init"));
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(collector_trouble(w->collector, TROUBLE_HIDDEN)->count,
                     !has_first);
    assert_int_equal(world_find(w, "empty")->usage.is_unseen, !has_first);
    assert_false(world_find(w, "g")->usage.is_unseen);
  }
}

/* Its pids are not ours, and it may have been captured in part. */
static void tree_of_others_hides_nothing(void **state) {
  struct world *w = *state;

  put(w, process(10, "a"));
  world_group(w, "empty", "Comm", "b", NULL, NULL);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(collector_trouble(w->collector, TROUBLE_HIDDEN)->count, 0);
  assert_false(world_find(w, "empty")->usage.is_unseen);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(sums_are_exact),
      TEST(group_in_the_configuration_reports_zeros_when_empty),
      TEST(process_may_end_between_any_two_reads),
      TEST(pid_may_come_to_another_between_any_two_reads),
      TEST(process_that_ends_is_counted_as_vanished),
      TEST(zombie_is_no_member),
      TEST(template_group_of_a_zombie_is_not_reported),
      TEST(process_on_its_way_out_is_no_member),
      TEST(process_whose_main_thread_is_dead_is_read_through_another),
      TEST(kernel_thread_is_looked_at_once),
      TEST(child_in_vfork_is_counted_with_its_parent_once),
      TEST(child_in_vfork_is_counted_if_its_parent_has_ended),
      TEST(child_after_fork_is_counted_beside_its_parent),
      TEST(exec_moves_a_process_to_another_group),
      TEST(exec_is_seen_by_the_text_size_where_addresses_are_hidden),
      TEST(title_that_a_child_sets_after_fork_is_seen),
      TEST(settled_command_line_is_not_read_again),
      TEST(title_that_is_set_late_is_seen_within_a_minute),
      TEST(command_line_of_one_that_sleeps_is_left_alone),
      TEST(refused_executable_is_tried_once_an_hour_or_an_exec),
      TEST(names_that_no_rule_looks_at_are_not_read),
      TEST(move_to_another_cgroup_is_seen_within_a_minute),
      TEST(pid_that_comes_to_another_process_starts_afresh),
      TEST(user_without_a_name_is_its_number),
      TEST(empty_command_line_is_matched_by_comm),
      TEST(of_a_long_command_line_the_first_4_kib_count),
      TEST(refused_rollup_is_not_known_and_the_rest_is),
      TEST(refused_rollup_is_tried_again_after_an_hour_or_an_exec),
      TEST(one_unreadable_member_leaves_other_groups_alone),
      TEST(member_whose_statm_fails_makes_statm_values_unknown),
      TEST(child_of_a_parent_that_fails_at_first_is_linked_later),
      TEST(hidden_process_is_counted_as_denied),
      TEST(smaps_stands_in_where_there_is_no_rollup),
      TEST(kernel_without_both_is_told_from_a_process_that_ended),
      TEST(member_whose_rollup_hangs_costs_no_other_and_is_read_again),
      TEST(process_that_is_too_slow_is_tried_ever_more_rarely),
      TEST(process_that_hangs_at_first_sight_is_in_no_group),
      TEST(who_is_not_identified_can_be_in_any_group),
      TEST(failure_to_look_is_no_sign_that_there_is_nobody),
      TEST(who_may_have_become_another_is_not_known),
      TEST(dead_main_thread_that_nobody_can_look_at_is_alive),
      TEST(known_process_whose_stat_hangs_stays_a_member),
      TEST(exec_of_one_that_hangs_has_it_looked_at_again),
      TEST(pid_of_one_that_hung_can_come_to_another_of_its_name),
      TEST(exec_while_it_hung_is_seen_when_it_is_free),
      TEST(when_all_readers_hang_statm_alone_is_read),
      TEST(known_process_goes_on_without_a_reader),
      TEST(child_in_vfork_is_counted_once_while_asking_hangs),
      TEST(collector_ends_without_a_reader_that_hangs),
      TEST(cycle_fails_while_the_tree_is_gone_and_works_again),
      TEST(missing_meminfo_makes_percentages_unknown),
      TEST(left_alone_it_goes_by_its_statm),
      TEST(left_alone_a_dead_main_thread_is_as_it_was),
      TEST(without_hooks_it_goes_by_the_systems_clock),
      TEST(without_a_tree_there_is_no_collector),
      TEST(where_processes_are_hidden_no_group_is_known_to_be_empty),
      TEST(tree_of_others_hides_nothing),
      TEST(refused_executable_is_trouble_where_a_rule_asks_for_it),
  };

  alarm(300); /* what waits in vain fails */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
