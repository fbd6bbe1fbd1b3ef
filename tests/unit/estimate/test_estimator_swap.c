/* SPDX-License-Identifier: MIT */
/* A fork family whose memory comes back from swap, to one after the other. */
#include "test.h"

#include "estimate/estimator.h"

#include "lineage.h"

static void out_to_swap(struct family *f, unsigned slots) {
  memory_swap_out(&f->world, 0, 40 * MIB_PAGES, 0);
  lineage_pass(f, 1);
  for (unsigned slot = 0; slot < slots; slot++)
    lineage_read(f, slot);
}

static void back_from_swap(struct family *f, unsigned slot) {
  memory_swap_in(&f->world, slot, 40 * MIB_PAGES, 0, false);
}

static struct prediction predicted(struct family *f, unsigned slot) {
  struct prediction p;

  estimator_predict(&f->cycle, &f->processes[slot]->member->track, &p);
  return p;
}

/* Asserts that the values are within the error, apart from 1 MiB of the
 * library. */
static void expect_held(struct family *f, unsigned slot) {
  struct prediction p = predicted(f, slot);
  const struct rollup *real = &f->views[slot].rollup;

  assert_true(error_bytes(p.error.pss) + 1024 * 1024 >=
              (double)p.rollup.bytes[ROLLUP_PSS] -
                  (double)real->bytes[ROLLUP_PSS]);
  assert_true(error_bytes(p.error.uss) + 1024 * 1024 >=
              (double)rollup_uss(&p.rollup) - (double)rollup_uss(real));
}

static void expect_error_below(struct family *f, unsigned slot, unsigned mib) {
  assert_true(error_bytes(predicted(f, slot).error.pss) < mib * 1048576.0);
}

/* What two have got back one after the other is shared by them again. */
FAMILY_TEST(memory_that_relatives_get_back_from_swap_costs_the_others_less) {
  lineage_start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  memory_fork(&f->world, 0, 2, 0);
  out_to_swap(f, 3);
  back_from_swap(f, 1);
  lineage_pass(f, 1);
  lineage_read(f, 1);
  expect_error_below(f, 1, 1);
  for (unsigned slot = 0; slot <= 2; slot += 2) {
    back_from_swap(f, slot);
    lineage_pass(f, 1);
    expect_held(f, 1);
  }
  lineage_read(f, 1);
  expect_error_below(f, 1, 1);
}

static void each_gets_its_own_back(struct family *f) {
  for (unsigned slot = 0; slot < 2; slot++)
    memory_swap_out(&f->world, slot, 40 * MIB_PAGES, 0);
  lineage_pass(f, 1);
  for (unsigned slot = 0; slot < 2; slot++)
    lineage_read(f, slot);
  for (unsigned slot = 0; slot < 2; slot++) {
    back_from_swap(f, slot);
    lineage_pass(f, 1);
  }
}

/* The parent has copied all of its memory, so that nothing is shared. */
FAMILY_TEST(readings_show_that_relatives_get_their_own_back_from_swap) {
  lineage_start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  memory_write(&f->world, 0, 41 * MIB_PAGES, 0);
  for (int i = 0; i < 50; i++) {
    each_gets_its_own_back(f);
    for (unsigned slot = 0; slot < 2; slot++)
      lineage_read(f, slot);
  }
  each_gets_its_own_back(f);
  for (unsigned slot = 0; slot < 2; slot++) {
    expect_held(f, slot);
    expect_error_below(f, slot, 8);
  }
}

FAMILY_TEST(readings_show_that_relatives_get_the_same_back_from_swap) {
  lineage_start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  for (int i = 0; i < 50; i++) {
    out_to_swap(f, 2);
    back_from_swap(f, 0);
    lineage_pass(f, 1);
    lineage_read(f, 0);
    back_from_swap(f, 1);
    lineage_pass(f, 1);
    expect_held(f, 0);
    for (unsigned slot = 0; slot < 2; slot++)
      lineage_read(f, slot);
  }
}
