/* SPDX-License-Identifier: MIT */
/* Processes whose reading is too dear, or seems so: MaxLockHold, and the price
 * that is learnt of each. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "measured.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, measured_setup, world_teardown, struct world *w)

/* --- held up for too long --- */

WORLD_TEST(walk_that_would_stall_too_long_is_not_made) {
  w->settings.policy.max_lock_hold_ns = 25000; /* the first guess is 30 us */
  world_watch(w, measured_member(10, "g"));
  world_run_reading(w, 1, 0);
  assert_int_equal(world_counts(w)->deferred, 1);
  assert_int_equal(world_diag(w, DIAG_TOO_LARGE)->pid, 10);
  assert_true(world_kb(w, "g", "pss_error") > 0);
}

/* The tree has no pagemap. A limit that nobody has set is longer then. */
WORLD_TEST(process_that_cannot_be_sampled_is_walked_within_a_longer_limit) {
  w->settings.policy.max_lock_hold_ns = 25000;
  w->settings.policy.unsampled_lock_hold_ns = 100000;
  world_watch(w, measured_member(10, "g"));
  world_run_reading(w, 1, 0);
  assert_int_equal(world_counts(w)->deferred, 1);
  assert_int_equal(world_diag(w, DIAG_TOO_LARGE)->count, 0);
  for (int i = 0; i < 3; i++) {
    world_run_reading(w, i == 0 ? 1 : 100, 1);
    world_assert(w, "g", "coverage=100 pss_error=0");
  }
}

WORLD_TEST(max_lock_hold_holds_where_every_member_is_read_too) {
  w->settings.policy.refresh = REFRESH_ALWAYS;
  world_put(w, measured_member(10, "g"));
  world_put(w, measured_member(11, "h"));
  world_group(w, "g", "Comm", "g", NULL, NULL)->policy.max_lock_hold_ns = 25000;
  measured_group(w, "h");
  for (int i = 0; i < 3; i++) {
    world_run_reading(w, 1, 1);
    assert_int_equal(world_counts(w)->deferred, 1);
    world_assert(w, "g", "rss=8192k pss_error=7168k");
    world_assert(w, "h", "coverage=100");
  }
}

/* It waited for another process, which no clock of the thread counts. */
WORLD_TEST(one_reading_that_was_interrupted_is_not_the_measure_of_the_next) {
  struct fake f = measured_member(10, "g");

  f.private_kb = 1024;
  w->settings.policy.max_lock_hold_ns = 100000;
  w->settings.policy.max_age_ns = 2 * NS_PER_S;
  world_start(w, f);
  world_run(w, 5);
  world_walks_wait(10 * NS_PER_S);
  world_run_reading(w, 5, 1);
  assert_true(world_counts(w)->rollup_ns >= 10 * NS_PER_S);
  assert_in_range(world_counts(w)->longest_read_ns, 1, 100000);
  world_walks_wait(0);
  world_run_reading(w, 5, 1);
}

/* Runs cycles at 10 seconds until one reads, in so many seconds at most. */
static void await_reading(struct world *w, unsigned most) {
  unsigned waited = 0;

  do {
    world_run(w, 10);
    waited += 10;
    assert_true(waited <= most);
  } while (measured_reads(w) == 0);
}

/* Gives a process page tables of that size. */
static void put_tables(struct world *w, uint32_t pid, unsigned kb) {
  proctree_print(&w->tree, pid, "status",
                 "Uid:\t0\t0\t0\t0\nVmPTE:\t%8u kB\nVmSwap:\t       0 kB\n",
                 kb);
}

/* Its page tables went, which is not to be seen in statm. */
WORLD_TEST(process_that_seemed_too_large_is_priced_again) {
  struct fake f = measured_member(10, "g");

  w->settings.policy.max_lock_hold_ns = 2 * NS_PER_MS;
  f.size = 2621440;
  world_watch(w, f);
  put_tables(w, 10, 20480);
  for (int i = 0; i < 30; i++) {
    world_run_reading(w, 10, 0);
    assert_int_equal(world_counts(w)->deferred, 1);
  }
  put_tables(w, 10, 64);
  await_reading(w, 70);
  world_assert(w, "g", "pss=7168k");
}

/* --- a promise --- */

#define LARGE_KB 262144
#define LIMIT_NS (2 * NS_PER_MS)

