/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <string.h>

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

/* Of 4 MiB in swap, two shared half when it was read. */
static struct track half_swapped(struct fork_family *family) {
  struct track t = sharing(2, 2);

  t.baseline.rollup.bytes[ROLLUP_SWAP] = 4 * MIB;
  t.baseline.rollup.bytes[ROLLUP_SWAP_PSS] = 3 * MIB;
  t.baseline.at.vm_swap_kb = t.now.vm_swap_kb = 4096;
  t.family = family;
  t.kinship = KINSHIP_HEAD;
  return t;
}

/* Of 4 MiB in swap, 2 are its own, and 2 are shared by two, and then by four.
 */
TEST(only_shared_swap_costs_less_with_more_relatives) {
  struct fork_family family = {.members = 4};
  struct track t = half_swapped(&family);
  struct rollup u;

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

/* --- values, calculated by hand --- */

static void assert_bytes(const struct rollup *u, enum rollup_field field,
                         double mib) {
  if (fabs((double)u->bytes[field] / (double)MIB - mib) > 1e-6)
    fail_msg("field %d is %.6f MiB and not %.6f", field,
             (double)u->bytes[field] / (double)MIB, mib);
}

static void assert_mib(double bytes, double mib) {
  if (!(fabs(bytes / (double)MIB - mib) < 1e-6))
    fail_msg("%.6f MiB and not %.6f", bytes / (double)MIB, mib);
}

/* Adds pages of 4 KiB, or takes some away. */
static void move_pages(struct track *t, int anon, int shared, int swap_kb) {
  t->now.resident_pages += (uint32_t)(anon + shared);
  t->now.shared_pages += (uint32_t)shared;
  t->now.vm_swap_kb += (uint32_t)swap_kb;
  track_find_change(&cycle, t);
}

static struct rollup estimate(struct track *t) {
  struct rollup u;

  estimate_rollup(&cycle, t, &u);
  return u;
}

static double bound(const struct track *t, enum cause cause) {
  struct bounds x;

  bounds_of(&cycle, t, &x);
  return x.bytes[cause];
}

#define MIB_PAGES 256

/* Even where the kernel's own fields do not agree. */
TEST(without_a_change_the_estimate_is_the_reading) {
  struct track t = sharing(2, 1);
  struct rollup u;

  t.baseline.rollup.bytes[ROLLUP_PSS_DIRTY] = 100 * MIB;
  t.baseline.rollup.bytes[ROLLUP_SHARED_CLEAN] += 4096;
  t.baseline.rollup.bytes[ROLLUP_SHARED_HUGETLB] = 7 * MIB;
  u = estimate(&t);
  assert_memory_equal(&u, &t.baseline.rollup, sizeof(u));
}

/* The kernel rounds each of its numbers down. */
TEST(private_memory_is_followed_to_the_byte) {
  static const int pages[] = {-1000, -1, 1, 1000};

  for (size_t i = 0; i < LENGTH(pages); i++) {
    struct track t = sharing(2, 1);
    struct rollup u, *r = &t.baseline.rollup;
    int64_t by = pages[i] * (int64_t)PAGE;

    r->bytes[ROLLUP_PSS] += 1024;
    move_pages(&t, pages[i], 0, 0);
    u = estimate(&t);
    assert_int_equal(u.bytes[ROLLUP_PSS], (int64_t)r->bytes[ROLLUP_PSS] + by);
    assert_int_equal(u.bytes[ROLLUP_RSS], (int64_t)r->bytes[ROLLUP_RSS] + by);
    assert_int_equal(rollup_uss(&u), (int64_t)rollup_uss(r) + by);
    assert_int_equal(u.bytes[ROLLUP_PSS_ANON],
                     (int64_t)r->bytes[ROLLUP_PSS_ANON] + by);
  }
}

/* 16 MiB of files cost 4 here. A page of a set that others map twice as often
 * now costs half as much, also one that came. */
TEST(pages_of_files_cost_the_share_of_the_set) {
  for (int is_shmem = 0; is_shmem < 2; is_shmem++) {
    enum rollup_field field = is_shmem ? ROLLUP_PSS_SHMEM : ROLLUP_PSS_FILE;
    enum rollup_field other = is_shmem ? ROLLUP_PSS_FILE : ROLLUP_PSS_SHMEM;
    struct track t = sharing(2, 1);
    struct rollup u;

    t.baseline.rollup.bytes[ROLLUP_REFERENCED] = 20 * MIB;
    t.baseline.rollup.bytes[other] = 0;
    t.baseline.rollup.bytes[field] = 4 * MIB;
    move_pages(&t, 0, 4 * MIB_PAGES, 0);
    u = estimate(&t);
    assert_bytes(&u, ROLLUP_RSS, 30);
    assert_bytes(&u, ROLLUP_REFERENCED, 24);
    assert_bytes(&u, ROLLUP_ANONYMOUS, 10);
    assert_bytes(&u, ROLLUP_PSS, 14);
    assert_bytes(&u, field, 5);
    t.since.share = 0.5;
    u = estimate(&t);
    assert_bytes(&u, field, 2 + 0.5);
    assert_bytes(&u, other, 0);
    assert_bytes(&u, ROLLUP_PSS_ANON, 9);
    assert_bytes(&u, ROLLUP_PSS, 11.5);
    /* A page that came costs nothing or all, and is taken for a fourth. */
    assert_mib(bound(&t, CAUSE_FILES), 4 * 0.75);
    move_pages(&t, 0, -8 * MIB_PAGES, 0);
    assert_mib(bound(&t, CAUSE_FILES), 4 * 0.75);
    u = estimate(&t);
    assert_bytes(&u, field, 2 - 0.5);
    /* A fourth of the pages was mapped or unmapped by others. */
    t.since.moved = 0.25;
    assert_mib(bound(&t, CAUSE_FILES), 4 * 0.75 + 4 * 0.25);
  }
}

/* 3 MiB of files that no other process maps: half of 2 MiB of them, if others
 * have come to map as much. */
TEST(pages_that_were_private_may_have_got_other_mappers) {
  struct track t = sharing(2, 1);

  t.baseline.rollup.bytes[ROLLUP_PRIVATE_CLEAN] = 3 * MIB;
  t.baseline.rollup.bytes[ROLLUP_SHARED_CLEAN] = 13 * MIB;
  t.since.moved_pages = 2 * MIB_PAGES;
  assert_mib(bound(&t, CAUSE_FILES), 1);
  t.since.moved_pages = 8 * MIB_PAGES;
  assert_mib(bound(&t, CAUSE_FILES), 1.5);
}

/* Linux before 5.3 does not say which part of Pss is of files. */
TEST(without_parts_all_of_pss_beyond_uss_is_of_others) {
  struct track t = sharing(2, 2);
  struct fork_family family = {.members = 4};
  struct rollup u;

  t.baseline.rollup.known &=
      ~(1U << ROLLUP_PSS_ANON | 1U << ROLLUP_PSS_FILE | 1U << ROLLUP_PSS_SHMEM);
  t.baseline.rollup.bytes[ROLLUP_PSS_FILE] = 0;
  t.baseline.rollup.bytes[ROLLUP_PSS_ANON] = 0;
  t.since.moved = 0.5;
  assert_mib(bound(&t, CAUSE_FILES), 5 * 0.5);
  t.family = &family;
  t.kinship = KINSHIP_HEAD;
  u = estimate(&t);
  assert_bytes(&u, ROLLUP_PSS, 8 + 2.5);
  assert_bytes(&u, ROLLUP_PSS_FILE, 0);
  assert_int_equal(rollup_uss(&u), 8 * MIB);
}

/* It shared with strangers, of whom nothing is known. */
TEST(relatives_that_were_not_known_change_no_price) {
  struct track t = sharing(2, 0);
  struct rollup u = estimate(&t);

  assert_bytes(&u, ROLLUP_PSS_ANON, 9);
  assert_bytes(&u, ROLLUP_PSS, 13);
  assert_bytes(&u, ROLLUP_PRIVATE_DIRTY, 8);
}

TEST(the_last_of_a_family_owns_what_it_shared) {
  struct track t = sharing(2, 2);
  struct rollup u = estimate(&t);

  assert_bytes(&u, ROLLUP_PSS_ANON, 10);
  assert_bytes(&u, ROLLUP_PRIVATE_DIRTY, 10);
  assert_bytes(&u, ROLLUP_SHARED_DIRTY, 0);
  assert_bytes(&u, ROLLUP_PSS_FILE, 4);
  assert_bytes(&u, ROLLUP_PSS, 14);
}

/* Of 2 MiB that two share each pays half; 1 MiB was copied here, and then half
 * of one by the relative. */
TEST(copies_make_memory_private) {
  struct track t = sharing(2, 2);
  struct fork_family family = {.members = 2};
  struct rollup u;

  t.family = &family;
  t.kinship = KINSHIP_HEAD;
  t.broken_bytes = MIB;
  u = estimate(&t);
  assert_bytes(&u, ROLLUP_PRIVATE_DIRTY, 9);
  assert_bytes(&u, ROLLUP_SHARED_DIRTY, 1);
  assert_bytes(&u, ROLLUP_PSS_ANON, 9.5);
  assert_bytes(&u, ROLLUP_PSS, 13.5);
  assert_bytes(&u, ROLLUP_RSS, 26);
  assert_mib(bound(&t, CAUSE_COPIES), 1);
  family.told.cow_broken = MIB / 4 * 1024; /* in COW_BROKEN_UNITS */
  u = estimate(&t);
  assert_bytes(&u, ROLLUP_PRIVATE_DIRTY, 9.5);
  assert_bytes(&u, ROLLUP_SHARED_DIRTY, 0.5);
  assert_bytes(&u, ROLLUP_PSS_ANON, 9.75);
  assert_mib(bound(&t, CAUSE_COPIES), 1.25);
  /* What a third has copied may be shared by the other two. */
  family.members = t.baseline.relatives = 3;
  t.broken_bytes = 0;
  u = estimate(&t);
  assert_bytes(&u, ROLLUP_PSS_ANON, 9.25);
  assert_int_equal(rollup_uss(&u), 8 * MIB);
}

/* Shared clean memory is copied once there is no dirty one. */
TEST(copies_of_clean_memory_leave_less_of_it) {
  struct track t = sharing(2, 1);
  struct rollup u;

  t.baseline.rollup.bytes[ROLLUP_SHARED_DIRTY] = MIB / 2;
  t.baseline.rollup.bytes[ROLLUP_SHARED_CLEAN] = 16 * MIB + 3 * MIB / 2;
  t.broken_bytes = MIB;
  u = estimate(&t);
  assert_bytes(&u, ROLLUP_SHARED_DIRTY, 0);
  assert_bytes(&u, ROLLUP_SHARED_CLEAN, 17);
  assert_bytes(&u, ROLLUP_PRIVATE_DIRTY, 9);
}

/* 9 MiB went, of which 8 were private. The rest had cost half of it. */
TEST(what_goes_beyond_private_memory_had_cost_its_share) {
  struct track t = sharing(2, 1);
  struct rollup u;

  move_pages(&t, -9 * MIB_PAGES, 0, 0);
  u = estimate(&t);
  assert_bytes(&u, ROLLUP_PSS_ANON, 0.5);
  assert_bytes(&u, ROLLUP_PSS, 4.5);
  assert_bytes(&u, ROLLUP_ANONYMOUS, 1);
  assert_int_equal(rollup_uss(&u), 0);
  assert_mib(bound(&t, CAUSE_COPIES), 0.5);
  assert_mib(bound(&t, CAUSE_FREED), 0.5);
}

/* Swap of 4 MiB costs 3, so that half of it is private where two share the
 * rest. 2 MiB came back, to this process or to all. */
TEST(memory_from_swap_is_taken_half_way) {
  struct fork_family family = {.members = 2};
  struct track t = half_swapped(&family);
  struct rollup u;

  move_pages(&t, 2 * MIB_PAGES, 0, -2048);
  u = estimate(&t);
  assert_bytes(&u, ROLLUP_PSS_ANON, 9 + 2 * (1 + 0.75) / 2);
  assert_bytes(&u, ROLLUP_PRIVATE_DIRTY, 9);
  assert_bytes(&u, ROLLUP_SHARED_DIRTY, 3);
  assert_bytes(&u, ROLLUP_ANONYMOUS, 12);
  assert_bytes(&u, ROLLUP_SWAP, 2);
  assert_bytes(&u, ROLLUP_SWAP_PSS, 1.5);
  /* Half of it in doubt, and so is half of what the other got back. */
  assert_mib(bound(&t, CAUSE_SWAP), 1);
  family.told.got_back = MIB;
  assert_mib(bound(&t, CAUSE_SWAP), 1 + 0.5);
  t.family = NULL;
  t.kinship = KINSHIP_ALONE;
  assert_mib(bound(&t, CAUSE_SWAP), 2 * (1 - 0.75) / 2);
}

/* 10 MiB cost 9. */
TEST(memory_that_goes_to_swap_is_shared_as_all_is) {
  struct track t = sharing(2, 1);
  struct rollup u;

  move_pages(&t, -2 * MIB_PAGES, 0, 2048);
  u = estimate(&t);
  assert_bytes(&u, ROLLUP_SWAP, 2);
  assert_bytes(&u, ROLLUP_SWAP_PSS, 2 * 0.9);
  assert_bytes(&u, ROLLUP_PSS_ANON, 7);
  assert_mib(bound(&t, CAUSE_SWAP), 2 * 0.1);
  assert_mib(bound(&t, CAUSE_FREED), 0);
  /* As much came as went out. */
  move_pages(&t, 2 * MIB_PAGES, 0, 0);
  assert_mib(bound(&t, CAUSE_SWAP), 0);
}

/* 2 MiB are shared: half of what was freed may have been. Relatives freed as
 * much as they share: all of these may have freed the same pages. */
TEST(freed_memory_may_have_been_shared_with_relatives) {
  static const struct {
    uint32_t members;
    unsigned own_mib, others_mib;
    double mib;
  } rows[] = {{2, 1, 0, 0.5}, {2, 0, 1, 0.5},    {2, 1, 1, 1},
              {2, 0, 4, 1},   {3, 0, 2, 2 / 3.}, {3, 0, 9, 3 * 2 / 3.}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct track t =
        sharing(rows[i].members == 2 ? 2 : 3, (uint16_t)rows[i].members);
    struct fork_family family = {.members = rows[i].members,
                                 .told.freed = (1 + rows[i].others_mib) * MIB};

    if (rows[i].members == 3) /* 3 MiB are shared by three */
      t.baseline.rollup.bytes[ROLLUP_PSS_ANON] = 8 * MIB;
    t.family = &family;
    t.kinship = KINSHIP_HEAD;
    t.told.freed = MIB;
    move_pages(&t, -(int)rows[i].own_mib * MIB_PAGES, 0, 0);
    assert_mib(bound(&t, CAUSE_FREED), rows[i].mib);
  }
}

TEST(number_of_relatives_puts_all_they_may_share_in_doubt) {
  struct track t = sharing(2, 2);
  struct fork_family family = {.members = 4};

  t.family = &family;
  t.kinship = KINSHIP_HEAD;
  t.baseline.rollup.bytes[ROLLUP_PSS_SHMEM] = MIB;
  move_pages(&t, 2 * MIB_PAGES, 0, 0);
  assert_mib(bound(&t, CAUSE_RELATIVES), 0.5 * (12 + 1));
  move_pages(&t, -4 * MIB_PAGES, 0, 0);
  assert_mib(bound(&t, CAUSE_RELATIVES), 0.5 * (10 + 1));
}

/* What is shared, or may come to be, by the root of the time. */
TEST(doubt_grows_with_the_root_of_time) {
  struct cycle later = {.now_ns = 9 * NS + 1, .page_size = 4096};
  struct track t = sharing(2, 1);
  struct bounds x;

  t.baseline.rollup.bytes[ROLLUP_PRIVATE_CLEAN] = 2 * MIB;
  t.baseline.rollup.bytes[ROLLUP_PSS_FILE] += 2 * MIB;
  t.baseline.rollup.bytes[ROLLUP_PSS] += 2 * MIB;
  bounds_of(&later, &t, &x);
  assert_mib(x.bytes[CAUSE_TIME], 3 * (5 + 2));
}

/* Merged pages since the reading; or before 6.7, when they are not known, all
 * of anonymous memory. */
TEST(merged_pages_are_in_doubt_while_ksm_changes_them) {
  static const struct {
    uint64_t merged_s, changed_s;
    bool is_known;
    double mib;
  } rows[] = {{3, 3, true, 12}, {2, 2, true, 0},  {1, 3, true, 3},
              {1, 2, true, 0},  {1, 1, false, 0}, {1, 3, false, 10}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct cycle now = {.now_ns = 9 * NS,
                        .page_size = 4096,
                        .ksm_merged_ns = rows[i].merged_s * NS,
                        .ksm_changed_ns = rows[i].changed_s * NS};
    struct track t = sharing(2, 1);
    struct bounds x;

    t.baseline.at_ns = 2 * NS;
    t.baseline.rollup.bytes[ROLLUP_KSM] = 3 * MIB;
    if (!rows[i].is_known)
      t.baseline.rollup.known &= ~(1U << ROLLUP_KSM);
    move_pages(&t, 2 * MIB_PAGES, 0, 0);
    bounds_of(&now, &t, &x);
    assert_mib(x.bytes[CAUSE_KSM], rows[i].mib);
  }
}

/* --- relations that the kernel guarantees --- */

TEST(parts_are_not_more_than_the_whole) {
  struct rollup u = {.known = UINT32_MAX,
                     .bytes = {[ROLLUP_RSS] = 100,
                               [ROLLUP_PSS] = 80,
                               [ROLLUP_PSS_ANON] = 90,
                               [ROLLUP_PSS_FILE] = 30,
                               [ROLLUP_PSS_SHMEM] = 10,
                               [ROLLUP_ANONYMOUS] = 60,
                               [ROLLUP_PRIVATE_CLEAN] = 30,
                               [ROLLUP_PRIVATE_DIRTY] = 90,
                               [ROLLUP_SHARED_CLEAN] = 10,
                               [ROLLUP_SHARED_DIRTY] = 30,
                               [ROLLUP_PSS_DIRTY] = 99,
                               [ROLLUP_REFERENCED] = 101,
                               [ROLLUP_KSM] = 61,
                               [ROLLUP_LAZY_FREE] = 61,
                               [ROLLUP_ANON_HUGE_PAGES] = 61,
                               [ROLLUP_SHMEM_PMD_MAPPED] = 101,
                               [ROLLUP_FILE_PMD_MAPPED] = 101,
                               [ROLLUP_SWAP] = 7,
                               [ROLLUP_SWAP_PSS] = 8,
                               [ROLLUP_LOCKED] = 81}};
  static const struct rollup settled = {
      .known = UINT32_MAX,
      .bytes = {[ROLLUP_RSS] = 100,
                [ROLLUP_PSS] = 80,
                [ROLLUP_PSS_ANON] = 60,
                [ROLLUP_PSS_FILE] = 15,
                [ROLLUP_PSS_SHMEM] = 5,
                [ROLLUP_ANONYMOUS] = 60,
                [ROLLUP_PRIVATE_CLEAN] = 20,
                [ROLLUP_PRIVATE_DIRTY] = 60,
                [ROLLUP_SHARED_CLEAN] = 5,
                [ROLLUP_SHARED_DIRTY] = 15,
                [ROLLUP_PSS_DIRTY] = 80,
                [ROLLUP_REFERENCED] = 100,
                [ROLLUP_KSM] = 60,
                [ROLLUP_LAZY_FREE] = 60,
                [ROLLUP_ANON_HUGE_PAGES] = 60,
                [ROLLUP_SHMEM_PMD_MAPPED] = 100,
                [ROLLUP_FILE_PMD_MAPPED] = 100,
                [ROLLUP_SWAP] = 7,
                [ROLLUP_SWAP_PSS] = 7,
                [ROLLUP_LOCKED] = 80}};

  estimate_settle(&u);
  for (unsigned field = 0; field < ROLLUP_FIELDS; field++)
    if (u.bytes[field] != settled.bytes[field])
      fail_msg("field %u: %u", field, (unsigned)u.bytes[field]);
}

/* What is missing goes to the first of the two, if both are 0. */
TEST(empty_parts_get_the_whole) {
  struct rollup u = {.known = UINT32_MAX,
                     .bytes = {[ROLLUP_RSS] = 100, [ROLLUP_PSS] = 150}};

  estimate_settle(&u);
  assert_int_equal(u.bytes[ROLLUP_PSS], 100);
  assert_int_equal(u.bytes[ROLLUP_SHARED_CLEAN], 100);
  assert_int_equal(u.bytes[ROLLUP_SHARED_DIRTY], 0);
  assert_int_equal(u.bytes[ROLLUP_PSS_FILE], 100);
  assert_int_equal(u.bytes[ROLLUP_PSS_SHMEM], 0);
}
