/* Which rollups are read, and what stands in for the others. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "estimate/measure.h"

#include "few_threads.h"
#include "world.h"

/* --- kcmp(2), the only call of its kind ------------------------------------
 */

/* Why it is refused; 0 where all are in one address space. */
static int kcmp_error;
static _Atomic unsigned kcmp_calls;

long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  assert_int_equal(number, SYS_kcmp);
  kcmp_calls++;
  errno = kcmp_error;
  return kcmp_error ? -1 : 0;
}

static int make(void **state) {
  static struct world w;

  threads_fail = 0;
  kcmp_error = EPERM;
  kcmp_calls = 0;
  world_make(&w);
  w.settings.policy.refresh = REFRESH_ADAPTIVE;
  *state = &w;
  return 0;
}

static int unmake(void **state) {
  world_remove(*state);
  return 0;
}

#define WORLD_TEST(name) TEST_WITH(name, make, unmake, struct world *w)

/* Of 8 MiB, of which 2 MiB are shared by two. */
static struct fake process(uint32_t pid, const char *comm) {
  return (struct fake){.pid = pid,
                       .ppid = 1,
                       .comm = comm,
                       .starttime = 100 + pid,
                       .start_stack = 0x7ff000000000 + pid * 0x100000UL,
                       .size = 10000,
                       .private_kb = 6144,
                       .shared_kb = 2048};
}

static void put(struct world *w, struct fake f) { proctree_put(&w->tree, &f); }

static void group(struct world *w, const char *name) {
  world_group(w, name, "Comm", name, NULL, NULL);
}

static double kb(const struct world *w, const char *metric) {
  return world_value(w, "g", metric) / 1024;
}

static unsigned reads(const struct world *w) {
  return (unsigned)collector_counts(w->collector)->rollup_reads;
}

WORLD_TEST(idle_process_is_read_once) {
  put(w, process(10, "g"));
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 1);
  assert_true(world_value(w, "g", "coverage") == 100);
  for (int i = 1; i < 10; i++) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(reads(w), 0);
    assert_true(kb(w, "pss") == 6144 + 1024);
    assert_true(kb(w, "uss") == 6144);
    assert_true(kb(w, "rss") == 8192);
    assert_true(world_value(w, "g", "coverage") == 0);
    assert_int_equal((int)(world_value(w, "g", "age") + 0.5), i);
  }
}

WORLD_TEST(private_growth_is_followed_exactly_without_reading) {
  struct fake f = process(10, "g");

  put(w, f);
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  for (int i = 0; i < 5; i++) {
    f.private_kb += 4096;
    put(w, f);
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(reads(w), 0);
    assert_true(kb(w, "pss") == f.private_kb + 1024);
    assert_true(kb(w, "uss") == f.private_kb);
    assert_true(kb(w, "rss") == f.private_kb + 2048);
    assert_true(kb(w, "shared") == 2048);
  }
}

WORLD_TEST(change_of_shared_memory_is_read) {
  struct fake f = process(10, "g");

  put(w, f);
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  f.shared_kb = 8192;
  f.pss_kb = f.private_kb + 100;
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 1);
  assert_true(kb(w, "pss") == f.pss_kb);
}

WORLD_TEST(reading_is_renewed_after_max_age) {
  unsigned n = 0;

  w->settings.policy.max_age_ns = 20 * NS_PER_S;
  put(w, process(10, "g"));
  group(w, "g");
  for (int i = 0; i < 101; i++) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_true(world_value(w, "g", "age") <= 20);
    n += reads(w);
  }
  assert_in_range(n, 5, 7);
}

WORLD_TEST(exec_is_read_at_once) {
  struct fake f = process(10, "g");

  put(w, f);
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  f.start_stack += 0x4000;
  f.size = 5000;
  f.private_kb = 1000;
  f.shared_kb = 40;
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 1);
  assert_true(kb(w, "pss") == 1020);
}

/* The parent shares all at first, with no sign of it in its own files. */
WORLD_TEST(fork_has_the_parent_read_again) {
  struct fake parent = process(10, "g"), child = process(11, "g");

  put(w, parent);
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  child.ppid = 10;
  child.start_stack = parent.start_stack;
  child.private_kb = parent.private_kb = 100;
  child.shared_kb = parent.shared_kb = 8092;
  put(w, parent);
  put(w, child);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 2);
  assert_true(kb(w, "pss") == 2 * (100 + 4046));
}

WORLD_TEST(without_budget_nothing_is_read_and_the_doubt_is_told) {
  w->settings.read_budget_ns = 0;
  put(w, process(10, "g"));
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  assert_int_equal(collector_counts(w->collector)->deferred, 1);
  assert_true(world_value(w, "g", "coverage") == 0);
  assert_true(isnan(world_value(w, "g", "age")));
  assert_true(kb(w, "pss_error") == 8192);
  assert_true(kb(w, "uss") <= kb(w, "pss"));
  assert_true(kb(w, "pss") <= kb(w, "rss"));
  assert_true(kb(w, "rss") == 8192);
  assert_true(kb(w, "resident") == 8192);
}

WORLD_TEST(start_is_spread_over_intervals) {
  unsigned total = 0, most = 0;

  /* Each costs some 30 us, by the first guess and then by experience. */
  w->settings.read_budget_ns = 100000;
  world_walks_take(30000);
  for (uint32_t pid = 1; pid <= 20; pid++)
    put(w, process(pid, "g"));
  group(w, "g");
  for (int i = 0; i < 10; i++) {
    assert_int_equal(world_cycle(w, 1), 0);
    total += reads(w);
    most = reads(w) > most ? reads(w) : most;
    assert_int_equal(world_members(w, "g"), 20);
    /* Those that were not read yet are taken to be like those that were. */
    assert_true(kb(w, "pss") == 20 * 7168);
    assert_true(kb(w, "rss") == 20 * 8192);
  }
  assert_int_equal(total, 20);
  assert_true(most < 10);
  assert_int_equal(collector_counts(w->collector)->deferred, 0);
}