/* Its walk takes 0.8 ms by the first guess, and it can be sampled. */
static struct fake put_large(struct world *w, struct fake f) {
  const struct fake_range range = {1024 * PAGE, 2048 * PAGE, NULL, NULL};

  f.private_kb = LARGE_KB;
  f.shared_kb = 0;
  f.size = 100000;
  world_put(w, f);
  fake_pages_map(&w->tree, f.pid, &range, 1);
  fake_pages_put(&w->tree, f.pid, 1024, 1024, FAKE_ANON | FAKE_EXCLUSIVE,
                 100000);
  return f;
}

static struct fake put_large_child(struct world *w, const struct fake *parent,
                                   uint32_t pid) {
  return put_large(w, fake_child(parent, pid));
}

/* All are read or sampled in each cycle. */
static struct fake begin_large(struct world *w) {
  w->settings.policy.refresh = REFRESH_ALWAYS;
  w->settings.policy.max_lock_hold_ns = LIMIT_NS;
  measured_group(w, "g");
  measured_group(w, "h");
  return put_large(w, measured_member(10, "g"));
}

/* Changes its statm alone. */
static void put_resident(struct world *w, uint32_t pid, unsigned pages) {
  proctree_print(&w->tree, pid, "statm", "200000 %u 0 0 0 0 0\n", pages);
}

/* So many seconds in which all are sampled, and none is walked. */
static void run_sampled(struct world *w, unsigned seconds, unsigned processes) {
  for (unsigned i = 0; i < seconds; i += 10) {
    world_run_reading(w, 10, 0);
    assert_int_equal(world_counts(w)->sampled, processes);
  }
}

/* Its pages were scattered, or its huge pages split, which no cheap file shows.
 * When they are together again a sample shows it. */
WORLD_TEST(walk_that_was_too_long_is_not_repeated) {
  begin_large(w);
  world_walks_take(NS_PER_MS);
  world_run_reading(w, 10, 1);
  world_walks_take(35 * NS_PER_MS);
  world_run_reading(w, 10, 1);
  assert_int_equal(world_counts(w)->longest_read_ns, 35 * NS_PER_MS);
  run_sampled(w, 7200, 1);
  world_walks_take(1000);
  await_reading(w, 200); /* until the mappings are read again */
  world_run_reading(w, 10, 1);
}

WORLD_TEST(newcomer_is_taken_for_its_relatives) {
  struct fake parent = begin_large(w);

  world_walks_take(3 * NS_PER_MS);
  world_run_reading(w, 10, 1);
  run_sampled(w, 20, 1);
  for (uint32_t pid = 11; pid < 15; pid++) {
    put_large_child(w, &parent, pid);
    run_sampled(w, 150, pid - 9);
  }
  proctree_end(&w->tree, 11);
  proctree_end(&w->tree, 12);
  run_sampled(w, 20, 3);
}

/* The first cycle finds them all. */
WORLD_TEST(relatives_that_are_new_wait_for_the_first_of_them) {
  struct fake parent = begin_large(w);

  for (uint32_t pid = 11; pid < 15; pid++)
    put_large_child(w, &parent, pid);
  world_walks_take(3 * NS_PER_MS);
  world_run_reading(w, 10, 1);
  assert_int_equal(world_counts(w)->deferred, 4);
  run_sampled(w, 300, 5);
}

/* Of a service with a helper, which have been read, and workers that are forked
 * all at once: after the first walk that is too long there is none. */
WORLD_TEST(relatives_heed_the_first_walk_that_is_too_long) {
  struct fake parent = begin_large(w);

  put_large_child(w, &parent, 11);
  world_walks_take(NS_PER_MS / 2);
  world_run_reading(w, 10, 2);
  for (uint32_t pid = 12; pid < 20; pid++)
    put_large_child(w, &parent, pid);
  world_walks_take(3 * NS_PER_MS);
  world_run_reading(w, 10, 1);
  run_sampled(w, 300, 10);
}

/* A smaller one can be dearer than the largest. */
WORLD_TEST(newcomer_is_taken_for_the_dearest_of_its_relatives) {
  struct fake parent = begin_large(w), child;

  world_walks_take(NS_PER_MS);
  world_run_reading(w, 10, 1);
  child = put_large_child(w, &parent, 11);
  put_resident(w, 11, 60000);
  world_run_reading(w, 10, 2);
  proctree_end(&w->tree, 10);
  world_walks_take(3 * NS_PER_MS);
  world_run_reading(w, 10, 1);
  put_large_child(w, &child, 12);
  put_resident(w, 12, 60000);
  run_sampled(w, 50, 2);
}

