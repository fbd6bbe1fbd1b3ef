/* SPDX-License-Identifier: MIT */
/* Forks beside the truth, while nothing is read but what a test asks for. */
#include "test.h"

#include "estimate/track.h"
#include "lineage.h"

/* --- two --- */

FAMILY_TEST(a_fork_counts_no_page_twice) {
  lineage_start_parent(f);
  memory_fork(&f->world, 0, 1, 200);
  lineage_pass(f, 1);
  lineage_expect_within(f, 1100, 2300);
}

FAMILY_TEST(faults_of_a_child_are_its_own_memory) {
  lineage_start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  memory_write(&f->world, 1, 8 * MIB_PAGES, 0);
  lineage_pass(f, 1);
  /* The pages are the parent's alone as well, which nothing shows. */
  lineage_expect_within(f, 1100, 8 * 1024 + 1100);
}

/* With fault-around a fault maps up to sixteen. */
FAMILY_TEST(faults_that_map_files_copy_nothing) {
  struct prediction child;

  lineage_start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  memory_map(&f->world, 1, BUFFERS, 4096, 0, true);
  lineage_pass(f, 1);
  estimator_predict(&f->cycle, &f->processes[1]->member->track, &child);
  /* The hundred at first can have been copies. */
  lineage_assert_near((double)rollup_uss(&child.rollup) / 1024, 400, 10, "USS");
}

/* More at a time, or without a fault (MAP_POPULATE). */
TEST(pages_that_came_with_fewer_faults_do_not_count_as_copies) {
  const struct cycle e = {.page_size = 4096};
  struct observation at = {.shared_pages = 4096, .minor_faults = 255};

  assert_int_equal(track_faulted_bytes(&e, &at), 0);
  at.minor_faults = 257;
  assert_int_equal(track_faulted_bytes(&e, &at), 4096);
}

FAMILY_TEST(the_parent_is_corrected_when_only_the_child_is_read) {
  lineage_start_parent(f);
  memory_fork(&f->world, 0, 1, 100);
  lineage_pass(f, 1);
  lineage_read(f, 1);
  lineage_expect_within(f, 1100, 1100);
}

FAMILY_TEST(the_parents_writes_after_a_fork_are_followed) {
  lineage_start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  lineage_pass(f, 1);
  memory_write(&f->world, 0, 10 * MIB_PAGES, 0);
  lineage_pass(f, 1);
  lineage_expect_within(f, 1100, 10 * 1024 + 1100);
}

/* The kernel prints 64 bits of the counter, of which half are kept. */
FAMILY_TEST(writes_are_followed_when_the_counter_of_faults_goes_round) {
  lineage_start_parent(f);
  f->world.processes[0].minor_faults = UINT32_MAX - 100;
  memory_fork(&f->world, 0, 1, 0);
  lineage_pass(f, 1);
  memory_write(&f->world, 0, 10 * MIB_PAGES, 0);
  lineage_pass(f, 1);
  lineage_expect_within(f, 1100, 10 * 1024 + 1100);
}

FAMILY_TEST(memory_in_swap_is_divided) {
  lineage_start_parent(f);
  memory_swap_out(&f->world, 0, 10 * MIB_PAGES, 0);
  lineage_pass(f, 1);
  memory_fork(&f->world, 0, 1, 0);
  lineage_pass(f, 1);
  lineage_expect_within(f, 1100, 1100);
  lineage_assert_near(lineage_estimate(f).swap, lineage_truth(f).swap, 100,
                      "swap");
}

/* --- more --- */

/* The next child alone shares with the parent the memory that this has got
 * since it forked last. */
