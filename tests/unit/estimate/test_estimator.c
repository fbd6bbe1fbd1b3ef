/* The verbs of the estimator, one by one. Their figures: measure/test_oracle.c;
 * families: test_fork_family.c and member/test_newborn.c. */
#include "test.h"

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
  struct sampled s = {.swap = 0};

  begin_cycle(f, &at_first);
  estimator_advance(&f->track);
  estimator_sample(&f->cycle, &f->track, &s, 2048, 256);
  assert_true(f->track.is_sampled);
  assert_int_equal(f->track.now.resident_pages, 1024);
  assert_int_equal(f->track.baseline.at.resident_pages, 2048);
  assert_int_equal(f->track.change.anon, -4 * (int64_t)MIB);
}
