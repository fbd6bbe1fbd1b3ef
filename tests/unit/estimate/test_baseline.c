/* SPDX-License-Identifier: MIT */
/* A reading shows strangers: processes that share its memory and are not known.
 */
#include "test.h"

#include <math.h>

#include "base/duration.h"
#include "estimate/estimator.h"

/* A process that shares by copy on write, and files with nobody. */
static struct rollup sharing(unsigned own_mib, unsigned cow_mib,
                             unsigned sharers, unsigned files_mib) {
  struct rollup r = {.known = UINT32_MAX};
  uint64_t own = own_mib * MIB, files = files_mib * MIB;
  uint64_t cost = cow_mib * MIB / sharers;

  r.bytes[ROLLUP_ANONYMOUS] = own + cow_mib * MIB;
  r.bytes[ROLLUP_PSS_ANON] = own + cost;
  r.bytes[ROLLUP_PSS_FILE] = files;
  r.bytes[ROLLUP_PSS] = own + cost + files;
  r.bytes[ROLLUP_RSS] = own + cow_mib * MIB + files;
  r.bytes[ROLLUP_PRIVATE_DIRTY] = own + files;
  r.bytes[ROLLUP_SHARED_DIRTY] = cow_mib * MIB;
  return r;
}

TEST(sharers_beyond_the_relatives_are_strangers) {
  static const struct {
    unsigned own_mib, cow_mib, sharers, files_mib, relatives, strangers;
  } rows[] = {
      {100, 0, 1, 0, 1, 0},    {100, 100, 2, 0, 2, 0}, {0, 100, 2, 0, 1, 1},
      {100, 100, 2, 0, 1, 1},  {0, 100, 3, 0, 1, 2},   {0, 100, 3, 0, 2, 1},
      {50, 100, 4, 0, 3, 1},   {50, 100, 3, 0, 5, 0},  {0, 1000, 9, 0, 8, 1},
      {0, 100, 3, 1, 2, 1},    {0, 1, 2, 8, 1, 1},     {0, 4, 3, 64, 2, 1},
      {0, 6400, 999, 0, 1, 63}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct rollup r = sharing(rows[i].own_mib, rows[i].cow_mib, rows[i].sharers,
                              rows[i].files_mib);

    if (strangers_seen(&r, rows[i].relatives) != rows[i].strangers)
      fail_msg("row %zu: %u strangers", i,
               strangers_seen(&r, rows[i].relatives));
  }
}

/* One page of a gigabyte would do. */
TEST(strangers_are_seen_beside_merged_pages) {
  struct rollup r = sharing(20, 80, 2, 0);

  r.bytes[ROLLUP_ANONYMOUS] += 40 * MIB;
  r.bytes[ROLLUP_RSS] += 40 * MIB;
  r.bytes[ROLLUP_KSM] = 40 * MIB;
  assert_int_equal(strangers_seen(&r, 1), 1);
  assert_int_equal(strangers_seen(&r, 2), 0);
  assert_true(strangers_part(&r, 1, 1) == 40.0 * MIB);
  r = sharing(20, 90, 3, 0);
  r.bytes[ROLLUP_ANONYMOUS] += 40 * MIB;
  r.bytes[ROLLUP_KSM] = 40 * MIB;
  assert_int_equal(strangers_seen(&r, 1), 2);
}

/* Pages of both kinds may be private, too. */
TEST(strangers_are_seen_beside_files_and_shmem) {
  struct rollup r = sharing(20, 90, 3, 8);

  r.bytes[ROLLUP_PSS_FILE] -= 4 * MIB;
  r.bytes[ROLLUP_PSS_SHMEM] += 4 * MIB;
  assert_int_equal(strangers_seen(&r, 1), 2);
}

/* Some pages may have fewer sharers. */
TEST(strangers_are_rounded) {
  struct rollup r = sharing(0, 100, 2, 0);

  r.bytes[ROLLUP_PSS_ANON] = 1000 * MIB / 27;
  assert_int_equal(strangers_seen(&r, 2), 1);
  r.bytes[ROLLUP_PSS_ANON] = 1000 * MIB / 23;
  assert_int_equal(strangers_seen(&r, 2), 0);
}

