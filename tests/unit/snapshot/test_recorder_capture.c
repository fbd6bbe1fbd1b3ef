/* SPDX-License-Identifier: MIT */
/* A capture has the largest members, and takes as many cycles as they need. */
#include "test.h"

#include <errno.h>

#include "capturing.h"

#define GIANT_KB (UINT64_C(64) << 10)

/* Pss counts and not size, and of what cannot be read the guess; what has no
 * Pss is ordered by size. */
CAPTURING_TEST(largest_members_come_first) {
  const struct fake_mapping mapping = {.private_kb = 200};
  const struct fake shared = {.pid = 10,
                              .comm = "g",
                              .starttime = 1,
                              .private_kb = 100,
                              .shared_kb = 8000,
                              .pss_kb = 200};

  proctree_put(&w->tree, &shared);
  proctree_put_smaps(&w->tree, 10, &mapping, 1);
  capturing_put(w, 11, "g", 300);
  capturing_put(w, 12, "g", 400);
  capturing_put(w, 13, "other", 9000);
  capturing_put(w, 14, "g", 300);
  capturing_put(w, 20, "h", 300);
  capturing_put(w, 21, "h", 400);
  proctree_write(&w->tree, "12/smaps_rollup", "?\n", 2);
  proctree_write(&w->tree, "20/smaps_rollup", "?\n", 2);
  proctree_write(&w->tree, "21/smaps_rollup", "?\n", 2);
  capturing_group(w, "g");
  capturing_group(w, "h");
  capturing_assert_members(capturing_run(w, "g"), "11 14 10 12", 0);
  assert_string_equal(world_written(0)->subject, "g");
  world_raise(w, "h");
  capturing_cycle(w);
  parsed_free(capturing_document);
  capturing_document = parsed_file(world_written(1)->path);
  capturing_assert_members(capturing_document, "21 20", 0);
}

CAPTURING_TEST(members_beyond_the_top_are_counted) {
  parsed d;

  w->settings.capture.top_processes = 3;
  capturing_put_many(w, 10);
  d = capturing_run(w, "g");
  capturing_assert_members(d, "19 18 17", 7);
  assert_int_equal(parsed_integer(d, "mappings.0.processes"), 3);
}

/* It is of the interval in which it began. */
CAPTURING_TEST(a_long_capture_has_the_sums_of_its_beginning) {
  char name[128];
  parsed d;

  world_budget(w, 0);
  capturing_put_many(w, 2);
  capturing_raise(w, "g");
  capturing_cycle(w);
  capturing_put(w, 30, "g", 50000);
  capturing_cycle(w);
  d = capturing_read();
  assert_true(parsed_decimal(d, "time") ==
              (double)(WORLD_WALL_NS / NS_PER_S) + 10);
  snprintf(name, sizeof(name), "%s/captures/smaps-20261121T134511Z-g.json",
           w->tree.root);
  assert_string_equal(world_written(0)->path, name);
  parsed_assert(d, "groups.0.usage.pss=2100k left_out=0");
  assert_int_equal(parsed_count(d, "processes"), 2);
}

/* Each look at the clock takes a microsecond: some of a hundred are read in a
 * cycle, and not one alone. */
CAPTURING_TEST(capture_reads_as_many_members_as_the_budget_allows) {
  w->settings.read_budget_percent = 100 * 20e-6 / 10 / 5; /* of 10 s */
  w->settings.capture.top_processes = 100;
  capturing_put_many(w, 100);
  capturing_raise(w, "g");
  for (int i = 0; i < 3; i++)
    capturing_cycle(w);
  assert_int_equal(world_n_written(), 0);
  for (int i = 0; i < 30; i++)
    capturing_cycle(w);
  world_stop(w);
  assert_int_equal(parsed_count(capturing_read(), "processes"), 100);
}

CAPTURING_TEST(capture_that_a_stop_ends_is_reported) {
  world_budget(w, 0);
  capturing_put_many(w, 10);
  capturing_raise(w, "g");
  for (int i = 0; i < 3; i++)
    capturing_cycle(w);
  world_stop(w);
  assert_int_equal(world_n_written(), 1);
  assert_int_equal(world_written(0)->error, -ECANCELED);
  assert_string_equal(world_written(0)->subject, "g");
  assert_true(world_written(0)->summary.has_pss);
}

CAPTURING_TEST(a_process_that_has_the_pid_now_is_another) {
  struct fake another = fake_process(10, "g");

  world_budget(w, 0);
  capturing_put_many(w, 3);
  capturing_raise(w, "g");
  capturing_cycle(w);
  proctree_end(&w->tree, 11);
  capturing_cycle(w); /* reads one; it may be this one, which is gone */
  another.starttime = 99999;
  another.private_kb = 64;
  world_put_mapped(w, another, "/another");
  capturing_cycle(w);
  capturing_cycle(w);
  capturing_assert_members(capturing_read(), "12", 2);
  assert_null(parsed_find(capturing_document, "mappings", "name", "/another"));
}

/* Gone, gone between the list and the reading, and a zombie. */
CAPTURING_TEST(ended_members_are_left_out) {
  world_budget(w, 0);
  capturing_put_many(w, 5); /* 14 is the first */
  capturing_raise(w, "g");
  capturing_cycle(w);
  proctree_end(&w->tree, 13);
  proctree_unlink(&w->tree, "11/smaps");
  proctree_put(
      &w->tree,
      &(struct fake){.pid = 12, .comm = "g", .state = 'Z', .starttime = 112});
  for (int i = 0; i < 4; i++)
    capturing_cycle(w);
  capturing_assert_members(capturing_read(), "14 10", 3);
}

