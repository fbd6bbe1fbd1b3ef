/* Which rollups are read, and what stands in for the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

static int make(void **state) {
  static struct world w;

  world_make(&w);
  w.settings.policy.refresh = REFRESH_ADAPTIVE;
  *state = &w;
  return 0;
}

static int unmake(void **state) {
  world_remove(*state);
  return 0;
}

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

static void idle_process_is_read_once(void **state) {
  struct world *w = *state;

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

static void private_growth_is_followed_exactly_without_reading(void **state) {
  struct world *w = *state;
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

static void change_of_shared_memory_is_read(void **state) {
  struct world *w = *state;
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

static void reading_is_renewed_after_max_age(void **state) {
  struct world *w = *state;
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

static void exec_is_read_at_once(void **state) {
  struct world *w = *state;
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
static void fork_has_the_parent_read_again(void **state) {
  struct world *w = *state;
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

static void without_budget_nothing_is_read_and_the_doubt_is_told(void **state) {
  struct world *w = *state;

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

static void start_is_spread_over_intervals(void **state) {
  struct world *w = *state;
  unsigned total = 0, most = 0;

  /* Each costs some 30 us by the first guess. */
  w->settings.read_budget_ns = 100000;
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

/* Of 2 GiB each, which is 6 ms by the first guess: seven of them in the 50 ms
 * of an interval, from the first one on. */
static void start_among_large_processes_costs_no_more(void **state) {
  enum { N = 40 };
  struct world *w = *state;
  unsigned total = 0;

  for (uint32_t pid = 1; pid <= N; pid++) {
    struct fake f = process(pid, "g");

    f.private_kb = 2 << 20;
    f.size = 600000;
    put(w, f);
  }
  group(w, "g");
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
static void scattered_memory_is_not_read_where_that_would_stall(void **state) {
  static const char status[] = "Uid:\t0\t0\t0\t0\nVmPTE:\t   20480 kB\n"
                               "VmSwap:\t       0 kB\nThreads:\t1\n";
  struct world *w = *state;
  struct fake f = process(10, "g");

  f.size = 2621440;
  put(w, f);
  w->settings.policy.max_stall_ns = 2 * NS_PER_MS;
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

static void refresh_always_reads_in_each_interval(void **state) {
  struct world *w = *state;

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

static void refresh_never_leaves_rollup_values_unknown(void **state) {
  struct world *w = *state;

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

static void process_in_two_groups_is_read_as_the_stricter_wants(void **state) {
  struct world *w = *state;
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

static void walk_that_would_stall_too_long_is_not_made(void **state) {
  struct world *w = *state;

  w->settings.policy.max_stall_ns = 25000; /* the first guess is 30 us */
  put(w, process(10, "g"));
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  assert_int_equal(collector_counts(w->collector)->deferred, 1);
  assert_int_equal(collector_trouble(w->collector, TROUBLE_TOO_LARGE)->pid, 10);
  assert_true(kb(w, "pss_error") > 0);
}

static void max_stall_holds_where_every_member_is_read_too(void **state) {
  struct world *w = *state;

  w->settings.policy.refresh = REFRESH_ALWAYS;
  put(w, process(10, "g"));
  put(w, process(11, "h"));
  world_group(w, "g", "Comm", "g", NULL, NULL)->policy.max_stall_ns = 25000;
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
static void process_whose_rollup_hangs_is_followed_by_statm(void **state) {
  struct world *w = *state;
  struct fake f = process(10, "g");
  double error = 0;

  w->settings.stall_timeout_ns = 100 * NS_PER_MS;
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
    assert_int_equal(collector_counts(w->collector)->stalled, 1);
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
static void one_that_maps_what_others_map_has_them_read_again(void **state) {
  struct world *w = *state;

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
static void what_is_read_with_others_stays_as_it_was_read(void **state) {
  struct world *w = *state;
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

static void sharers_that_are_not_read_pay_by_how_many_they_are(void **state) {
  struct world *w = *state;

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
static void set_of_relatives_goes_across_two_groups(void **state) {
  struct world *w = *state;
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

/* The clock of these tests has every reading take a microsecond, but for one.
 */
static void
one_reading_that_was_interrupted_is_not_the_measure_of_the_next(void **state) {
  struct world *w = *state;

  w->settings.policy.max_stall_ns = 100000;
  w->settings.policy.max_age_ns = 2 * NS_PER_S;
  put(w, process(10, "g"));
  group(w, "g");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 5), 0);
  world_interrupt(10 * NS_PER_S);
  assert_int_equal(world_cycle(w, 5), 0);
  assert_int_equal(reads(w), 1);
  assert_int_equal(world_cycle(w, 5), 0);
  assert_int_equal(reads(w), 1);
}

static void memory_that_goes_to_swap_is_followed(void **state) {
  static const char meminfo[] = "MemTotal: 1048576 kB\nSwapTotal: 1000000 kB\n"
                                "SwapFree: 500000 kB\n";
  static const char status[] = "Uid:\t0\t0\t0\t0\nVmSwap:\t    4096 kB\n";
  struct world *w = *state;
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

static void process_whose_main_thread_is_dead_is_estimated_too(void **state) {
  struct world *w = *state;
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(idle_process_is_read_once),
      TEST(private_growth_is_followed_exactly_without_reading),
      TEST(change_of_shared_memory_is_read),
      TEST(reading_is_renewed_after_max_age),
      TEST(exec_is_read_at_once),
      TEST(fork_has_the_parent_read_again),
      TEST(without_budget_nothing_is_read_and_the_doubt_is_told),
      TEST(start_is_spread_over_intervals),
      TEST(scattered_memory_is_not_read_where_that_would_stall),
      TEST(refresh_always_reads_in_each_interval),
      TEST(refresh_never_leaves_rollup_values_unknown),
      TEST(process_in_two_groups_is_read_as_the_stricter_wants),
      TEST(walk_that_would_stall_too_long_is_not_made),
      TEST(start_among_large_processes_costs_no_more),
      TEST(max_stall_holds_where_every_member_is_read_too),
      TEST(process_whose_rollup_hangs_is_followed_by_statm),
      TEST(process_whose_main_thread_is_dead_is_estimated_too),
      TEST(one_that_maps_what_others_map_has_them_read_again),
      TEST(what_is_read_with_others_stays_as_it_was_read),
      TEST(sharers_that_are_not_read_pay_by_how_many_they_are),
      TEST(set_of_relatives_goes_across_two_groups),
      TEST(one_reading_that_was_interrupted_is_not_the_measure_of_the_next),
      TEST(memory_that_goes_to_swap_is_followed),
  };

  alarm(300); /* what waits in vain fails */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