/* It costs 45 MiB, which cannot be distinguished from the part that the child
 * pays. */
TEST(cost_of_merged_pages_is_in_doubt_beside_strangers) {
  struct rollup r = sharing(100, 100, 2, 0);

  r.bytes[ROLLUP_ANONYMOUS] += 900 * MIB;
  r.bytes[ROLLUP_PSS_ANON] += 45 * MIB;
  r.bytes[ROLLUP_KSM] = 900 * MIB;
  assert_int_equal(strangers_seen(&r, 1), 1);
  assert_true(strangers_part(&r, 1, 1) == 95.0 * MIB);
  assert_true(strangers_part(&r, 1, 2) == 190.0 * MIB);
}

/* Together, all that are known pay what is theirs again. */
TEST(strangers_pay_the_part_that_others_do_not_pay) {
  struct rollup alone = sharing(0, 120, 2, 0), three = sharing(0, 120, 4, 0);

  assert_true(strangers_part(&alone, 1, 1) == 60.0 * MIB);
  assert_true(strangers_part(&three, 3, 1) == 10.0 * MIB);
  assert_true(strangers_part(&three, 4, 0) <= 0);
  /* If others than these share it, too, it was 90 of 120 that they pay. */
  assert_true(strangers_part(&three, 1, 2) == 90.0 * MIB);
  assert_true(strangers_part(&three, 2, 1) == 22.5 * MIB);
}

struct fixture {
  struct cycle e;
  struct sharing set;
  struct track track;
};

static void read_at(struct fixture *f, uint64_t seconds, struct rollup found) {
  struct observation o = {.resident_pages =
                              (uint32_t)(found.bytes[ROLLUP_RSS] / 4096)};
  f->e.before_ns = f->e.now_ns;
  f->e.now_ns = seconds * NS_PER_S;
  f->e.is_swap_used = true;
  estimator_observe(&f->e, &f->track, &f->set, &o);
  estimator_advance(&f->track);
  o = f->track.now;
  o.vm_swap_kb = (uint32_t)(found.bytes[ROLLUP_SWAP] / 1024);
  estimator_correct(&f->e, &f->track, &found, &o);
}

static void expect(const struct fixture *f, enum strangers strangers) {
  assert_int_equal(f->track.strangers, strangers);
  assert_int_equal(f->track.unsure_bytes > 0, strangers == STRANGERS_NEW);
}

TEST(strangers_that_came_since_the_last_reading_are_new) {
  struct fixture f = {.e = {.page_size = 4096}};

  sharing_init(&f.set, 0);
  read_at(&f, 1, sharing(120, 0, 1, 0));
  expect(&f, STRANGERS_NONE);
  read_at(&f, 2, sharing(0, 120, 2, 0));
  expect(&f, STRANGERS_NEW);
  read_at(&f, 3, sharing(0, 120, 2, 0));
  expect(&f, STRANGERS_CONFIRMED);
  read_at(&f, 4, sharing(0, 130, 2, 0));
  expect(&f, STRANGERS_CONFIRMED);
}

/* One of them may have ended, and been a child that is known. */
TEST(strangers_beside_a_family_that_changed_are_new) {
  struct fork_family family = {.members = 1, .changes = 1};
  struct fixture f = {.e = {.page_size = 4096}};

  sharing_init(&f.set, 0);
  sharing_init(&family.sharing, 0);
  read_at(&f, 1, sharing(120, 0, 1, 0));
  read_at(&f, 2, sharing(0, 120, 2, 0));
  f.track.family = &family;
  f.track.kinship = KINSHIP_HEAD;
  for (uint64_t seconds = 3; seconds <= 5; seconds++) {
    read_at(&f, seconds, sharing(0, 120, 2, 0));
    expect(&f, seconds == 4 ? STRANGERS_CONFIRMED : STRANGERS_NEW);
    family.changes += seconds == 4;
  }
}