/* Two mappings, one of which the others map too. */
static void put_maps(struct world *w, uint32_t pid) {
  const struct fake_range ranges[] = {{MIB, 5 * MIB, "rw-p", "g"},
                                      {5 * MIB, 1029 * MIB, "rw-p", NULL}};

  fake_pages_map(&w->tree, pid, ranges, LENGTH(ranges));
}

/* Its smaps is not even looked at: who opens it waits for ever. */
CAPTURING_TEST(member_above_max_lock_hold_has_its_mappings_from_maps) {
  parsed d, p, m;

  w->settings.policy.max_lock_hold_ns = NS_PER_MS;
  capturing_put_many(w, 3);
  capturing_put(w, 20, "g", 1 << 20);
  put_maps(w, 20);
  proctree_hang(&w->tree, "20/smaps");
  d = capturing_run(w, "g");
  capturing_assert_members(d, "20 12 11 10", 0);
  p = parsed_get(d, "processes.0");
  parsed_assert(p, "source=guessed deferred=max_lock_hold mappings_from=maps");
  parsed_assert(p, "usage.rss=1024m");
  assert_int_equal(parsed_count(p, "mappings"), 2);
  m = parsed_find(p, "mappings", "name", "[anon]");
  parsed_assert(m, "size=1024m vmas=1 permissions=rw-p");
  assert_null(parsed_get(m, "pss"));
  assert_null(parsed_get(m, "rss"));
  p = parsed_get(d, "processes.1");
  parsed_assert(p, "source=read mappings_from=smaps mappings.0.pss=1200k");
  /* The sum of a mapping that all have is not known. */
  m = parsed_find(d, "mappings", "name", "g");
  parsed_assert(m, "processes=4 size=7396k");
  assert_null(parsed_get(m, "pss"));
}

/* A heap of its own, and twice as much in a file that another maps too. */
static void put_sampled(struct world *w, uint32_t pid) {
  const uint64_t first = 1024, pages = GIANT_KB / 4;
  const struct fake_range ranges[] = {
      {first * PAGE, (first + pages / 2) * PAGE, "rw-p", "[heap]"},
      {(first + pages) * PAGE, (first + 2 * pages) * PAGE, "rw-s", "g"},
      {(first + 2 * pages) * PAGE, (first + 2 * pages + 4) * PAGE, "r--p",
       "[vvar]"}};

  fake_pages_map(&w->tree, pid, ranges, LENGTH(ranges));
  fake_pages_put(&w->tree, pid, first, pages / 2, FAKE_ANON | FAKE_EXCLUSIVE,
                 1);
  fake_pages_put(&w->tree, pid, first + pages, pages, FAKE_FILE, 1 + pages / 2);
  fake_pages_count(&w->tree, 1, pages / 2, 1);
  fake_pages_count(&w->tree, 1 + pages / 2, pages, 2);
}

static void put_giant(struct world *w, uint32_t pid) {
  struct fake f = fake_process(pid, "g");

  f.private_kb = GIANT_KB / 2;
  f.shared_kb = GIANT_KB;
  world_put_mapped(w, f, "g");
  put_sampled(w, pid);
  proctree_hang(&w->tree, "20/smaps");
}

/* Its smaps is not even looked at: who opens it waits for ever. */
CAPTURING_TEST(member_above_max_lock_hold_has_its_mappings_from_samples) {
  parsed d, p, m;

  w->settings.policy.max_lock_hold_ns = NS_PER_MS / 10;
  world_walks_take(60000);
  capturing_put_many(w, 3);
  put_giant(w, 20);
  d = capturing_run(w, "g");
  p = parsed_process(d, 20);
  parsed_assert(p, "mappings_from=samples");
  m = parsed_find(p, "mappings", "name", "[heap]");
  parsed_assert(m, "rss=32m pss=32m private_dirty=32m");
  assert_in_range(parsed_integer(m, "pages_sampled"), 5000, 5700);
  assert_in_range(parsed_integer(m, "pss_error"), 1, GIANT_KB / 100 * KIB);
  assert_null(parsed_get(m, "swap"));
  m = parsed_find(p, "mappings", "name", "g");
  parsed_assert(m, "rss=64m pss=32m shared_clean=64m");
  m = parsed_find(p, "mappings", "name", "[vvar]");
  assert_null(parsed_get(m, "rss"));
  assert_int_equal(parsed_integer(m, "pages_sampled"), 0);
  /* The others have theirs from smaps. */
  m = parsed_find(d, "mappings", "name", "g");
  assert_int_equal(parsed_integer(m, "processes"), 4);
  assert_int_equal(parsed_integer(m, "pss"),
                   (GIANT_KB / 2 + 1000 + 1100 + 1200) * KIB);
  assert_true(parsed_integer(m, "pages_sampled") > 1000);
  parsed_assert(parsed_process(d, 10), "mappings_from=smaps");
  m = parsed_get(parsed_process(d, 10), "mappings.0");
  assert_null(parsed_get(m, "pages_sampled"));
  assert_null(parsed_get(m, "pss_error"));
}
