/* SPDX-License-Identifier: MIT */
/* A fork family whose members give memory back while they have memory of their
 * own: nothing but a reading shows whether others shared it. */
#include "test.h"

#include <math.h>

#include "estimate/estimator.h"
#include "report/error.h"

#include "lineage.h"

/* Each rollup is rounded down to kB. */
#define ROUNDED 4096.0

/* A parent and its children share 40 MiB; the first child has as much of its
 * own. */
static void start_family(struct family *f, unsigned members) {
  lineage_start_parent(f);
  for (unsigned slot = 1; slot < members; slot++)
    memory_fork(&f->world, 0, slot, 0);
  memory_grow(&f->world, 1, 40 * MIB_PAGES);
}

static void read_all(struct family *f, unsigned members) {
  lineage_pass(f, 1);
  for (unsigned slot = 0; slot < members; slot++)
    lineage_read(f, slot);
}

/* Copies are well predicted, until that is known. */
static void copy_for_a_while(struct family *f, unsigned members) {
  for (unsigned i = 0; i < 20; i++) {
    memory_write(&f->world, 1, MIB_PAGES, 0);
    read_all(f, members);
  }
}

/* It gets as much as it gives back, which is not shared. */
static void give_own_back_for_a_while(struct family *f, unsigned members) {
  for (unsigned i = 0; i < 60; i++) {
    memory_shrink(&f->world, 1, 8 * MIB_PAGES, 40000);
    read_all(f, members);
    memory_grow(&f->world, 1, 8 * MIB_PAGES);
    read_all(f, members);
  }
}

struct beside {
  double off, error;
  struct error_sum sum;
};

static void compare(struct beside *b, uint64_t got, uint64_t truth,
                    struct error d, const char *what) {
  double off = (double)truth - (double)got;

  if (fabs(off) > error_bytes(d) + ROUNDED)
    fail_msg("%s is off by %.0f kB, with an error of %.0f kB", what, off / 1024,
             error_bytes(d) / 1024);
  b->off += off;
  error_add(&b->sum, d);
}

/* Asserts the values of each member, and of all together. */
static void expect_held(struct family *f, unsigned members) {
  struct beside pss = {0}, uss = {0};

  for (unsigned slot = 0; slot < members; slot++) {
    const struct rollup *real = &f->views[slot].rollup;
    struct prediction p;

    estimator_predict(&f->cycle, &f->processes[slot]->member->track, &p);
    compare(&pss, p.rollup.bytes[ROLLUP_PSS], real->bytes[ROLLUP_PSS],
            p.error.pss, "PSS");
    compare(&uss, rollup_uss(&p.rollup), rollup_uss(real), p.error.uss, "USS");
  }
  assert_true(fabs(pss.off) <= (double)error_of_sum(&pss.sum) + ROUNDED);
  assert_true(fabs(uss.off) <= (double)error_of_sum(&uss.sum) + ROUNDED);
}

static void give_shared_back(struct family *f, unsigned members) {
  for (unsigned i = 0; i < 4; i++) {
    memory_shrink(&f->world, 1, 3 * MIB_PAGES, 0);
    lineage_pass(f, 1);
    expect_held(f, members);
  }
}

FAMILY_TEST(shared_memory_that_one_of_two_gives_back_is_within_the_error) {
  start_family(f, 2);
  read_all(f, 2);
  copy_for_a_while(f, 2);
  give_shared_back(f, 2);
}

FAMILY_TEST(shared_memory_that_one_of_four_gives_back_is_within_the_error) {
  start_family(f, 4);
  read_all(f, 4);
  copy_for_a_while(f, 4);
  give_shared_back(f, 4);
}

/* All children free what they had inherited, one after the other, and have as
 * much memory of their own: the parent is left with it alone, unread. */
FAMILY_TEST(shared_memory_that_every_relative_gives_back_is_within_the_error) {
  const unsigned members = 10;

  lineage_start_parent(f);
  for (unsigned slot = 1; slot < members; slot++) {
    memory_fork(&f->world, 0, slot, 0);
    memory_grow(&f->world, slot, 6 * MIB_PAGES);
  }
  read_all(f, members);
  for (unsigned slot = 1; slot < members; slot++) {
    memory_shrink(&f->world, slot, 6 * MIB_PAGES, 0);
    lineage_pass(f, 1);
    expect_held(f, members);
    lineage_read(f, slot);
  }
  lineage_pass(f, 1);
  expect_held(f, members);
}

FAMILY_TEST(shared_memory_is_given_back_where_it_was_always_private) {
  start_family(f, 2);
  read_all(f, 2);
  give_own_back_for_a_while(f, 2);
  give_shared_back(f, 2);
}
