/* SPDX-License-Identifier: MIT */
/* The verbs of the estimator, one by one. Their figures: measure/test_oracle.c;
 * families: test_fork_family.c and member/test_newborn.c. */
#include "test.h"

#include <inttypes.h>
#include <math.h>

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
  /* Nothing was estimated before it, of which it would teach anything. */
  for (int k = 0; k < CAUSES; k++)
    assert_true(f->set.audit.rates[k].known <= 0);
}

FIXTURE_TEST(without_a_baseline_all_that_is_resident_may_be_wrong) {
  struct error error;

  estimator_forget(&f->track);
  error = estimator_expect(&f->cycle, &f->track);
  assert_true(error_bytes(error) == 4.0 * MIB);
}

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

/* It is of no use to a process that runs another program. */
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

/* The first one is no news of an estimate. */
FIXTURE_TEST(a_first_sample_is_a_baseline_as_it_is) {
  struct sampled s = {.swap = 0};

  estimator_forget(&f->track);
  f->track.baseline = (struct baseline){.at_ns = 0};
  begin_cycle(f, &at_first);
  sampled_add_exclusive(&s, PAGE_ANON, 4 * MIB);
  s.error.pss[PAGE_ANON].noise = MIB;
  estimator_sample(&f->cycle, &f->track, &s, 1024, 0);
  assert_int_equal(f->track.baseline.rollup.bytes[ROLLUP_PSS], 4 * MIB);
  assert_true(f->error.pss[PAGE_ANON].noise == 1.0 * MIB);
  assert_true(f->error.pss[PAGE_ANON].lag == 0.0);
  for (int k = 0; k < CAUSES; k++)
    assert_true(f->set.audit.rates[k].known == 0.0);
}

/* --- what is asked for --- */

/* Half a minute after the reading, or in the cycle in which a minute ends. */
TEST(swap_is_asked_for_where_there_can_be_some) {
  static const struct {
    uint64_t swap, read_s, before_s, now_s;
    uint32_t vm_swap_kb, resident;
    bool is_swap_used, wants;
  } rows[] = {
      {1, 100, 120, 130, 0, 100, false, true},
      {0, 100, 120, 130, 1, 100, false, true},
      {0, 100, 120, 130, 0, 99, false, false},
      {0, 100, 120, 130, 0, 100, true, false},
      {0, 100, 120, 130, 0, 99, true, true},
      {0, 100, 150, 160, 0, 100, true, true},
      {0, 100, 150, 160, 0, 100, false, false},
      {0, 100, 160, 170, 0, 100, true, false},
      {0, 100, 210, 220, 0, 100, true, true},
      {0, 160, 120, 170, 0, 100, true, false},
      {1, 0, 120, 130, 1, 99, true, false},
  };

  for (size_t i = 0; i < LENGTH(rows); i++) {
    const struct cycle cycle = {.before_ns = rows[i].before_s * NS_PER_S,
                                .now_ns = rows[i].now_s * NS_PER_S,
                                .is_swap_used = rows[i].is_swap_used};
    const struct observation now = {.resident_pages = rows[i].resident};
    struct track t = {.now.vm_swap_kb = rows[i].vm_swap_kb,
                      .baseline = {.at_ns = rows[i].read_s * NS_PER_S,
                                   .at.resident_pages = 100}};

    t.baseline.rollup.bytes[ROLLUP_SWAP] = rows[i].swap;
    if (estimator_wants_swap(&cycle, &t, &now) != rows[i].wants)
      fail_msg("row %zu", i);
  }
}

/* Among other neighbours its files cost something else. */
FIXTURE_TEST(a_baseline_is_void_in_another_set) {
  struct sharing other;

  sharing_init(&other, 0);
  f->cycle.now_ns += NS_PER_S;
  estimator_observe(&f->cycle, &f->track, &other, &at_first);
  assert_false(track_has_baseline(&f->track));
  assert_true(other.now == 256.0);
  /* What it had in the other group was never in this one. */
  assert_true(other.left == 0.0);
}