/* Of 2 GiB each, which is 6 ms by the first guess and then by experience: seven
 * of them in the 50 ms of an interval, from the first one on. */
WORLD_TEST(start_among_large_processes_costs_no_more) {
  enum { N = 40 };
  unsigned total = 0;

  for (uint32_t pid = 1; pid <= N; pid++) {
    struct fake f = process(pid, "g");

    f.private_kb = 2 << 20;
    f.size = 600000;
    put(w, f);
  }
  group(w, "g");
  world_walks_take(6300000);
  for (int i = 0; i < 6; i++) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_in_range(reads(w), i < 5 ? 7 : 5, 7);
    total += reads(w);
    assert_in_range(collector_counts(w->collector)->deferred, N - total,
                    total < N ? N : 0);
    assert_true(kb(w, "rss") == N * (2097152. + 2048));
  }
  assert_int_equal(total, N);
}

/* 8 MiB, but page tables for 10 GiB: to walk them takes milliseconds. */
WORLD_TEST(scattered_memory_is_not_read_where_that_would_stall) {
  static const char status[] = "Uid:\t0\t0\t0\t0\nVmPTE:\t   20480 kB\n"
                               "VmSwap:\t       0 kB\nThreads:\t1\n";
  struct fake f = process(10, "g");

  f.size = 2621440;
  put(w, f);
  w->settings.policy.max_lock_hold_ns = 2 * NS_PER_MS;
  group(w, "g");
  group(w, "h");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 1);
  f.pid = 11;
  f.comm = "h";
  put(w, f);
  proctree_write(&w->tree, "11/status", status, sizeof(status) - 1);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  assert_int_equal(collector_counts(w->collector)->deferred, 1);
}

/* By its size it costs more than the whole budget, and of the others, which
 * cost next to nothing, all are due in each interval. */
WORLD_TEST(large_one_is_read_among_many_small_ones) {
  struct fake f = process(10, "g");

  for (uint32_t pid = 100; pid < 200; pid++)
    put(w, process(pid, "small"));
  group(w, "g");
  group(w, "small");
  world_walks_take(10000);
  f.private_kb = 512;
  f.shared_kb = 0;
  put(w, f);
  assert_int_equal(world_cycle(w, 60), 0);
  f.private_kb *= 6000;
  f.size = 800000;
  put(w, f);
  for (int i = 0; i < 100; i++) {
    assert_int_equal(world_cycle(w, 60), 0);
    assert_true(world_value(w, "small", "age") <= 60 + 2 * 60);
    if (world_value(w, "g", "age") > 60 + 2 * 60)
      fail_msg("it was not read for %.0f s", world_value(w, "g", "age"));
    if (world_value(w, "g", "coverage") < 100)
      continue;
    /* That was cheap, so it has to grow to be dear again. */
    f.private_kb = f.private_kb > 512 ? 512 : 512 * 6000;
    put(w, f);
  }
}

WORLD_TEST(refresh_always_reads_in_each_interval) {
  w->settings.read_budget_ns = 0;
  put(w, process(10, "g"));
  put(w, process(11, "other"));
  world_group(w, "g", "Comm", "g", NULL, NULL)->policy.refresh = REFRESH_ALWAYS;
  group(w, "other");
  for (int i = 0; i < 3; i++) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(reads(w), 1);
    assert_true(world_value(w, "g", "coverage") == 100);
  }
}

WORLD_TEST(refresh_never_leaves_rollup_values_unknown) {
  w->settings.policy.refresh = REFRESH_NEVER;
  put(w, process(10, "g"));
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  assert_true(isnan(kb(w, "pss")));
  assert_true(isnan(world_value(w, "g", "age")));
  assert_true(kb(w, "resident") == 8192);
  assert_true(world_value(w, "g", "unreadable") == 0);
}

WORLD_TEST(process_in_two_groups_is_read_as_the_stricter_wants) {
  struct rule *view = world_group(w, "view", "Comm", "g", NULL, NULL);

  view->is_view = true;
  view->policy.refresh = REFRESH_NEVER;
  world_group(w, "g", "Comm", "g", NULL, NULL)->policy.refresh = REFRESH_ALWAYS;
  put(w, process(10, "g"));
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 1);
  assert_true(world_value(w, "view", "pss") == world_value(w, "g", "pss"));
}

/* Of a view of 4 GiB, in which its doubt would not be worth a reading. */
WORLD_TEST(member_of_a_view_is_held_to_its_own_group_too) {
  struct fake f = process(10, "g"), bulk = process(11, "bulk");

  world_group(w, "view", "Comm", "*", NULL, NULL)->is_view = true;
  group(w, "g");
  group(w, "bulk");
  bulk.private_kb = 4000000;
  bulk.size = 1100000;
  put(w, bulk);
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  f.shared_kb = 8192;
  f.pss_kb = f.private_kb + 100;
  put(w, f);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 1);
  assert_true(kb(w, "pss") == f.pss_kb);
}

WORLD_TEST(walk_that_would_stall_too_long_is_not_made) {
  w->settings.policy.max_lock_hold_ns = 25000; /* the first guess is 30 us */
  put(w, process(10, "g"));
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  assert_int_equal(collector_counts(w->collector)->deferred, 1);
  assert_int_equal(collector_diag(w->collector, DIAG_TOO_LARGE)->pid, 10);
  assert_true(kb(w, "pss_error") > 0);
}

