/* SPDX-License-Identifier: MIT */
/* Which rollups are read, and when. */
#include "test.h"

#include "measure/measure.h"

#include "measured.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, measured_setup, world_teardown, struct world *w)

WORLD_TEST(idle_process_is_read_once) {
  world_watch(w, measured_member(10, "g"));
  world_run_reading(w, 1, 1);
  world_assert(w, "g", "coverage=100");
  for (int i = 1; i < 10; i++) {
    world_run_reading(w, 1, 0);
    world_assert(w, "g", "pss=7168k uss=6144k rss=8192k coverage=0");
    assert_int_equal((int)(world_value(w, "g", "age") + 0.5), i);
  }
}

/* Another process has left what it shared with this one. The error that is
 * expected of so little memory is not worth a reading, but a reading costs
 * little. */
WORLD_TEST(small_changes_that_nothing_shows_are_read_within_a_minute) {
  for (unsigned seconds = 1; seconds <= 10; seconds += 9) {
    struct fake f = measured_member(10, "g");

    world_stop(w);
    w->settings.interval_ns = seconds * NS_PER_S;
    w->settings.policy.max_age_ns = 600 * NS_PER_S;
    f.private_kb = 8000;
    f.shared_kb = 200;
    f.pss_kb = 8100;
    world_put(w, f);
    if (seconds == 1)
      measured_group(w, "g");
    world_run(w, seconds);
    f.pss_kb = 8200;
    world_put(w, f);
    world_run_times(w, seconds == 1 ? 60 : 3, seconds);
    world_assert(w, "g", "pss=8200k");
  }
}

/* A relative has got its part back from swap: nothing of this one changes but
 * SwapPss. */
WORLD_TEST(at_ten_seconds_swap_is_read_soon) {
  struct fake f = measured_member(10, "g");

  w->settings.interval_ns = 10 * NS_PER_S;
  w->settings.policy.max_age_ns = 600 * NS_PER_S;
  f.shared_kb = 0;
  f.swap_kb = 4096;
  f.sharers = 2;
  world_start(w, f);
  world_assert(w, "g", "swap=2048k pss_error=0");
  f.sharers = 1;
  world_put(w, f);
  world_run_times(w, 3, 10);
  world_assert(w, "g", "swap=4096k");
}

/* statm is as inexact as on kernels from 6.2 to 6.16. If a reading finds other
 * values, nothing has to have changed unseen. */
WORLD_TEST(statm_that_is_not_exact_costs_no_reading) {
  enum { HOURS = 2, CYCLES = HOURS * 400 };
  struct fake f = measured_member(10, "g");
  unsigned n = 0;

  world_watch(w, f);
  for (unsigned i = 0; i < CYCLES; i++) {
    unsigned off = i * 7919 % 31; /* pages of anonymous memory */

    proctree_print(&w->tree, 10, "statm", "10000 %u 512 0 0 0 0\n", 2048 + off);
    world_run(w, 9);
    n += measured_reads(w);
  }
  assert_in_range(n, HOURS * 60, HOURS * 60 * 3 / 2); /* by age */
}

/* Twenty that take 30 ms each, once a minute: 1 % of a CPU. */
static void put_dear(struct world *w, double percent) {
  w->settings.read_budget_percent = percent;
  world_walks_take(30 * NS_PER_MS);
  for (uint32_t pid = 1; pid <= 20; pid++)
    world_put(w, measured_large(pid, "g", 10));
  measured_group(w, "g");
}

WORLD_TEST(processes_that_wait_longer_than_twice_max_age_are_counted) {
  put_dear(w, 0.25);
  for (int i = 0; i < 6; i++) {
    world_run(w, 10);
    assert_int_equal(world_counts(w)->overdue, 0);
  }
  for (int i = 0; i < 30; i++)
    world_run(w, 10);
  assert_in_range(world_counts(w)->overdue, 1, world_counts(w)->deferred);
  assert_true(world_value(w, "g", "age") > 2 * 60);
}

/* Others, of which all is read in each cycle, need nothing of it. */
WORLD_TEST(budget_that_is_too_small_is_reported_with_one_that_is_enough) {
  put_dear(w, 0.5);
  for (uint32_t pid = 100; pid < 120; pid++)
    world_put(w, measured_member(pid, "always"));
  world_group(w, "always", "Comm", "always", NULL, NULL)->policy.refresh =
      REFRESH_ALWAYS;
  for (int i = 0; i < 20; i++)
    world_run(w, 10);
  assert_true(world_counts(w)->read_budget_wanted > 1.2 &&
              world_counts(w)->read_budget_wanted < 1.4);
}

/* Ten times as dear as they were guessed to be: what they cost is paid. */
WORLD_TEST(first_readings_that_are_dearer_than_guessed_stop_soon) {
  enum { N = 100 };
  uint64_t n = 0;

  world_budget(w, NS_PER_MS);
  world_walks_take(300000);
  for (uint32_t pid = 1; pid <= N; pid++)
    world_put(w, measured_member(pid, "g"));
  measured_group(w, "g");
  world_run(w, 1);
  assert_in_range(measured_reads(w), 1, N / 2);
  for (int i = 0; i < 100; i++) {
    world_run(w, 1);
    assert_in_range(measured_reads(w), 0, 16);
    n += measured_reads(w);
  }
  assert_in_range(n, 150, 333);
}

/* On a busy host each waits many times as long as it takes. */
WORLD_TEST(first_readings_that_wait_for_the_processor_cost_their_work) {
  world_budget(w, NS_PER_MS);
  world_walks_take(50000);
  world_walks_wait(20 * NS_PER_MS);
  for (uint32_t pid = 1; pid <= 100; pid++) {
    struct fake f = measured_member(pid, "g");

    f.private_kb = f.shared_kb = 1000;
    world_put(w, f);
  }
  measured_group(w, "g");
  world_run_times(w, 5, 1);
  assert_int_equal(world_counts(w)->deferred, 0);
}

/* The meminfo of a captured tree can be of another moment, or another host. */
WORLD_TEST(guesses_are_not_limited_by_the_meminfo_of_a_tree) {
  proctree_print(&w->tree, 0, "meminfo",
                 "MemTotal: 8192 kB\nAnonPages: 1 kB\nMapped: 1 kB\n");
  world_put(w, measured_member(10, "g"));
  world_put(w, measured_member(11, "g"));
  world_budget_for_one(w);
  measured_group(w, "g");
  world_run_reading(w, 1, 1);
  world_assert(w, "g", "pss=14336k pss_error=7168k");
}

WORLD_TEST(refresh_never_leaves_rollup_values_unknown) {
  w->settings.policy.refresh = REFRESH_NEVER;
  world_watch(w, measured_member(10, "g"));
  world_run_reading(w, 1, 0);
  world_assert(w, "g", "pss=nan age=nan resident=8192k unreadable=0");
}

/* --- faults on what is shared by copy on write --- */

WORLD_TEST(process_is_read_for_faults_that_can_break_sharing) {
  struct fake little = measured_sharer(11, "g");

  world_walks_take(50000); /* so that following is worth it */
  little.cow_kb = 508;     /* of which another process pays half */
  world_put(w, measured_sharer(10, "g"));
  world_put(w, little);
  measured_group(w, "g");
  world_run(w, 1);
  world_run_reading(w, 1, 1); /* as nobody is known who shares as much */
  world_run_reading(w, 1, 0);
  measured_put_faulted(w, little);
  world_run_reading(w, 1, 0);
  measured_put_faulted(w, measured_sharer(10, "g"));
  world_run_reading(w, 1, 1);
  world_run_reading(w, 1, 0);
}