/* It shares them with its family. */
FIXTURE_TEST(a_baseline_of_a_family_holds_in_another_set) {
  struct fork_family family = {.members = 2};
  struct sharing other;

  sharing_init(&other, 0);
  sharing_init(&family.sharing, 0);
  f->track.family = &family;
  f->track.kinship = KINSHIP_HEAD;
  f->cycle.now_ns += NS_PER_S;
  estimator_observe(&f->cycle, &f->track, &other, &at_first);
  assert_true(track_has_baseline(&f->track));
}

/* --- errors --- */

static void assert_near(double is, double expected) {
  if (!(fabs(is - expected) <= 1e-6 * (1 + fabs(expected))))
    fail_msg("%f and not %f", is, expected);
}

static struct audit_errors predicted_error(const struct fixture *f) {
  struct prediction p;

  estimator_predict(&f->cycle, &f->track, &p);
  return p.error;
}

/* On a kernel whose statm may lack 100 pages, besides what it was off by twice
 * at the reading; but a small process is not as far off. */
FIXTURE_TEST(statm_is_off_by_a_part_of_a_small_process) {
  static const struct {
    uint64_t expected, pages;
    uint32_t resident, off;
  } rows[] = {{100, 100, 1024, 0}, {300, 256, 1024, 0}, {300, 300, 4096, 0},
              {300, 316, 4096, 8}, {300, 256, 1024, 8}, {300, 400, 1024, 200},
              {0, 0, 1024, 0}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    f->cycle.precision.expected_pages = rows[i].expected;
    f->track.now.resident_pages = rows[i].resident;
    f->track.baseline.off_pages = rows[i].off;
    assert_int_equal(estimator_statm_bound(&f->cycle, &f->track),
                     rows[i].pages * PAGE);
  }
}

/* The estimate of 3.25 MiB is not off by more than there is of it, or could be.
 */
FIXTURE_TEST(an_error_is_of_its_causes) {
  struct rollup r = private_and_file;
  struct audit_errors e;

  f->cycle.precision.expected_pages = 10;
  f->track.unsure_bytes = 20000;
  e = predicted_error(f);
  assert_near(e.pss_parts[CAUSE_STATM], 40960);
  assert_near(e.pss_parts[CAUSE_READING], 20000);
  assert_near(error_bytes(e.pss), 60960);
  f->track.derived_bytes = 30000;
  for (int origin = ORIGIN_INHERITED; origin <= ORIGIN_DIVIDED; origin++) {
    enum cause cause = origin == ORIGIN_INHERITED ? CAUSE_FORK : CAUSE_LENT;

    f->track.origin = (enum origin)origin;
    e = predicted_error(f);
    assert_true(e.pss_parts[cause] > 0);
    assert_near(e.pss_parts[CAUSE_FORK] + e.pss_parts[CAUSE_LENT],
                e.pss_parts[cause]);
  }
  f->track.unsure_bytes = 1e12;
  assert_near(error_bytes(predicted_error(f).pss), 3.25 * MIB);
  /* Of 4 MiB that cost 1 it is not off by more than the rest, and statm. */
  r.bytes[ROLLUP_PSS] = MIB;
  f->track.baseline.rollup = r;
  assert_near(error_bytes(predicted_error(f).pss), 3 * MIB + 40960);
}