WORLD_TEST(max_lock_hold_holds_where_every_member_is_read_too) {
  w->settings.policy.refresh = REFRESH_ALWAYS;
  put(w, process(10, "g"));
  put(w, process(11, "h"));
  world_group(w, "g", "Comm", "g", NULL, NULL)->policy.max_lock_hold_ns = 25000;
  group(w, "h");
  for (int i = 0; i < 3; i++) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(reads(w), 1);
    assert_int_equal(collector_counts(w->collector)->deferred, 1);
    assert_true(kb(w, "rss") == 8192);
    assert_true(kb(w, "pss_error") == 8192);
    assert_true(world_value(w, "h", "coverage") == 100);
  }
}

/* The last reading stands, statm is followed from there, and what cannot be
 * asked for is in doubt. */
WORLD_TEST(process_whose_rollup_hangs_is_followed_by_statm) {
  struct fake f = process(10, "g");
  double error = 0;

  w->settings.read_timeout_ns = 100 * NS_PER_MS;
  put(w, f);
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  f.shared_kb = 8192; /* which is a reason to read it again */
  put(w, f);
  proctree_hang(&w->tree, "10/smaps_rollup");
  for (int i = 0; i < 4; i++) {
    char statm[64];

    f.private_kb += 4096;
    snprintf(statm, sizeof(statm), "10000 %u %u 0 0 0 0\n",
             (f.private_kb + f.shared_kb) / 4, f.shared_kb / 4);
    proctree_write(&w->tree, "10/statm", statm, strlen(statm));
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(reads(w), 0);
    assert_int_equal(collector_counts(w->collector)->hung, 1);
    assert_true(kb(w, "uss") == f.private_kb);
    assert_true(kb(w, "rss") == f.private_kb + f.shared_kb);
    assert_true(world_value(w, "g", "unreadable") == 0);
    assert_int_equal((int)(world_value(w, "g", "age") + 0.5), i + 1);
    assert_true(kb(w, "pss_error") >= 2048 && kb(w, "pss_error") >= error);
    error = kb(w, "pss_error");
  }
  proctree_wake(&w->tree, "10/smaps_rollup");
  put(w, f);
  do
    assert_int_equal(world_cycle(w, 1), 0);
  while (reads(w) == 0);
  assert_true(kb(w, "pss") == f.private_kb + 4096);
}

/* 64 MiB of it a file that n processes map, and 1 MiB of its own. */
static struct fake mapper(uint32_t pid, const char *comm, unsigned n) {
  struct fake f = process(pid, comm);

  f.private_kb = 1024;
  f.shared_kb = 65536;
  f.pss_kb = 1024 + 65536 / n;
  f.size = 20000;
  return f;
}

/* No fork relates them; statm of those that were there says nothing. */
WORLD_TEST(one_that_maps_what_others_map_has_them_read_again) {
  for (uint32_t pid = 10; pid < 12; pid++)
    put(w, mapper(pid, "g", 2));
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  for (uint32_t pid = 10; pid < 13; pid++)
    put(w, mapper(pid, "g", 3));
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 3);
  assert_in_range((int)kb(w, "pss"), 3 * 1024 + 65533, 3 * 1024 + 65536);
  proctree_end(&w->tree, 12);
  for (uint32_t pid = 10; pid < 12; pid++)
    put(w, mapper(pid, "g", 2));
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 2);
  assert_true(kb(w, "pss") == 2 * 1024 + 65536);
}

/* Time for one reading only: the others are followed, and in doubt. */
/* What the readings of the others teach is of those that were not read. */
WORLD_TEST(what_is_read_with_others_stays_as_it_was_read) {
  struct fake f;

  group(w, "g");
  for (uint32_t pid = 10; pid < 13; pid++)
    put(w, process(pid, "g"));
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  for (uint32_t pid = 10; pid < 13; pid++) {
    f = process(pid, "g");
    f.shared_kb = 40960;
    f.pss_kb = f.private_kb + 40960 / 3;
    put(w, f);
  }
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 3);
  assert_true(kb(w, "pss") == 3 * f.pss_kb);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  assert_true(fabs(kb(w, "pss") - 3 * f.pss_kb) < 8);
}

WORLD_TEST(sharers_that_are_not_read_pay_by_how_many_they_are) {
  w->settings.read_budget_ns = 1;
  for (uint32_t pid = 10; pid < 14; pid++)
    put(w, mapper(pid, "g", 4));
  group(w, "g");
  for (int i = 0; i < 4; i++)
    assert_int_equal(world_cycle(w, 1), 0);
  for (uint32_t pid = 14; pid < 18; pid++)
    put(w, mapper(pid, "g", 8));
  for (uint32_t pid = 10; pid < 14; pid++)
    put(w, mapper(pid, "g", 8));
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 1);
  assert_in_range((int)kb(w, "pss"), 72000, 76000); /* in truth 73728 */
  assert_true(kb(w, "pss_error") > 65536);
}

/* A master in one group, its workers in another. */
WORLD_TEST(set_of_relatives_goes_across_two_groups) {
  struct fake master = mapper(10, "master", 2), worker;

  put(w, master);
  worker = mapper(11, "worker", 2);
  worker.ppid = 10;
  worker.start_stack = master.start_stack;
  put(w, worker);
  group(w, "master");
  group(w, "worker");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  master.pss_kb = worker.pss_kb = 1024 + 65536 / 3;
  put(w, master);
  put(w, worker);
  worker.pid = 12;
  put(w, worker);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 3);
  assert_int_equal((int)world_value(w, "master", "pss") / 1024, 22869);
  assert_int_equal((int)world_value(w, "worker", "pss") / 1024, 2 * 22869);
}

