/* SPDX-License-Identifier: MIT */
/* Families and groups are sets of processes that share files and shmem. */
#include "test.h"

#include "estimate/track.h"
#include "lineage.h"

static void expect_pss(const struct family *f, unsigned slot, double kb,
                       double most) {
  struct prediction p;

  estimator_predict(&f->cycle, &f->processes[slot]->member->track, &p);
  lineage_assert_near((double)p.rollup.bytes[ROLLUP_PSS] / 1024, kb, most,
                      "PSS");
}

static void start_mapper(struct family *f, unsigned slot) {
  memory_start(&f->world, slot);
  memory_grow(&f->world, slot, 256);
  memory_map(&f->world, slot, BUFFERS, 4096, 0, true);
}

/* Four of a group share a buffer; each has forked once, some time ago. */
FAMILY_TEST(process_that_has_forked_shares_files_with_its_group_again) {
  for (unsigned slot = 0; slot < 4; slot++)
    start_mapper(f, slot);
  lineage_pass(f, 1);
  for (unsigned slot = 0; slot < 4; slot++) {
    memory_fork(&f->world, slot, 9, 5);
    lineage_pass(f, 1);
    memory_exit(&f->world, 9);
    lineage_pass(f, 1);
  }
  for (unsigned slot = 0; slot < 4; slot++)
    lineage_read(f, slot);
  lineage_pass(f, 1);
  memory_exit(&f->world, 2);
  memory_exit(&f->world, 3);
  lineage_pass(f, 1);
  lineage_expect_within(f, 100, 100);
}

/* As long as it had children, all readings were about its family. */
FAMILY_TEST(its_group_knows_the_kind_of_pages_once_the_children_have_ended) {
  start_mapper(f, 0);
  memory_map(&f->world, 0, LIBRARY, 512, 0, true);
  memory_start(&f->world, 9);
  memory_map(&f->world, 9, LIBRARY, 512, 0, true);
  f->outside = 1 << 9;
  for (unsigned slot = 1; slot < 6; slot++) {
    memory_fork(&f->world, 0, slot, 0);
    memory_map(&f->world, slot, BUFFERS, 400, (uint16_t)(slot * 8000), true);
  }
  lineage_pass(f, 1);
  for (unsigned slot = 0; slot < 6; slot++)
    lineage_read(f, slot);
  for (unsigned slot = 1; slot < 6; slot++)
    memory_exit(&f->world, slot);
  lineage_pass(f, 1);
  lineage_pass(f, 1);
  expect_pss(f, 0, 18432, 700);
}

/* The buffer is its own for three parts of four; five others map the rest. */
FAMILY_TEST(a_family_begins_with_the_pages_that_its_founder_shared) {
  start_mapper(f, 0);
  for (unsigned slot = 1; slot < 6; slot++) {
    memory_start(&f->world, slot);
    memory_map(&f->world, slot, BUFFERS, 1024, 0, true);
  }
  lineage_pass(f, 1);
  for (unsigned slot = 0; slot < 6; slot++)
    lineage_read(f, slot);
  memory_fork(&f->world, 0, 9, 5);
  lineage_pass(f, 1);
  memory_exit(&f->world, 9);
  for (unsigned cycle = 0; cycle < 3; cycle++) {
    lineage_pass(f, 1);
    lineage_expect_within(f, 100, 100);
  }
}

/* Two that share a file are beside a family that maps another one. */
FAMILY_TEST(files_that_a_family_maps_do_not_affect_others_of_its_group) {
  for (unsigned slot = 0; slot < 2; slot++) {
    memory_start(&f->world, slot);
    memory_map(&f->world, slot, SMALL_FILE, 64, 0, true);
  }
  memory_start(&f->world, 2);
  memory_map(&f->world, 2, LIBRARY, 512, 0, true);
  memory_fork(&f->world, 2, 3, 5);
  lineage_pass(f, 1);
  for (unsigned slot = 0; slot < 4; slot++)
    lineage_read(f, slot);
  memory_map(&f->world, 3, LIBRARY, 512, 0, true);
  lineage_pass(f, 1);
  expect_pss(f, 0, 128, 1);
}

/* Then it is a member of its group like any other, and also when it forks. */
FAMILY_TEST(a_child_that_is_left_takes_the_place_of_its_parent) {
  start_mapper(f, 0);
  start_mapper(f, 1);
  memory_fork(&f->world, 1, 2, 4096);
  lineage_pass(f, 1);
  lineage_read(f, 0);
  memory_exit(&f->world, 1);
  for (unsigned child = 3; child < 5; child++) {
    lineage_pass(f, 1);
    memory_fork(&f->world, 2, child, 0);
    expect_pss(f, 0, 9216, 100);
  }
  memory_exit(&f->world, 2);
  lineage_pass(f, 1);
  expect_pss(f, 0, 17408, 100);
}

/* One of the children stands for its family then, however many there are. */
FAMILY_TEST(a_family_stays_in_its_group_without_its_founder) {
  start_mapper(f, 0);
  start_mapper(f, 1);
  memory_fork(&f->world, 1, 2, 4096);
  memory_fork(&f->world, 1, 3, 4096);
  lineage_pass(f, 1);
  lineage_read(f, 0);
  memory_exit(&f->world, 1);
  lineage_pass(f, 1);
  /* It pays a third, and was 2,700 kB too high. */
  expect_pss(f, 0, 6485, 700);
}

/* Its parent, which paid for all of the buffer, shares it only from now on. */
FAMILY_TEST(pages_that_a_child_maps_are_of_its_parents_kind) {
  struct prediction child;

  start_mapper(f, 0);
  lineage_pass(f, 1);
  lineage_read(f, 0);
  memory_fork(&f->world, 0, 1, 2048);
  lineage_pass(f, 1);
  estimator_predict(&f->cycle, &f->processes[1]->member->track, &child);
  assert_int_equal(child.rollup.bytes[ROLLUP_PSS_SHMEM] / 1024, 4096);
  assert_int_equal(child.rollup.bytes[ROLLUP_PSS_FILE], 0);
}