/* Runs two hours, at whose end its reading was due for several times. */
static void run_unwalked(struct world *w) {
  unsigned sampled = 0;

  for (int i = 0; i < 720; i++) {
    world_run_reading(w, 10, 0);
    sampled += (unsigned)world_counts(w)->sampled;
  }
  assert_true(sampled > 0);
}

/* Such as 120 ns for a page, while it is the page tables that are dear. */
WORLD_TEST(lower_guess_does_not_repeat_a_walk_that_was_too_long) {
  begin_large(w);
  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  w->settings.policy.max_age_ns = 600 * NS_PER_S;
  w->settings.policy.max_lock_hold_ns = 10 * NS_PER_MS;
  world_walks_take(35 * NS_PER_MS);
  world_run_reading(w, 10, 1);
  run_unwalked(w);
}

/* The guess is above the limit at first, and then below. */
WORLD_TEST(lower_guess_does_not_walk_a_process_that_has_samples) {
  begin_large(w);
  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  w->settings.policy.max_age_ns = 600 * NS_PER_S;
  w->settings.policy.max_lock_hold_ns = NS_PER_MS / 2;
  world_walks_take(20 * NS_PER_MS);
  run_sampled(w, 10, 1);
  put_resident(w, 10, 30000);
  run_unwalked(w);
}

/* It was walked before it forked, when it was cheap. */
WORLD_TEST(child_has_the_price_that_its_parent_had_before_the_fork) {
  struct fake parent = begin_large(w);

  world_walks_take(15 * NS_PER_MS / 10);
  world_run_reading(w, 10, 1);
  put_large_child(w, &parent, 11);
  run_sampled(w, 300, 2);
  proctree_end(&w->tree, 11);
  world_run_reading(w, 10, 1);
}

/* Walks of huge pages take next to nothing. A child that saves in the
 * background shares them, and ends. */
WORLD_TEST(huge_pages_are_dear_while_a_fork_shares_them) {
  struct fake parent = begin_large(w);

  w->settings.policy.max_lock_hold_ns = NS_PER_MS / 4;
  parent.huge_kb = LARGE_KB;
  put_large(w, parent);
  world_walks_take(1000);
  run_sampled(w, 10, 1); /* by the guess */
  world_run_reading(w, 10, 1);
  for (uint32_t pid = 11; pid < 14; pid++) {
    put_large_child(w, &parent, pid);
    run_sampled(w, 50, 2);
    proctree_end(&w->tree, pid);
    world_run_reading(w, 10, 1);
  }
}

/* A page costs 23 ns, and then 3 ns. */
WORLD_TEST(unknown_process_is_priced_by_pages_on_this_host) {
  struct fake f = begin_large(w);

  world_walks_take(15 * NS_PER_MS / 10);
  world_run_reading(w, 10, 1);
  f = fake_process(20, "h");
  put_large(w, f);
  world_run_reading(w, 10, 2);
  f.pid = 21;
  put_large(w, f);
  put_resident(w, 21, 131072);
  world_run_reading(w, 10, 2);
  assert_int_equal(world_counts(w)->sampled, 1);
  proctree_end(&w->tree, 21);
  world_walks_take(200000);
  world_run_times(w, 20, 10);
  f.pid = 22;
  put_large(w, f);
  put_resident(w, 22, 131072);
  world_run_reading(w, 10, 3);
}

/* At 12 ns a page, not 23: nothing else would ever measure it. */
WORLD_TEST(stranger_that_cannot_be_sampled_is_guessed_low) {
  struct fake f = begin_large(w);

  w->settings.policy.unsampled_lock_hold_ns = LIMIT_NS;
  world_walks_take(15 * NS_PER_MS / 10);
  world_run_reading(w, 10, 1);
  f = fake_process(20, "h");
  put_large(w, f);
  put_resident(w, 20, 131072);
  proctree_unlink(&w->tree, "20/pagemap");
  world_run_reading(w, 10, 1);
  world_run_times(w, 10, 10);
  world_run_reading(w, 10, 2);
}

/* --- too slow for now --- */