WORLD_TEST(one_reading_that_was_interrupted_is_not_the_measure_of_the_next) {
  w->settings.policy.max_lock_hold_ns = 100000;
  w->settings.policy.max_age_ns = 2 * NS_PER_S;
  put(w, process(10, "g"));
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 5), 0);
  world_walks_take(10 * NS_PER_S);
  assert_int_equal(world_cycle(w, 5), 0);
  assert_int_equal(reads(w), 1);
  world_walks_take(0);
  assert_int_equal(world_cycle(w, 5), 0);
  assert_int_equal(reads(w), 1);
}

WORLD_TEST(memory_that_goes_to_swap_is_followed) {
  static const char meminfo[] = "MemTotal: 1048576 kB\nSwapTotal: 1000000 kB\n"
                                "SwapFree: 500000 kB\n";
  static const char status[] = "Uid:\t0\t0\t0\t0\nVmSwap:\t    4096 kB\n";
  struct fake f = process(10, "g");

  proctree_write(&w->tree, "meminfo", meminfo, strlen(meminfo));
  put(w, f);
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_true(kb(w, "swap") == 0);
  f.private_kb -= 4096;
  put(w, f);
  proctree_write(&w->tree, "10/status", status, strlen(status));
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  assert_true(kb(w, "swap") == 4096);
  assert_true(kb(w, "uss") == 2048);
}

WORLD_TEST(process_whose_main_thread_is_dead_is_estimated_too) {
  struct fake leader = process(10, "g"), live = process(12, "t");

  leader.state = 'Z';
  leader.threads = live.threads = 2;
  leader.size = 0;
  put(w, leader);
  proctree_put_thread(&w->tree, 10, &live);
  group(w, "g");
  for (int i = 0; i < 3; i++) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(reads(w), i == 0);
    assert_true(kb(w, "pss") == 7168);
    assert_true(kb(w, "rss") == 8192);
  }
}

/* --- faults on what is shared by copy on write ----------------------------
 */

#define TIMEOUT_NS (100 * NS_PER_MS)

static unsigned count_hung(const struct world *w) {
  return (unsigned)collector_counts(w->collector)->hung;
}

/* Of 8 MiB, of which 2 MiB are shared by copy on write: in Pss it is short of
 * just as much as makes its faults worth asking for. */
static struct fake sharer(uint32_t pid, const char *comm) {
  struct fake f = process(pid, comm);

  f.cow_kb = f.shared_kb;
  f.faults = 5000;
  return f;
}

/* As many pages as it shares, without any other sign. */
static void put_faulted(struct world *w, struct fake f) {
  f.faults += 512;
  put(w, f);
}

WORLD_TEST(faults_have_it_read_where_they_can_break_something) {
  struct fake little = sharer(11, "g");

  little.cow_kb = 508; /* of which another process pays half */
  put(w, sharer(10, "g"));
  put(w, little);
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  put_faulted(w, little);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  put_faulted(w, sharer(10, "g"));
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 1);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
}

/* In a group each, none of which would bear with a little doubt. */
WORLD_TEST(more_of_them_than_fit_one_batch_are_asked) {
  enum { N = 2 * JOBS_AT_ONCE + 6 };
  struct fake fakes[N];
  char comms[N][16];

  for (uint32_t i = 0; i < N; i++) {
    snprintf(comms[i], sizeof(comms[i]), "g%u", i);
    fakes[i] = sharer(10 + i, comms[i]);
    put(w, fakes[i]);
  }
  world_group(w, "%{comm}", "Comm", "g*", NULL, NULL);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  for (uint32_t i = 0; i < N; i++)
    put_faulted(w, fakes[i]);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), N);
}

/* The time for one reading goes to the other group. */
WORLD_TEST(faults_that_cannot_be_had_stay_as_they_were) {
  struct fake other = process(20, "h");

  w->settings.read_budget_ns = 1;
  other.size = 600000;
  other.shared_kb = 1 << 20;
  put(w, sharer(10, "g"));
  put(w, other);
  group(w, "g");
  group(w, "h");
  for (int i = 0; i < 3; i++)
    assert_int_equal(world_cycle(w, 1), 0);
  assert_true(kb(w, "uss") == 6144);
  put_faulted(w, sharer(10, "g"));
  for (int i = 0; i < 3; i++) {
    if (i == 1)
      proctree_write(&w->tree, "10/stat", "nonsense\n", 9);
    else if (i == 2)
      proctree_unlink(&w->tree, "10/stat");
    other.shared_kb /= 2;
    put(w, other);
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(reads(w), 1);
    assert_true(world_value(w, "g", "coverage") == 0);
    assert_true(kb(w, "uss") == 8192);
    assert_true(kb(w, "pss_error") >= 2 * 2048);
  }
}

/* Not before it has come out of quarantine; meanwhile it may have broken all
 * that it shares. Others are asked in the same cycle. */