/* A sample has its own, of which a part is the same for all members. */
FIXTURE_TEST(the_error_of_a_sample_is_added) {
  struct error expected;
  struct audit_errors e;

  f->track.is_sampled = true;
  f->error = (struct sampled_error){
      .pss = {{.noise = 3e4, .lag = 5e3}, {.noise = 4e4, .lag = 1e3}},
      .uss = {.noise = 1e4},
      .pss_bound = 7e3,
      .uss_bound = 2e3};
  f->track.unsure_bytes = 1e4;
  e = predicted_error(f);
  assert_near(e.pss_parts[CAUSE_SAMPLE], 2.6 * 5e4 + 6e3 + 7e3);
  assert_near(e.pss.common, 1e4 + 6e3 + 7e3);
  assert_near(e.pss.independent, 2.6 * 5e4);
  assert_near(e.uss.common, 2e4 + 2e3);
  assert_near(e.uss.independent, 2.6 * 1e4);
  expected = estimator_expect(&f->cycle, &f->track);
  assert_near(error_bytes(expected), error_bytes(e.pss));
  /* A rollup has taken its place. */
  f->track.is_sampled = false;
  assert_near(error_bytes(predicted_error(f).pss), 1e4);
  expected = estimator_expect(&f->cycle, &f->track);
  assert_near(error_bytes(expected), 1e4);
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
    /* Nobody else learns of it. */
    estimator_correct(&f->cycle, &f->track, &half_shared, &now);
  }
}

