/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "estimate/estimate.h"

static const struct cycle cycle = {.now_ns = 1000000001, .page_size = 4096};

/* A process of 8 MiB of its own, and 2 MiB that it shares by copy on write,
 * with so many altogether; and 16 MiB of files of which it pays a quarter. */
static struct track sharing(uint64_t sharers, uint16_t relatives) {
  struct rollup r = {.known = UINT32_MAX};
  struct observation o = {.resident_pages = 26 * MIB / 4096,
                          .shared_pages = 16 * MIB / 4096};
  struct track t = {.now = o, .since = SHARING_JUST_READ};

  r.bytes[ROLLUP_RSS] = 26 * MIB;
  r.bytes[ROLLUP_ANONYMOUS] = 10 * MIB;
  r.bytes[ROLLUP_PSS_ANON] = 8 * MIB + 2 * MIB / sharers;
  r.bytes[ROLLUP_PSS_FILE] = 4 * MIB;
  r.bytes[ROLLUP_PSS] = r.bytes[ROLLUP_PSS_ANON] + 4 * MIB;
  r.bytes[ROLLUP_PRIVATE_DIRTY] = 8 * MIB;
  r.bytes[ROLLUP_SHARED_DIRTY] = 2 * MIB;
  r.bytes[ROLLUP_SHARED_CLEAN] = 16 * MIB;
  baseline_take(&t.baseline, &r, &o, 4096);
  t.baseline.at_ns = 1;
  t.baseline.relatives = relatives;
  track_find_change(&cycle, &t);
  return t;
}

TEST(estimate_stays_within_memory_if_relatives_shared_only_a_part) {
  const struct track t = sharing(2, 4);
  struct rollup u;

  estimate_rollup(&cycle, &t, &u);
  assert_true(u.bytes[ROLLUP_PSS_ANON] <= 10 * MIB);
  assert_int_equal(u.bytes[ROLLUP_PSS_FILE], 4 * MIB);
}

/* The set knows the cost of one kind of pages. The cost of the other kind is
 * derived from the number of relatives, which may not map these pages. */
TEST(pages_of_the_other_kind_are_in_doubt_with_the_relatives) {
  struct track t = sharing(2, 2);
  struct bounds x;

  bounds_of(&cycle, &t, &x);
  assert_true(x.bytes[CAUSE_RELATIVES] == 5 * MIB);
  t.baseline.rollup.bytes[ROLLUP_PSS_SHMEM] = 5 * MIB;
  t.baseline.rollup.bytes[ROLLUP_PSS] += 5 * MIB;
  bounds_of(&cycle, &t, &x);
  assert_true(x.bytes[CAUSE_RELATIVES] == 7 * MIB);
}

/* Clean anonymous memory came back from swap and was not written since. Beside
 * files that others map, too, the sum alone does not limit what is private. */
TEST(clean_memory_goes_after_dirty_memory) {
  struct track t = sharing(2, 1);
  struct rollup u = t.baseline.rollup;
  const struct observation o = t.baseline.at;

  u.bytes[ROLLUP_PSS] = 14 * MIB;
  u.bytes[ROLLUP_PSS_ANON] = 10 * MIB;
  u.bytes[ROLLUP_SHARED_DIRTY] = 0;
  u.bytes[ROLLUP_PRIVATE_DIRTY] = 2 * MIB;
  u.bytes[ROLLUP_PRIVATE_CLEAN] = 8 * MIB;
  baseline_take(&t.baseline, &u, &o, 4096);
  t.baseline.at_ns = 1;
  t.baseline.relatives = 1;
  t.now.resident_pages -= (uint32_t)(5 * MIB / 4096);
  track_find_change(&cycle, &t);
  estimate_rollup(&cycle, &t, &u);
  assert_int_equal(u.bytes[ROLLUP_PRIVATE_DIRTY], 0);
  assert_int_equal(u.bytes[ROLLUP_PRIVATE_CLEAN], 5 * MIB);
  assert_int_equal(u.bytes[ROLLUP_PSS], 9 * MIB);
}

/* Of 4 MiB in swap, 2 are its own, and 2 are shared by two, and then by four.
 */
TEST(only_shared_swap_costs_less_with_more_relatives) {
  struct track t = sharing(2, 2);
  struct fork_family family = {.members = 4};
  struct rollup u;

  t.baseline.rollup.bytes[ROLLUP_SWAP] = 4 * MIB;
  t.baseline.rollup.bytes[ROLLUP_SWAP_PSS] = 3 * MIB;
  t.baseline.at.vm_swap_kb = t.now.vm_swap_kb = 4096;
  t.family = &family;
  t.kinship = KINSHIP_HEAD;
  track_find_change(&cycle, &t);
  estimate_rollup(&cycle, &t, &u);
  assert_int_equal(u.bytes[ROLLUP_SWAP_PSS], 2 * MIB + MIB / 2);
}

/* What three relatives got back from swap may be theirs alone, or this process
 * pays a fourth of it: three fourths are in doubt. */
TEST(memory_that_relatives_got_back_is_in_doubt) {
  struct track t = sharing(4, 4);
  struct fork_family family = {.members = 4, .told.got_back = 5 * MIB};
  struct bounds x;

  t.family = &family;
  t.kinship = KINSHIP_HEAD;
  t.told.got_back = MIB;
  bounds_of(&cycle, &t, &x);
  assert_true(x.bytes[CAUSE_SWAP] == 3 * MIB);
}