WORLD_TEST(faults_of_one_whose_stat_hangs_are_not_asked_for_and_in_doubt) {
  struct fake f = sharer(10, "g");

  w->settings.read_timeout_ns = TIMEOUT_NS;
  put(w, f);
  put(w, sharer(11, "h"));
  group(w, "g");
  group(w, "h");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  assert_true(kb(w, "pss_error") < 100);
  proctree_hang(&w->tree, "10/stat");
  put_faulted(w, sharer(11, "h"));
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(count_hung(w), 1);
  assert_int_equal(reads(w), 1);
  proctree_wake(&w->tree, "10/stat");
  put_faulted(w, f);
  for (int i = 0; i < 100; i++) {
    assert_true(kb(w, "pss_error") >= 2 * 1024);
    assert_true(kb(w, "pss_error") < 2 * 1024 + 100);
    sched_yield();
    assert_int_equal(world_cycle(w, 0), 0);
    assert_int_equal(count_hung(w), 1);
    assert_int_equal(reads(w), 0);
  }
  do
    assert_int_equal(world_cycle(w, 1), 0);
  while (reads(w) == 0);
  assert_true(world_value(w, "g", "coverage") == 100);
}

WORLD_TEST(one_that_hung_before_it_was_read_is_all_in_doubt) {
  w->settings.read_timeout_ns = TIMEOUT_NS;
  put(w, process(10, "g"));
  group(w, "g");
  proctree_hang(&w->tree, "10/smaps_rollup");
  for (int i = 0; i < 3; i++) {
    assert_int_equal(world_cycle(w, 0), 0);
    assert_int_equal(count_hung(w), 1);
    assert_int_equal(reads(w), 0);
    assert_true(kb(w, "rss") == 8192);
    assert_true(kb(w, "pss_error") == 8192);
  }
  proctree_wake(&w->tree, "10/smaps_rollup");
}

/* --- whose memory is whose -------------------------------------------------
 */

/* In vfork: it waits, and its child runs in its memory. */
static struct fake waiting(uint32_t pid, const char *comm) {
  struct fake f = process(pid, comm);

  f.state = 'D';
  return f;
}

static struct fake child_of(const struct fake *parent, uint32_t pid) {
  struct fake child = *parent;

  child.pid = pid;
  child.ppid = parent->pid;
  child.starttime = 1000 + pid;
  child.state = 'S';
  return child;
}

WORLD_TEST(who_shows_other_numbers_has_memory_of_his_own) {
  struct fake parent = waiting(10, "java"), children[6];
  static const char *const names[] = {"same",     "comm",   "size",
                                      "resident", "shared", "data"};

  parent.exe = "/parent";
  parent.data = 500;
  put(w, parent);
  for (uint32_t i = 0; i < 6; i++)
    children[i] = child_of(&parent, 11 + i);
  children[1].comm = "sh";
  children[2].size++;
  children[3].private_kb += 4;
  children[4].private_kb -= 4;
  children[4].shared_kb += 4;
  children[5].data++;
  for (uint32_t i = 0; i < 6; i++) {
    char exe[16];

    snprintf(exe, sizeof(exe), "/%s", names[i]);
    children[i].exe = exe;
    put(w, children[i]);
  }
  world_group(w, "%{exe}", "Executable", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 6);
  for (int i = 0; i < 6; i++) {
    bool has_own = world_value(w, names[i], "resident") > 0;

    assert_int_equal(world_members(w, names[i]), 1);
    if (has_own != (i > 0))
      fail_msg("%s: is %scounted", names[i], has_own ? "" : "not ");
  }
}

WORLD_TEST(more_children_in_vfork_than_fit_one_batch_are_asked) {
  enum { N = 2 * JOBS_AT_ONCE + 6 };
  struct fake parent = waiting(10, "g");

  put(w, parent);
  for (uint32_t i = 0; i < N; i++)
    put(w, child_of(&parent, 11 + i));
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_true(kb(w, "rss") == 8192);
  assert_true(kb(w, "resident") == 8192);
  assert_int_equal(world_members(w, "g"), N + 1);
}

/* The second child is to be asked for after the first one has hung, and there
 * is no thread to do it. */
WORLD_TEST(where_it_cannot_be_asked_whose_it_is_it_is_as_it_was) {
  struct fake hung = waiting(10, "g"), other = waiting(20, "g");

  w->settings.read_timeout_ns = TIMEOUT_NS;
  put(w, hung);
  put(w, child_of(&hung, 11));
  put(w, other);
  put(w, child_of(&other, 21));
  group(w, "g");
  for (int i = 0; i < 2; i++) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_true(kb(w, "rss") == 2 * 8192);
  }
  proctree_hang(&w->tree, "10/stat");
  threads_fail = EAGAIN;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(world_cycle(w, 0), 0);
    assert_int_equal(count_hung(w), 1);
    assert_true(kb(w, "rss") == 2 * 8192);
    assert_int_equal(world_members(w, "g"), 4);
  }
  threads_fail = 0;
  proctree_wake(&w->tree, "10/stat");
}

/* Makes the tree one of our own pid namespace, in which the kernel can be asked
 * who shares memory. */
static void make_own(struct world *w) {
  char path[128], target[16];

  snprintf(path, sizeof(path), "%s/self", w->tree.root);
  snprintf(target, sizeof(target), "%d", (int)getpid());
  assert_int_equal(symlink(target, path), 0);
}

/* A parent with 40 forked children: each pair is worth asking about. Where
 * addresses are hidden an exec does not tell them apart. */
static void put_forked(struct world *w) {
  struct fake parent = process(10, "g");

  parent.start_stack = 0;
  put(w, parent);
  for (uint32_t i = 0; i < 40; i++) {
    struct fake child = child_of(&parent, 11 + i);

    child.private_kb += 4;
    put(w, child);
  }
}