FAMILY_TEST(new_worker_shares_memory_that_came_after_the_others) {
  lineage_start_parent(f);
  for (unsigned child = 1; child <= 7; child++)
    memory_fork(&f->world, 0, child, 0);
  lineage_pass(f, 1);
  for (unsigned slot = 0; slot <= 7; slot++)
    lineage_read(f, slot);
  memory_grow(&f->world, 0, 16 * MIB_PAGES);
  memory_fork(&f->world, 0, 8, 0);
  lineage_pass(f, 1);
  lineage_expect_within(f, 1100, 1100);
}

/* --- what the first readings teach --- */

static void replace_worker(struct family *f, unsigned slot) {
  memory_exit(&f->world, slot);
  memory_fork(&f->world, 0, slot, 64);
  memory_map(&f->world, slot, BUFFERS, 1024, 0, true);
  memory_write(&f->world, slot, MIB_PAGES, 0);
  memory_grow(&f->world, slot, 2 * MIB_PAGES);
}

FAMILY_TEST(new_workers_are_estimated_from_previous_ones) {
  lineage_start_parent(f);
  for (unsigned slot = 1; slot <= 8; slot++)
    replace_worker(f, slot);
  lineage_pass(f, 1);
  for (unsigned slot = 0; slot <= 8; slot++)
    lineage_read(f, slot);
  for (unsigned i = 0; i < 200; i++) {
    unsigned slot = 1 + i % 8;

    replace_worker(f, slot);
    lineage_pass(f, 1);
    if (i > 100) {
      lineage_expect_within(f, 0.01 * lineage_truth(f).pss,
                            0.05 * lineage_truth(f).uss);
      assert_true(lineage_estimate(f).error < 0.3 * lineage_truth(f).pss);
    }
    if (i % 2)
      lineage_read(f, slot);
    if (i % 20 == 0)
      lineage_read(f, 0);
  }
}

/* Two map the buffers before it, three with it. */
FAMILY_TEST(files_of_a_child_cost_as_much_as_those_of_the_previous_child) {
  struct prediction child;

  lineage_start_parent(f);
  memory_start(&f->world, 8);
  for (unsigned i = 0; i < 10; i++) {
    for (unsigned slot = 0; slot <= 8; slot += 8)
      memory_map(&f->world, slot, BUFFERS, 4096, 0, true);
    memory_exit(&f->world, 1);
    lineage_pass(f, 10);
    lineage_read(f, 0);
    memory_fork(&f->world, 0, 1, 0);
    memory_map(&f->world, 1, BUFFERS, 4096, 0, true);
    lineage_pass(f, 10);
    estimator_predict(&f->cycle, &f->processes[1]->member->track, &child);
    if (i > 0)
      lineage_assert_near((double)child.rollup.bytes[ROLLUP_PSS_SHMEM] / 1024,
                          16384.0 / 3, 100, "PSS of the buffers");
    lineage_read(f, 1);
  }
}

/* It shares nothing with the parent that it had. */
FAMILY_TEST(an_heir_that_execs_has_nothing) {
  lineage_start_parent(f);
  memory_fork(&f->world, 0, 1, 200);
  lineage_pass(f, 1);
  memory_exec(&f->world, 1);
  memory_grow(&f->world, 1, MIB_PAGES);
  lineage_pass(f, 1);
  assert_false(track_has_baseline(&f->processes[1]->member->track));
  lineage_read(f, 1);
  lineage_expect_within(f, 1100, 1100);
}

FAMILY_TEST(an_heir_that_execs_teaches_its_own_children_nothing) {
  lineage_start_parent(f);
  memory_fork(&f->world, 0, 1, 200);
  lineage_pass(f, 1);
  memory_exec(&f->world, 1);
  memory_map(&f->world, 1, LIBRARY, 64, 0, true);
  memory_fork(&f->world, 1, 2, 0);
  lineage_pass(f, 1);
  lineage_read(f, 1);
  assert_true(f->processes[2]->member->track.family->newborns.breaks < 0);
}

/* --- swap --- */