/* Those of a first reading may stay. */
TEST(strangers_are_counted_until_the_next_reading) {
  struct fixture f = {.e = {.page_size = 4096}}, first = f;

  sharing_init(&first.set, 0);
  read_at(&first, 1, sharing(0, 100, 3, 0));
  assert_int_equal(first.track.baseline.relatives, 0);
  sharing_init(&f.set, 0);
  read_at(&f, 1, sharing(100, 0, 1, 0));
  read_at(&f, 2, sharing(0, 100, 3, 0));
  assert_int_equal(f.track.baseline.relatives, 3);
  read_at(&f, 3, sharing(0, 100, 3, 0));
  assert_int_equal(f.track.baseline.relatives, 1);
}

static struct rollup before_6_7(struct rollup r) {
  r.known &= ~(1U << ROLLUP_KSM);
  return r;
}

/* Linux before 6.7 has no field for them. */
TEST(merged_pages_do_not_count_as_strangers) {
  struct fixture f = {.e = {.page_size = 4096, .ksm_merged_ns = 2 * NS_PER_S}};

  sharing_init(&f.set, 0);
  read_at(&f, 1, before_6_7(sharing(100, 0, 1, 0)));
  read_at(&f, 2, before_6_7(sharing(0, 100, 2, 0)));
  expect(&f, STRANGERS_CONFIRMED);
  read_at(&f, 3, before_6_7(sharing(100, 0, 1, 0)));
  read_at(&f, 4, before_6_7(sharing(0, 100, 2, 0)));
  expect(&f, STRANGERS_NEW);
}

/* Lessons were of other changes. */
TEST(strangers_may_have_all_that_is_taken_for_private) {
  struct fixture f = {.e = {.page_size = 4096}};
  struct prediction p;

  sharing_init(&f.set, 0);
  read_at(&f, 1, sharing(100, 0, 1, 0));
  read_at(&f, 2, sharing(0, 100, 2, 0));
  f.set.audit.uss = (struct rate){.bound = 1, .known = 1};
  estimator_predict(&f.e, &f.track, &p);
  assert_int_equal(rollup_uss(&p.rollup), 100 * MIB);
  assert_true(error_bytes(p.error.uss) >= 100.0 * MIB);
}

/* So memory that goes to swap later, and none was there before, costs all. */
TEST(without_anonymous_memory_nothing_of_it_is_shared) {
  struct baseline b;
  struct rollup r = sharing(0, 0, 1, 8);
  const struct observation o = {.resident_pages = 8 * MIB / 4096};

  baseline_take(&b, &r, &o, 4096);
  assert_true(baseline_anonymous_share(&b) == 1.0);
  r = sharing(2, 2, 2, 8);
  baseline_take(&b, &r, &o, 4096);
  assert_true(baseline_anonymous_share(&b) == 0.75);
}

/* --- what a reading says, calculated by hand --- */

static void assert_near(double is, double expected) {
  if (!(fabs(is - expected) <= 1e-6 * (1 + fabs(expected))))
    fail_msg("%f and not %f", is, expected);
}

/* 8 MiB of its own, and 2 that it shares by copy on write with another; it pays
 * 3 for 12 MiB of files, and 1 for 4 MiB of shmem. */
static struct baseline taken(uint16_t relatives) {
  struct rollup r = sharing(8, 2, 2, 0);
  const struct observation o = {.resident_pages = 26 * MIB / PAGE + 3,
                                .shared_pages = 16 * MIB / PAGE,
                                .vm_swap_kb = 4096};
  struct baseline b;

  r.bytes[ROLLUP_RSS] = 26 * MIB;
  r.bytes[ROLLUP_PSS_FILE] = 3 * MIB;
  r.bytes[ROLLUP_PSS_SHMEM] = MIB;
  r.bytes[ROLLUP_PSS] = 13 * MIB;
  r.bytes[ROLLUP_SWAP] = 4 * MIB;
  r.bytes[ROLLUP_SWAP_PSS] = 3 * MIB;
  baseline_take(&b, &r, &o, PAGE);
  b.relatives = relatives;
  return b;
}