/* It would be 40 lines in the audit log, each time. */
WORLD_TEST(who_is_refused_an_answer_is_asked_about_once_an_hour) {
  static const int errors[] = {EPERM, EACCES, ENOSYS};
  unsigned asked = 0;

  w->settings.policy.refresh = REFRESH_ALWAYS;
  make_own(w);
  put_forked(w);
  group(w, "g");
  for (size_t i = 0; i < 3; i++) {
    kcmp_error = errors[i];
    assert_int_equal(world_cycle(w, 3600), 0);
    asked += 40;
    for (int j = 0; j < 10; j++) {
      assert_int_equal(kcmp_calls, asked);
      assert_true(kb(w, "resident") == 41 * 8192 + 40 * 4);
      assert_int_equal(world_cycle(w, 10), 0);
    }
  }
  kcmp_error = 0;
  assert_int_equal(world_cycle(w, 3600), 0);
  assert_int_equal(kcmp_calls, asked + 40);
  assert_true(kb(w, "resident") == 8192);
  assert_int_equal(world_members(w, "g"), 41);
}

/* Meanwhile what it looks like is an answer. */
WORLD_TEST(child_in_vfork_is_counted_once_where_the_kernel_does_not_tell) {
  struct fake parent = process(10, "g");

  w->settings.policy.refresh = REFRESH_ALWAYS;
  make_own(w);
  put(w, parent);
  put(w, child_of(&parent, 11));
  group(w, "g");
  for (int i = 0; i < 4; i++) {
    parent.state = i % 2 ? 'D' : 'S';
    put(w, parent);
    assert_int_equal(world_cycle(w, 1), 0);
    assert_true(kb(w, "rss") == (i % 2 ? 1 : 2) * 8192);
  }
  assert_int_equal(kcmp_calls, 1);
}

/* Another program may be another's to ask about; so may another process. */
WORLD_TEST(after_an_exec_the_kernel_is_asked_again) {
  struct fake parent = process(10, "g"), child;

  make_own(w);
  parent.start_stack = 0;
  put(w, parent);
  child = child_of(&parent, 11);
  child.private_kb += 4;
  put(w, child);
  world_group(w, "g", "Comm", "g*", NULL, NULL);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(kcmp_calls, 1);
  child.comm = "g2";
  child.size++;
  put(w, child);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(kcmp_calls, 2);
  child.starttime++;
  child.size++;
  put(w, child);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(kcmp_calls, 3);
}

/* Two cycles with a child in vfork, of which the second knows that. */
static void start_vfork(struct world *w, const struct fake *parent) {
  w->settings.policy.refresh = REFRESH_ALWAYS;
  w->settings.read_timeout_ns = TIMEOUT_NS;
  put(w, *parent);
  put(w, child_of(parent, 11));
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
}

/* Its memory is its own now, and is not read before its time. */
WORLD_TEST(orphan_that_is_in_quarantine_is_guessed) {
  struct fake parent = waiting(10, "g");

  start_vfork(w, &parent);
  proctree_hang(&w->tree, "10/stat");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(count_hung(w), 1);
  proctree_wake(&w->tree, "10/stat");
  put(w, parent);
  for (int i = 0; i < 100; i++) {
    sched_yield();
    assert_int_equal(world_cycle(w, 0), 0);
    assert_int_equal(count_hung(w), 1);
    assert_true(kb(w, "rss") == 8192);
  }
  proctree_unlink(&w->tree, "10/smaps_rollup"); /* as if it had ended */
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "g"), 1);
  assert_int_equal(reads(w), 0);
  assert_true(kb(w, "rss") == 8192);
  assert_true(kb(w, "pss_error") == 8192);
}

WORLD_TEST(orphan_that_is_too_large_is_guessed) {
  struct fake parent = waiting(10, "g"), child;

  w->settings.policy.refresh = REFRESH_ALWAYS;
  parent.exe = "/parent";
  put(w, parent);
  child = child_of(&parent, 11);
  child.exe = "/g";
  put(w, child);
  world_group(w, "parent", "Executable", "/parent", NULL, NULL);
  world_group(w, "g", "Executable", "/g", NULL, NULL)->policy.max_lock_hold_ns =
      25000; /* the first guess is 30 us */
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 1);
  assert_int_equal(collector_counts(w->collector)->deferred, 0);
  proctree_unlink(&w->tree, "10/smaps_rollup");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  assert_int_equal(collector_counts(w->collector)->deferred, 1);
  assert_int_equal(collector_diag(w->collector, DIAG_TOO_LARGE)->pid, 11);
  assert_true(kb(w, "rss") == 8192);
  assert_true(kb(w, "pss_error") == 8192);
}

/* It does not wait any more, but that cannot be asked now. */
WORLD_TEST(child_of_one_in_quarantine_is_as_it_was) {
  struct fake parent = waiting(10, "g");

  start_vfork(w, &parent);
  proctree_hang(&w->tree, "10/smaps_rollup");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(count_hung(w), 1);
  proctree_rename(&w->tree, "10/smaps_rollup", "fifo");
  parent.state = 'S';
  put(w, parent);
  proctree_wake(&w->tree, "fifo");
  for (int i = 0; i < 100; i++) {
    sched_yield();
    assert_int_equal(world_cycle(w, 0), 0);
    assert_int_equal(count_hung(w), 1);
    assert_true(kb(w, "rss") == 8192);
  }
  do
    assert_int_equal(world_cycle(w, 1), 0);
  while (count_hung(w) > 0);
  assert_true(kb(w, "rss") == 2 * 8192);
}

/* --- what it costs ---------------------------------------------------------
 */