FAMILY_TEST(swap_is_divided_among_many) {
  lineage_start_parent(f);
  memory_swap_out(&f->world, 0, 40 * MIB_PAGES, 0);
  lineage_pass(f, 1);
  for (unsigned child = 1; child <= 8; child++)
    memory_fork(&f->world, 0, child, 0);
  lineage_pass(f, 1);
  lineage_assert_near(lineage_estimate(f).swap, lineage_truth(f).swap, 100,
                      "swap");
  for (unsigned child = 9; child <= 12; child++) {
    memory_fork(&f->world, 0, child, 0);
    lineage_pass(f, 1);
    lineage_assert_near(lineage_estimate(f).swap, lineage_truth(f).swap, 100,
                        "swap");
  }
}

/* --- what is learnt --- */

static double published_kb(const struct family *f, unsigned slot) {
  struct prediction p;

  estimator_predict(&f->cycle, &f->processes[slot]->member->track, &p);
  return error_bytes(p.error.pss) / 1024;
}

/* Children that do nothing, of which each is read. */
static void learn_from_children(struct family *f) {
  lineage_start_parent(f);
  for (int i = 0; i < 100; i++) {
    memory_fork(&f->world, 0, 1, 0);
    lineage_pass(f, 1);
    lineage_read(f, 1);
    memory_exit(&f->world, 1);
    lineage_pass(f, 1);
    lineage_read(f, 0);
  }
}

/* Hundreds of them at a time make no error that is worth a reading. */
FAMILY_TEST(children_like_previous_ones_have_a_small_error) {
  learn_from_children(f);
  memory_fork(&f->world, 0, 1, 0);
  lineage_pass(f, 1);
  assert_true(published_kb(f, 1) < 600);
}

/* Half of it at first, and never less than nothing or more than there is. */
FAMILY_TEST(an_error_is_limited_by_the_range_of_the_value) {
  struct prediction parent;

  lineage_start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  lineage_pass(f, 1);
  estimator_predict(&f->cycle, &f->processes[0]->member->track, &parent);
  lineage_assert_near(error_bytes(parent.error.pss) / 1024, 20.5 * 1024, 1024,
                      "error");
  assert_true(error_bytes(parent.error.uss) <= 41 * MIB);
}

/* An allocator gives memory back and touches it again, in each interval, beside
 * all that a worker shares with the others. */
FAMILY_TEST(faults_that_copy_nothing_are_known_from_readings) {
  lineage_start_parent(f);
  for (unsigned slot = 1; slot <= 4; slot++)
    memory_fork(&f->world, 0, slot, 0);
  lineage_pass(f, 1);
  for (unsigned slot = 0; slot <= 4; slot++)
    lineage_read(f, slot);
  for (unsigned i = 0; i < 60; i++) {
    for (unsigned slot = 1; slot <= 4; slot++)
      f->world.processes[slot].minor_faults += 2 * MIB_PAGES;
    lineage_pass(f, 1);
    if (i > 20)
      lineage_expect_within(f, 0.05 * lineage_truth(f).pss,
                            0.05 * lineage_truth(f).pss);
    lineage_read(f, i % 5);
  }
}

/* --- what comes while the kernel walks --- */

/* The memory comes where the walk has been already: the rollup lacks it, and
 * statm after it does not. */
FAMILY_TEST(memory_that_came_during_a_reading_is_not_lost) {
  struct memory_view before;
  struct observation after;
  struct track *t;

  lineage_start_parent(f);
  lineage_pass(f, 1);
  before = f->views[0];
  memory_grow(&f->world, 0, 8 * MIB_PAGES);
  lineage_update(f);
  t = &f->processes[0]->member->track;
  after = t->now;
  after.resident_pages = (uint32_t)f->views[0].resident_pages;
  after.shared_pages = (uint32_t)f->views[0].shared_pages;
  estimator_correct(&f->cycle, t, &before.rollup, &after);
  lineage_pass(f, 1);
  lineage_expect_within(f, 4, 4);
}