/* 1 MiB that others pay is an n-th less than all that is shared. */
TEST(what_is_shared_follows_from_the_number_of_relatives) {
  static const struct {
    uint16_t relatives;
    double shared_mib, share;
  } rows[] = {
      {0, 2, 0.5}, {1, 2, 0.5}, {2, 2, 0.5}, {4, 4 / 3., 0.25}, {5, 1.25, 0.2}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct baseline b = taken(rows[i].relatives);

    assert_int_equal(baseline_cow_shared(&b),
                     (uint64_t)(rows[i].shared_mib * (double)MIB));
    assert_near(baseline_cow_share(&b), rows[i].share);
    assert_int_equal(b.off_pages, 3);
  }
}

/* It is not more than there is, and nothing where all is private. */
TEST(not_more_is_shared_than_anonymous_memory) {
  struct baseline b = taken(2);

  b.rollup.bytes[ROLLUP_PSS_ANON] = 4 * MIB;
  assert_int_equal(baseline_cow_shared(&b), 10 * MIB);
  assert_near(baseline_cow_share(&b), 0.4);
  b.rollup.bytes[ROLLUP_PSS_ANON] = 10 * MIB;
  assert_int_equal(baseline_cow_shared(&b), 0);
  assert_near(baseline_cow_share(&b), 0);
}

/* The rollup has the sum of what is private: what cannot be of files is
 * anonymous, or what is not shared, if that is more. */
TEST(private_memory_is_divided_between_the_kinds) {
  static const struct {
    unsigned uss, anon, file, shmem;
  } rows[] = {{8, 8, 0, 0},  {6, 6, 0, 0},   {9, 8, 1, 0},
              {12, 8, 3, 1}, {14, 10, 3, 1}, {0, 0, 0, 0}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct baseline b = taken(2);
    struct private_bytes own;

    b.rollup.bytes[ROLLUP_PRIVATE_DIRTY] = rows[i].uss * MIB;
    own = baseline_private(&b);
    assert_int_equal(own.anon, rows[i].anon * MIB);
    assert_int_equal(own.file, rows[i].file * MIB);
    assert_int_equal(own.shmem, rows[i].shmem * MIB);
    assert_int_equal(baseline_private_file_bytes(&b),
                     (rows[i].uss - rows[i].anon) * MIB);
  }
}

TEST(files_cost_their_part_of_what_statm_counts) {
  struct baseline b = taken(2);

  assert_near(baseline_file_share(&b, PAGE), 4 / 16.0);
  b.rollup.bytes[ROLLUP_PSS_FILE] = 15 * MIB;
  assert_near(baseline_file_share(&b, PAGE), 1);
  b.rollup.bytes[ROLLUP_PSS_FILE] = 20 * MIB; /* statm lacks some */
  assert_near(baseline_file_share(&b, PAGE), 1);
  b.rollup.bytes[ROLLUP_PSS_FILE] = 14 * MIB;
  assert_near(baseline_file_share(&b, PAGE), 15 / 16.0);
  /* Before 5.3 all that is not anonymous. */
  b.rollup.known &= ~(1U << ROLLUP_PSS_FILE);
  assert_near(baseline_file_share(&b, PAGE), 3 / 16.0);
  b.at.shared_pages = 0;
  assert_near(baseline_file_share(&b, PAGE), 1);
}

/* If 3 of 4 MiB are paid and a shared page costs a half, a half is shared. */
TEST(swap_is_private_as_far_as_it_costs_more_than_shared_swap) {
  static const struct {
    uint16_t relatives;
    double pss_mib, share, part;
  } rows[] = {{1, 3, 0.75, 0.5}, {4, 3, 0.75, 2 / 3.}, {2, 1, 0.25, 0},
              {2, 2, 0.5, 0},    {2, 4, 1, 1},         {2, 5, 1, 1}};
  struct baseline b;

  for (size_t i = 0; i < LENGTH(rows); i++) {
    b = taken(rows[i].relatives);
    b.rollup.bytes[ROLLUP_SWAP_PSS] = (uint64_t)(rows[i].pss_mib * (double)MIB);
    assert_near(baseline_swap_share(&b), rows[i].share);
    assert_near(baseline_private_swap_part(&b), rows[i].part);
  }
  b.at.vm_swap_kb = 0;
  assert_near(baseline_swap_share(&b), 1);
}
