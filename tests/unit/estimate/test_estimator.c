/* SPDX-License-Identifier: MIT */
/* The verbs of the estimator, one by one. Their figures: measure/test_oracle.c;
 * families: test_fork_family.c and member/test_newborn.c. */
#include "test.h"

#include <inttypes.h>

#include "base/duration.h"
#include "estimate/estimator.h"

/* A process of 4 MiB, of which 1 MiB is a file, and its group. */
struct fixture {
  struct cycle cycle;
  struct sharing set;
  struct sampled_error error;
  struct track track;
};

static const struct rollup private_and_file = {
    .known = UINT32_MAX,
    .bytes = {[ROLLUP_RSS] = 4 * MIB,
              [ROLLUP_PSS] = 3 * MIB + MIB / 4,
              [ROLLUP_PSS_ANON] = 3 * MIB,
              [ROLLUP_PSS_FILE] = MIB / 4,
              [ROLLUP_ANONYMOUS] = 3 * MIB,
              [ROLLUP_PRIVATE_DIRTY] = 3 * MIB,
              [ROLLUP_SHARED_CLEAN] = MIB}};

static const struct observation at_first = {
    .resident_pages = 1024, .shared_pages = 256, .threads = 1};

static void begin_cycle(struct fixture *f, const struct observation *o) {
  f->cycle.before_ns = f->cycle.now_ns;
  f->cycle.now_ns += NS_PER_S;
  estimator_observe(&f->cycle, &f->track, &f->set, o);
}

/* In the cycle in which it was read. */
static int make(void **state) {
  static struct fixture f;

  f = (struct fixture){.cycle = {.page_size = 4096},
                       .track = {.sample_error = &f.error}};
  sharing_init(&f.set, 0);
  begin_cycle(&f, &at_first);
  estimator_advance(&f.track);
  estimator_correct(&f.cycle, &f.track, &private_and_file, &at_first);
  *state = &f;
  return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, make, NULL, struct fixture *f)

static uint64_t predicted_pss(const struct fixture *f) {
  struct prediction p;

  estimator_predict(&f->cycle, &f->track, &p);
  return p.rollup.bytes[ROLLUP_PSS];
}

FIXTURE_TEST(nothing_has_changed_right_after_a_reading) {
  struct prediction p;

  estimator_predict(&f->cycle, &f->track, &p);
  assert_int_equal(p.rollup.bytes[ROLLUP_PSS], 3 * MIB + MIB / 4);
  assert_int_equal(p.age_ns, 0);
  assert_true(error_bytes(p.error.pss) <= 0);
}

FIXTURE_TEST(without_a_baseline_all_that_is_resident_may_be_wrong) {
  struct error error;

  estimator_forget(&f->track);
  error = estimator_expect(&f->cycle, &f->track);
  assert_true(error_bytes(error) == 4.0 * MIB);
}

/* It is of no use to a process that runs another program. */
/* A newborn gets the swap of its parent after it was observed. */
FIXTURE_TEST(a_derived_baseline_keeps_the_bound_of_swap_that_came_back) {
  struct rollup r = private_and_file;
  struct observation o = at_first;

  r.bytes[ROLLUP_SWAP] = MIB;
  r.bytes[ROLLUP_SWAP_PSS] = MIB / 2;
  o.vm_swap_kb = 1024;
  begin_cycle(f, &o);
  estimator_advance(&f->track);
  estimator_correct(&f->cycle, &f->track, &r, &o);
  o.resident_pages += 256;
  begin_cycle(f, &o);
  f->track.now.vm_swap_kb = 0;
  estimator_derive(&f->cycle, &f->track, &r, NS_PER_S, ORIGIN_INHERITED, 0);
  assert_true(f->track.derived_bytes >= MIB / 4.0);
}

FIXTURE_TEST(nothing_of_a_derived_baseline_is_left_once_it_is_forgotten) {
  begin_cycle(f, &at_first);
  estimator_derive(&f->cycle, &f->track, &private_and_file, NS_PER_S,
                   ORIGIN_DIVIDED, 1e6);
  assert_true(f->track.derived_bytes >= 1e6);
  estimator_forget(&f->track);
  assert_int_equal(f->track.origin, ORIGIN_READING);
  assert_true(f->track.derived_bytes <= 0);
  assert_false(track_has_baseline(&f->track));
}

/* Another process comes to map the file: each of the two pays half as much. */
FIXTURE_TEST(what_others_do_counts_from_advancing_on) {
  struct track other = {.kinship = KINSHIP_ALONE};

  begin_cycle(f, &at_first);
  estimator_observe(&f->cycle, &other, &f->set, &at_first);
  assert_int_equal(predicted_pss(f), 3 * MIB + MIB / 4);
  estimator_advance(&f->track);
  assert_int_equal(predicted_pss(f), 3 * MIB + MIB / 8);
  /* Until the next cycle nothing more comes. */
  estimator_expect(&f->cycle, &f->track);
  assert_int_equal(predicted_pss(f), 3 * MIB + MIB / 8);
}