/* As many of them as readings have shown. */
FIXTURE_TEST(not_all_faults_copy) {
  struct fork_family family = {.members = 2, .cow_breaks = 0.5};
  struct observation now = at_half_shared;

  sharing_init(&family.sharing, 0);
  f->track.family = &family;
  f->track.kinship = KINSHIP_HEAD;
  now.minor_faults = 256;
  read_half_shared(f, &at_half_shared, &now);
  assert_int_equal(f->track.broken_bytes, MIB / 2);
  /* Nothing is told of what has changed since a baseline that is void. */
  estimator_forget(&f->track);
  family.told = (struct family_told){.freed = 0};
  now.minor_faults += 256;
  now.resident_pages -= 256;
  begin_cycle(f, &now);
  assert_int_equal(family.told.cow_broken, 0);
  assert_int_equal(family.told.freed, 0);
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

/* Faults since the reading may have copied all that is shared, if nobody could
 * ask for them; but not in the cycle in which it was read. */
FIXTURE_TEST(faults_that_cannot_be_asked_for_may_be_copies) {
  struct fork_family family = {.members = 2, .cow_breaks = 1};
  struct observation then = at_half_shared;
  double copies;

  then.has_faults = false;
  begin_cycle(f, &then);
  estimator_advance(&f->track);
  estimator_correct(&f->cycle, &f->track, &half_shared, &then);
  assert_near(predicted_error(f).pss_parts[CAUSE_COPIES], 0);
  begin_cycle(f, &then);
  estimator_advance(&f->track);
  assert_true(predicted_error(f).pss_parts[CAUSE_COPIES] > MIB / 4.0);
  /* Besides a fourth of it that relatives have copied. */
  f->track.family = &family;
  f->track.kinship = KINSHIP_HEAD;
  f->track.baseline.relatives = 2;
  copies = predicted_error(f).pss_parts[CAUSE_COPIES];
  family.told.cow_broken = MIB / 4 * 1024;
  assert_true(predicted_error(f).pss_parts[CAUSE_COPIES] > 1.2 * copies);
}

/* Each of four pays a fourth. One copies 3 MiB of that: the others pay a third
 * of it each. */
FIXTURE_TEST(a_copy_of_one_of_four_costs_each_other_a_twelfth) {
  struct fork_family family = {.members = 4, .cow_breaks = 1};
  struct track relative = {.family = &family, .baseline.rollup = half_shared};
  struct observation now = at_half_shared;

  sharing_init(&family.sharing, 0);
  f->track.family = &family;
  f->track.kinship = KINSHIP_HEAD;
  now.minor_faults = 192;
  read_half_shared(f, &at_half_shared, &now);
  assert_int_equal(f->track.broken_bytes, 3 * MIB / 4);
  assert_int_equal(track_broken_by_relatives(&relative), MIB / 16);
  assert_int_equal(track_broken_by_relatives(&f->track), 0);
  /* In the next cycle only what is more is told. */
  begin_cycle(f, &now);
  assert_int_equal(track_broken_by_relatives(&relative), MIB / 16);
  now.minor_faults += 192;
  begin_cycle(f, &now);
  /* It shares a pair of MiB among four: 4/3 MiB of that can be copied. */
  assert_near((double)f->track.broken_bytes,
              (double)baseline_cow_shared(&f->track.baseline));
}

/* Bytes that it freed, or got back from swap: each is told once. */
FIXTURE_TEST(relatives_are_told_what_was_freed_and_what_came_back) {
  struct fork_family family = {.members = 2, .cow_breaks = 1};
  struct observation then = at_half_shared, now;

  sharing_init(&family.sharing, 0);
  f->track.family = &family;
  f->track.kinship = KINSHIP_HEAD;
  then.vm_swap_kb = 1024;
  now = then;
  now.resident_pages -= 128;
  read_half_shared(f, &then, &now);
  assert_int_equal(family.told.freed, MIB / 2);
  assert_int_equal(f->track.told.freed, MIB / 2);
  assert_int_equal(family.told.got_back, 0);
  now.resident_pages += 256;
  now.vm_swap_kb -= 512;
  for (int i = 0; i < 2; i++) {
    begin_cycle(f, &now);
    assert_int_equal(family.told.freed, MIB / 2);
    assert_int_equal(family.told.got_back, MIB / 2);
    assert_int_equal(f->track.told.got_back, MIB / 2);
  }
}

/* Pages that came behind the walk: no more than were not there before. */
FIXTURE_TEST(pages_that_came_behind_the_walk_have_come_since) {
  static const struct {
    int observed, rollup, after, at; /* pages beyond 1024 */
  } rows[] = {{0, 0, 0, 0},       {0, 0, 50, 0},      {0, 20, 50, 20},
              {0, -10, 50, 0},    {40, 0, 50, 40},    {0, 60, 50, 50},
              {0, 0, -50, 0},     {0, -20, -50, -20}, {0, 30, -50, 0},
              {0, -60, -50, -50}, {0, 7, 0, 0}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct rollup r = private_and_file;
    struct observation now = at_first, after = at_first;

    r.bytes[ROLLUP_RSS] += (uint64_t)(rows[i].rollup * (int64_t)PAGE);
    r.bytes[ROLLUP_SHARED_CLEAN] += (uint64_t)(rows[i].rollup * (int64_t)PAGE);
    now.resident_pages += (uint32_t)rows[i].observed;
    after.resident_pages += (uint32_t)rows[i].after;
    begin_cycle(f, &now);
    estimator_advance(&f->track);
    estimator_correct(&f->cycle, &f->track, &r, &after);
    if (f->track.baseline.at.resident_pages != (uint32_t)(1024 + rows[i].at))
      fail_msg("row %zu: %u", i, f->track.baseline.at.resident_pages);
  }
}

/* --- a derived baseline --- */

/* The pages of its set are mapped twice as often as in the cycle before. What a
 * newborn inherits is the share of now, and is not divided once more. */
FIXTURE_TEST(a_derived_baseline_has_the_share_of_files_of_this_cycle) {
  static const double shares[] = {[ORIGIN_INHERITED] = 2, [ORIGIN_DIVIDED] = 1};

  for (int origin = ORIGIN_INHERITED; origin <= ORIGIN_DIVIDED; origin++) {
    begin_cycle(f, &at_first);
    f->set.before = 128;
    f->track.baseline.off_pages = 5;
    estimator_derive(&f->cycle, &f->track, &private_and_file, NS_PER_S,
                     (enum origin)origin, 0);
    assert_near(f->track.since.share, shares[origin]);
    assert_int_equal(f->track.baseline.off_pages, 5);
    assert_int_equal(f->track.origin, origin);
  }
}

/* All that could be wrong of the one before. */
static void derive_beside_relatives(struct fixture *f, enum origin before) {
  struct fork_family family = {.members = 2, .cow_breaks = 1};
  struct observation now = at_half_shared;
  struct bounds x;
  double sum = 0;

  sharing_init(&family.sharing, 0);
  f->track.family = &family;
  f->track.kinship = KINSHIP_HEAD;
  read_half_shared(f, &at_half_shared, &now);
  now.shared_pages -= 20;
  now.resident_pages -= 20 + 128;
  now.minor_faults += 64;
  begin_cycle(f, &now);
  family.members = 3;
  family.told.freed += MIB / 4;
  family.told.got_back += MIB / 8;
  f->track.derived_bytes = 1000;
  f->track.origin = before;
  bounds_of(&f->cycle, &f->track, &x);
  for (int k = 0; k < CAUSES; k++)
    if (k != CAUSE_TIME && k != CAUSE_KSM) {
      sum += x.bytes[k];
      if (x.bytes[k] <= 0 && k != CAUSE_FORK && k != CAUSE_LENT &&
          k != CAUSE_READING && k != CAUSE_STATM)
        fail_msg("cause %d", k);
    }
  estimator_derive(&f->cycle, &f->track, &half_shared, NS_PER_S, ORIGIN_DIVIDED,
                   500);
  assert_near(f->track.derived_bytes, sum + 1000 + 500);
  f->track.family = NULL;
  f->track.kinship = KINSHIP_ALONE;
}

FIXTURE_TEST(a_derived_baseline_keeps_the_bounds_of_the_one_before) {
  derive_beside_relatives(f, ORIGIN_DIVIDED);
  derive_beside_relatives(f, ORIGIN_INHERITED);
  /* A newborn had none. */
  estimator_forget(&f->track);
  begin_cycle(f, &at_half_shared);
  estimator_derive(&f->cycle, &f->track, &half_shared, NS_PER_S,
                   ORIGIN_INHERITED, 500);
  assert_near(f->track.derived_bytes, 500);
}

/* --- lessons --- */

/* 256 faults copied so many MiB more than was thought, by the reading. Returns
 * what is known then of the faults of the family. A derived baseline may be off
 * itself. */
static double breaks_after(struct fixture *f, double own_more, double breaks,
                           bool is_derived) {
  struct fork_family family = {
      .members = 2, .cow_breaks = breaks, .newborns = NEWBORN_LESSONS_AT_FIRST};
  struct observation now = at_half_shared;
  struct rollup r = half_shared;
  int64_t own = (int64_t)((breaks + own_more) * (double)MIB);

  sharing_init(&family.sharing, 0);
  f->track.family = &family;
  f->track.kinship = KINSHIP_HEAD;
  now.minor_faults = 256;
  read_half_shared(f, &at_half_shared, &now);
  f->track.derived_bytes = is_derived;
  r.bytes[ROLLUP_PRIVATE_DIRTY] += (uint64_t)own;
  r.bytes[ROLLUP_SHARED_DIRTY] -= (uint64_t)own;
  estimator_correct(&f->cycle, &f->track, &r, &now);
  /* It is no newborn. */
  assert_true(family.newborns.breaks < 0 && family.newborns.file_share < 0);
  f->track.family = NULL;
  f->track.kinship = KINSHIP_ALONE;
  return family.cow_breaks;
}

/* 1 MiB was taken for copied: half of that, as the reading shows. It weighs as
 * a fourth of the lessons before. */
FIXTURE_TEST(readings_show_how_many_faults_copy) {
  static const struct {
    double own_more, breaks;
  } rows[] = {{0, 1}, {-0.5, 1 - 0.5 / 4}, {-2, 1 - 0.99 / 4}, {1, 1}};

  for (int is_derived = 0; is_derived < 2; is_derived++)
    for (size_t i = 0; i < LENGTH(rows); i++)
      assert_near(breaks_after(f, rows[i].own_more, 1, is_derived),
                  is_derived ? 1 : rows[i].breaks);
  /* Half of 256 was taken for copied; all were. */
  assert_near(breaks_after(f, 0, 0.5, false), 0.5);
  assert_near(breaks_after(f, 0.5, 0.5, false), 0.5 + 0.5 / 4);
}

static struct newborn_lessons lessons_after(struct fixture *f,
                                            struct newborn_lessons before,
                                            uint32_t shared_pages,
                                            uint32_t faults) {
  struct fork_family family = {
      .members = 2, .cow_breaks = 1, .newborns = before};
  struct observation now = at_half_shared;

  sharing_init(&family.sharing, 0);
  f->track.family = &family;
  f->track.kinship = KINSHIP_CHILD;
  now.shared_pages = shared_pages;
  now.minor_faults = faults;
  begin_cycle(f, &now);
  estimator_derive(&f->cycle, &f->track, &half_shared, NS_PER_S,
                   ORIGIN_INHERITED, 0);
  estimator_advance(&f->track);
  estimator_correct(&f->cycle, &f->track, &half_shared, &now);
  f->track.family = NULL;
  f->track.kinship = KINSHIP_ALONE;
  return family.newborns;
}

/* The first reading of a newborn shows which faults made memory its own, and
 * what it pays of files, if it maps any. */
FIXTURE_TEST(newborns_teach_what_they_copy_and_map) {
  static const struct {
    uint32_t shared_pages, faults;
    double breaks, file_share;
  } rows[] = {{256, 1024 + 16, 0.5, 0.25},
              {256, 256 + 16, 1, 0.25},
              {0, 1024, 0.5, -1},
              {256, 19, -1, 0.25}};
  struct newborn_lessons l;

  for (size_t i = 0; i < LENGTH(rows); i++) {
    l = lessons_after(f, NEWBORN_LESSONS_AT_FIRST, rows[i].shared_pages,
                      rows[i].faults);
    assert_near(l.breaks, rows[i].breaks);
    assert_near(l.file_share, rows[i].file_share);
  }
  /* 4 MiB of faults weigh more than the 3 MiB of all before; a share of files,
   * a fourth. */
  l = lessons_after(f, (struct newborn_lessons){0.25, 0.75}, 256, 1024 + 16);
  assert_near(l.breaks, 0.25 + 0.25 * 4 / 7);
  assert_near(l.file_share, 0.75 - 0.5 / 4);
}

/* A difference that the noise of a sample explains, or its bound, is no error
 * of the estimate. */
FIXTURE_TEST(samples_teach_less_the_noisier_they_are) {
  static const double noise[] = {0, MIB, 0}, pss_bound[] = {0, 0, MIB};
  double off[LENGTH(noise)];

  for (size_t i = 0; i < LENGTH(noise); i++) {
    struct observation now = at_first;
    struct sampled s = {.error.pss_bound = pss_bound[i]};

    f->set.audit = (struct audit){.cycle_ns = 0};
    begin_cycle(f, &at_first);
    estimator_advance(&f->track);
    estimator_correct(&f->cycle, &f->track, &private_and_file, &at_first);
    now.shared_pages += 128;
    now.resident_pages += 128;
    begin_cycle(f, &now);
    estimator_advance(&f->track);
    sampled_add_exclusive(&s, PAGE_ANON, 3 * MIB);
    sampled_add_exclusive(&s, PAGE_FILE, MIB / 2);
    s.error.pss[PAGE_FILE].noise = noise[i];
    estimator_sample(&f->cycle, &f->track, &s, now.resident_pages,
                     now.shared_pages);
    off[i] = f->set.audit.rates[CAUSE_FILES].off;
  }
  assert_true(off[0] > 0);
  assert_true(off[1] < off[0] / 10);
  assert_true(off[2] < off[0] / 2);
}