/* No cheap file shows how many there are. */
static void put_mappings(struct world *w, unsigned n) {
  static const char line[] =
      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n";
  size_t len = strlen(line);
  char *text = malloc(n * len);

  assert_non_null(text);
  for (unsigned i = 0; i < n; i++)
    memcpy(text + i * len, line, len);
  proctree_write(&w->tree, "10/maps", text, n * len);
  free(text);
}

WORLD_TEST(too_many_mappings_are_counted_and_not_walked) {
  struct fake f = measured_member(10, "g");

  w->settings.policy.max_lock_hold_ns = NS_PER_MS;
  f.size = 100000;
  put_mappings(w, 10000);
  world_watch(w, f);
  for (int i = 0; i < 3; i++)
    world_run_reading(w, 1, 0);
  assert_int_equal(world_diag(w, DIAG_TOO_LARGE)->pid, 10);
  assert_int_equal(world_counts(w)->deferred, 1);
  /* The next time that it is tried there are less. */
  put_mappings(w, 1000);
  f.private_kb -= 4; /* which is no other price */
  world_put(w, f);
  world_run_reading(w, 1, 0);
  world_run_reading(w, 300, 1);
  world_run_reading(w, 1, 0);
  assert_int_equal(world_counts(w)->deferred, 0);
}

/* None of these can be left out, or merged with its neighbours. */
static void put_ranges(struct world *w, unsigned n) {
  struct fake_range *ranges = calloc(n, sizeof(*ranges));

  assert_non_null(ranges);
  for (unsigned i = 0; i < n; i++)
    ranges[i] = (struct fake_range){(UINT64_C(1024) + i) * PAGE,
                                    (UINT64_C(1025) + i) * PAGE,
                                    i % 2 ? "---p" : "rw-p", NULL};
  fake_pages_map(&w->tree, 10, ranges, n);
  free(ranges);
}

/* They are read for seconds, and in vain. */
WORLD_TEST(process_of_too_many_ranges_is_not_sampled_for_an_hour) {
  w->settings.read_timeout_ns = 60 * NS_PER_S; /* beside load */
  w->settings.policy.max_lock_hold_ns = 25000;
  world_watch(w, measured_member(10, "g"));
  fake_pages_put(&w->tree, 10, 1024, 1, FAKE_ANON, 0);
  put_ranges(w, 2 * 131072 + 1);
  world_run_reading(w, 1, 0);
  assert_int_equal(world_diag(w, DIAG_FAILED)->error, EFBIG);
  assert_string_equal(world_diag(w, DIAG_FAILED)->file, "maps");
  put_ranges(w, 1);
  world_run_reading(w, 3500, 0);
  assert_int_equal(world_counts(w)->sampled, 0);
  world_run_reading(w, 101, 0);
  assert_int_equal(world_counts(w)->sampled, 1);
  assert_int_equal(world_diag(w, DIAG_FAILED)->count, 0);
}

/* Grows by 1 MiB in each interval, so that samples are wanted. Returns how many
 * are taken, with so many at most. */
static unsigned grow_sampled(struct world *w, struct fake *f, unsigned cycles,
                             unsigned most) {
  unsigned taken = 0;

  for (unsigned i = 0; i < cycles && taken < most; i++) {
    f->private_kb += 1024;
    world_put(w, *f);
    world_run(w, 1);
    taken += (unsigned)world_counts(w)->sampled;
  }
  return taken;
}

/* A second is owed then, for 833 seconds at 0.12 % of a CPU. */
WORLD_TEST(sample_that_takes_longer_than_predicted_is_paid_by_the_next) {
  const struct fake_range range = {1024 * PAGE, 1048576 * PAGE, NULL, NULL};
  struct fake f = measured_member(10, "g");

  w->settings.policy.max_lock_hold_ns = 25000;
  w->settings.policy.max_age_ns = 3600 * NS_PER_S;
  world_put(w, f);
  fake_pages_map(&w->tree, 10, &range, 1);
  fake_pages_put(&w->tree, 10, 1024, 300000, FAKE_ANON, 0);
  measured_group(w, "g");
  world_walks_take(500000);
  assert_true(grow_sampled(w, &f, 100, 100) > 10);
  world_walks_take(NS_PER_S);
  assert_int_equal(grow_sampled(w, &f, 100, 1), 1);
  world_walks_take(500000);
  assert_int_equal(grow_sampled(w, &f, 500, 500), 0);
}