/* So the baseline changes and the observation does not: the memory that came
 * between the two is taken off again, and comes with the next observation. */
FIXTURE_TEST(a_sample_leaves_the_observation_of_its_cycle) {
  struct sampled s = {.swap = 2 * MIB};

  begin_cycle(f, &at_first);
  estimator_advance(&f->track);
  estimator_sample(&f->cycle, &f->track, &s, 2048, 256);
  assert_true(f->track.is_sampled);
  assert_int_equal(f->track.now.resident_pages, 1024);
  assert_int_equal(f->track.baseline.at.resident_pages, 2048);
  assert_int_equal(f->track.baseline.at.vm_swap_kb, 2048);
  assert_int_equal(f->track.change.anon, -4 * (int64_t)MIB);
}

/* --- copies --- */

/* 2 MiB of its own, 2 MiB that it shares with another by copy on write, and the
 * file of four. */
static const struct rollup half_shared = {
    .known = UINT32_MAX,
    .bytes = {[ROLLUP_RSS] = 5 * MIB,
              [ROLLUP_PSS] = 3 * MIB + MIB / 4,
              [ROLLUP_PSS_ANON] = 3 * MIB,
              [ROLLUP_PSS_FILE] = MIB / 4,
              [ROLLUP_ANONYMOUS] = 4 * MIB,
              [ROLLUP_PRIVATE_DIRTY] = 2 * MIB,
              [ROLLUP_SHARED_DIRTY] = 2 * MIB,
              [ROLLUP_SHARED_CLEAN] = MIB}};

static const struct observation at_half_shared = {.resident_pages = 1280,
                                                  .shared_pages = 256,
                                                  .threads = 1,
                                                  .has_faults = true};

/* The process is as it was at this reading, and then as it is now. */
static void read_half_shared(struct fixture *f, const struct observation *then,
                             const struct observation *now) {
  begin_cycle(f, then);
  estimator_advance(&f->track);
  estimator_correct(&f->cycle, &f->track, &half_shared, then);
  begin_cycle(f, now);
  estimator_advance(&f->track);
}

/* A fault that brought no page has copied one, while there are pages to copy.
 * The counter of faults goes round. */
FIXTURE_TEST(faults_that_bring_no_memory_copy_what_is_shared) {
  static const struct {
    uint32_t faults;
    int32_t anonymous_pages, shared_pages;
    uint64_t copied;
  } rows[] = {{0, 0, 0, 0},           {256, 0, 0, MIB},
              {256, 256, 0, 0},       {256, 128, 0, MIB / 2},
              {256, 0, 128, MIB / 2}, {256, 64, 64, MIB / 2},
              {256, -256, 0, MIB},    {256, 0, -128, MIB},
              {2048, 0, 0, 2 * MIB},  {255, 256, 0, 0}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct observation then = at_half_shared, now;

    then.minor_faults = UINT32_MAX - 100;
    now = then;
    now.minor_faults += rows[i].faults;
    now.shared_pages += (uint32_t)rows[i].shared_pages;
    now.resident_pages +=
        (uint32_t)(rows[i].anonymous_pages + rows[i].shared_pages);
    read_half_shared(f, &then, &now);
    if (f->track.broken_bytes != rows[i].copied)
      fail_msg("row %zu: %" PRIu64 " bytes", i, f->track.broken_bytes);
  }
}

/* A page of two costs each half of it. A copy costs all, and what it was copied
 * from costs the other all. */
FIXTURE_TEST(a_copy_costs_what_the_relative_has_paid) {
  struct fork_family family = {.members = 2, .cow_breaks = 1};
  const struct track relative = {.family = &family,
                                 .baseline.rollup = half_shared};
  struct observation now = at_half_shared;
  struct prediction p;

  sharing_init(&family.sharing, 0);
  f->track.family = &family;
  f->track.kinship = KINSHIP_HEAD;
  now.minor_faults = 256;
  read_half_shared(f, &at_half_shared, &now);
  estimator_predict(&f->cycle, &f->track, &p);
  assert_int_equal(p.rollup.bytes[ROLLUP_PSS], 3 * MIB + MIB / 4 + MIB / 2);
  assert_int_equal(rollup_uss(&p.rollup), 3 * MIB);
  assert_int_equal(track_broken_by_relatives(&relative), MIB / 2);
}

/* Faults before the first look at them are unknown, and so is what they did. */
FIXTURE_TEST(without_faults_at_the_reading_nothing_is_known_to_be_copied) {
  struct observation then = at_half_shared, now = at_half_shared;

  then.has_faults = false;
  now.minor_faults = 256;
  read_half_shared(f, &then, &now);
  assert_int_equal(f->track.broken_bytes, 0);
  now.minor_faults += 128;
  begin_cycle(f, &now);
  assert_int_equal(f->track.broken_bytes, MIB / 2);
}