/* Its page tables are not known then. */
WORLD_TEST(without_status_a_walk_is_guessed_by_what_is_resident) {
  static const char *const texts[] = {NULL, "VmPTE:\tmany kB\n"};
  static const char *const names[] = {"g", "h"};

  w->settings.policy.max_lock_hold_ns = 2 * NS_PER_MS;
  group(w, "g");
  group(w, "h");
  for (uint32_t i = 0; i < 2; i++) {
    struct fake f = process(10 + i, names[i]);
    char path[32];

    f.size = 2621440;
    put(w, f);
    snprintf(path, sizeof(path), "%u/status", f.pid);
    proctree_unlink(&w->tree, path);
    if (texts[i])
      proctree_write(&w->tree, path, texts[i], strlen(texts[i]));
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(reads(w), 1);
    assert_int_equal(collector_counts(w->collector)->deferred, 0);
  }
}

/* --- what is too slow to be read, for now ----------------------------------
 */

static unsigned put_off(const struct world *w) {
  return (unsigned)collector_counts(w->collector)->deferred;
}

/* Reads it, once in each MaxAge, until its price is what each walk takes. */
static void learn_walk(struct world *w, uint64_t walk_ns) {
  world_walks_take(walk_ns);
  for (int i = 0; i < 12; i++)
    assert_int_equal(world_cycle(w, 60), 0);
}

WORLD_TEST(one_slow_reading_costs_no_more_than_max_age) {
  int waited = 0;

  put(w, process(10, "g"));
  group(w, "g");
  learn_walk(w, 60 * NS_PER_MS);
  assert_int_equal(reads(w), 1);
  world_walks_take(500 * NS_PER_MS);
  assert_int_equal(world_cycle(w, 60), 0);
  assert_int_equal(reads(w), 1);
  world_walks_take(60 * NS_PER_MS);
  do {
    assert_int_equal(world_cycle(w, 10), 0);
    waited += 10;
    assert_true(waited <= 70);
  } while (reads(w) == 0);
  for (int i = 0; i < 10; i++) {
    assert_int_equal(world_cycle(w, 60), 0);
    assert_int_equal(reads(w), 1);
    assert_int_equal(put_off(w), 0);
  }
}

/* On a busy machine a reading waits; the process is held up for longer, which
 * is told, but to read it costs no more. */
WORLD_TEST(waiting_for_the_processor_is_no_price) {
  put(w, process(10, "g"));
  group(w, "g");
  learn_walk(w, NS_PER_MS);
  world_walks_wait(900 * NS_PER_MS);
  for (int i = 0; i < 100; i++) {
    assert_int_equal(world_cycle(w, 60), 0);
    assert_int_equal(reads(w), 1);
    assert_true(collector_counts(w->collector)->longest_read_ns >=
                900 * NS_PER_MS);
    assert_int_equal(put_off(w), 0);
  }
}

/* Whatever it calls itself, it takes as long to read. */
WORLD_TEST(one_that_renames_itself_keeps_its_price) {
  struct fake f = process(10, "g");
  unsigned n = 0;

  put(w, f);
  world_group(w, "g", "Comm", "*", NULL, NULL);
  world_walks_take(400 * NS_PER_MS);
  for (int i = 0; i < 100; i++) {
    f.comm = i % 2 ? "g" : "h";
    put(w, f);
    assert_int_equal(world_cycle(w, 10), 0);
    n += reads(w);
  }
  /* Each reading doubles the prediction at most, from 30 us on. */
  assert_in_range(n, 1, 20);
}

/* A large one that has given its memory back is cheap to read. */
WORLD_TEST(what_has_shrunk_is_read_again) {
  struct fake f = process(10, "g");

  f.private_kb = 2 << 20;
  put(w, f);
  group(w, "g");
  learn_walk(w, 200 * NS_PER_MS);
  assert_int_equal(world_cycle(w, 10), 0);
  assert_int_equal(reads(w), 0);
  f.private_kb = 4096;
  f.shared_kb = 1024;
  f.pss_kb = 4096 + 300;
  put(w, f);
  world_walks_take(NS_PER_MS);
  assert_int_equal(world_cycle(w, 10), 0);
  assert_int_equal(reads(w), 1);
  assert_true(kb(w, "pss") == 4096 + 300);
  assert_int_equal(put_off(w), 0);
}

static void put_tables(struct world *w, uint32_t pid, unsigned kb) {
  char path[32], text[128];

  snprintf(path, sizeof(path), "%u/status", pid);
  snprintf(text, sizeof(text),
           "Uid:\t0\t0\t0\t0\nVmPTE:\t%8u kB\nVmSwap:\t       0 kB\n", kb);
  proctree_write(&w->tree, path, text, strlen(text));
}

/* Its page tables went, which is not to be seen in statm. */
WORLD_TEST(what_was_too_large_at_first_sight_is_looked_at_again) {
  struct fake f = process(10, "g");
  unsigned waited = 0;

  w->settings.policy.max_lock_hold_ns = 2 * NS_PER_MS;
  f.size = 2621440;
  put(w, f);
  put_tables(w, 10, 20480);
  group(w, "g");
  for (int i = 0; i < 30; i++) {
    assert_int_equal(world_cycle(w, 10), 0);
    assert_int_equal(reads(w), 0);
    assert_int_equal(put_off(w), 1);
  }
  put_tables(w, 10, 64);
  do {
    assert_int_equal(world_cycle(w, 10), 0);
    waited += 10;
    assert_true(waited <= 70);
  } while (reads(w) == 0);
  assert_true(kb(w, "pss") == 7168);
}

/* A day, at 10 seconds. */
WORLD_TEST(what_is_slow_for_good_is_disturbed_once_an_hour) {
  struct fake f = process(10, "g");
  unsigned first = 0, n = 0;

  f.private_kb = 2 << 20;
  put(w, f);
  group(w, "g");
  world_walks_take(200 * NS_PER_MS);
  for (int i = 0; i < 8640; i++) {
    assert_int_equal(world_cycle(w, 10), 0);
    n += reads(w);
    if (i < 1080) /* three hours */
      first += reads(w);
    assert_true(reads(w) + put_off(w) > 0 || world_value(w, "g", "age") < 60);
  }
  assert_in_range(first, 5, 16);
  assert_in_range(n - first, 20, 21);
  /* Another program is another matter. */
  f.start_stack += 0x4000;
  f.size = 5000;
  put(w, f);
  assert_int_equal(world_cycle(w, 10), 0);
  assert_int_equal(reads(w), 1);
}

/* --- one process, without a collector --------------------------------------
 */

/* A member of 8 MiB, half of it anonymous, that there is no time to read. */
struct single {
  struct diag diags[DIAGS];
  struct reader reader;
  struct quarantine quarantine;
  struct measurer m;
  struct group group;
  struct group *groups[1];
  struct group_table table;
  struct process p, *processes[1];
  struct track track;
};

static void make_single(struct single *s) {
  *s = (struct single){
      .reader = {.page_size = 4096},
      .p = {.pid = 10,
            .state = PROCESS_ALIVE,
            .n_groups = 1,
            .statm = {.size_pages = 9999, .resident_pages = 2048}}};
  s->groups[0] = &s->group;
  s->p.groups = s->groups;
  s->processes[0] = &s->p;
  s->group.policy = &settings_defaults.policy;
  s->p.track = &s->track;
  s->table = (struct group_table){.groups = s->groups, .n = 1};
  measurer_init(&s->m, NULL, &s->reader, &s->quarantine, s->diags);
  s->m.read_budget_ns = 0;
}

static void run_single(struct single *s, uint64_t now_ns) {
  const struct process_table t = {.processes = s->processes, .n = 1, .cap = 1};
  const struct meminfo_sample meminfo = {0};

  assert_int_equal(measurer_run(&s->m, &t, &s->table, &meminfo, now_ns), 0);
}

static struct ksm ksm;

static void read_ksm(struct ksm *ret) { *ret = ksm; }

static void make_single_read(struct single *s) {
  make_single(s);
  run_single(s, 1);
  s->track.baseline = (struct baseline){
      .at_ns = NS_PER_S, .resident_pages = 2048, .relatives = 1};
  s->track.baseline.kib_low[ROLLUP_ANONYMOUS] = 4096;
  s->track.since = SHARING_JUST_READ;
  s->m.read_ksm = read_ksm;
}

TEST(while_pages_are_merged_all_that_is_anonymous_is_in_doubt) {
  struct single s;

  make_single_read(&s);
  ksm = (struct ksm){.run = 1};
  run_single(&s, NS_PER_S);
  assert_true(s.track.expected_error == 0);
  ksm.pages_sharing = 100;
  for (int i = 0; i < 4; i++) {
    run_single(&s, 2 * NS_PER_S);
    assert_true(s.track.expected_error == 4096 * 1024);
  }
  measurer_done(&s.m);
  free(s.group.track);
}

/* Where nothing is merged any more and merged pages are left, one that is taken
 * apart is no reason to read processes that had none. */
TEST(what_had_no_merged_pages_is_trusted_when_some_split) {
  struct single s;

  make_single_read(&s);
  s.track.baseline.known = 1U << ROLLUP_KSM;
  ksm = s.m.ksm = (struct ksm){.run = 0, .pages_sharing = 500};
  for (uint64_t i = 2; i < 10; i++) {
    ksm.pages_sharing--;
    run_single(&s, i * NS_PER_S);
    assert_true(s.track.expected_error == 0);
  }
  s.track.baseline.kib_low[ROLLUP_KSM] = 64;
  ksm.pages_sharing--;
  run_single(&s, 10 * NS_PER_S);
  assert_true(s.track.expected_error == 65536);
  /* It merged until it was stopped: anything may have been merged. */
  ksm.run = 1;
  run_single(&s, 11 * NS_PER_S);
  s.track.baseline.at_ns = 11 * NS_PER_S;
  ksm.run = 0;
  run_single(&s, 12 * NS_PER_S);
  assert_true(s.track.expected_error == 4096 * 1024);
  measurer_done(&s.m);
  free(s.group.track);
}

/* Whatever has been done to run and pages_sharing: a reading from before is not
 * to be trusted, and one from after it is. */
TEST(what_was_read_before_ksm_changed_is_in_doubt) {
  static const struct ksm changes[] = {{2, 1000}, {2, 100}, {2, 0}, {0, 0},
                                       {0, 500},  {0, 499}, {1, 0}};
  struct single s;

  make_single_read(&s);
  ksm = s.m.ksm = (struct ksm){.run = 0};
  for (size_t i = 0; i < LENGTH(changes); i++) {
    uint64_t now_ns = (10 + i) * NS_PER_S;

    run_single(&s, now_ns);
    s.track.baseline.at_ns = now_ns; /* it is read */
    run_single(&s, now_ns);
    assert_true(s.track.expected_error == 0);
    ksm = changes[i];
    run_single(&s, now_ns + 1);
    assert_true(s.track.expected_error == 4096 * 1024);
    run_single(&s, now_ns + 2);
    assert_true(s.track.expected_error == 4096 * 1024);
    s.track.baseline.at_ns = now_ns + 1;
    run_single(&s, now_ns + 3);
    assert_true(s.track.expected_error == 0);
  }
  measurer_done(&s.m);
  free(s.group.track);
}
