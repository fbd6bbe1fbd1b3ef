/* SPDX-License-Identifier: MIT */
/* Samples of pages, beside memory that is known. */
#include "test.h"

#include <math.h>

#include "draw.h"
#include "sample/sampled.h"

#define GIB (1024.0 * 1024 * 1024)

/* Bytes. */
static void assert_near(double is, double expected, double most) {
  if (!(fabs(is - expected) <= most))
    fail_msg("%.0f is not near %.0f", is, expected);
}

/* Describes a kind of memory: parts of its pages, and the number of their
 * sharers. */
struct memory {
  double bytes, part; /* of the pages that are shared */
  unsigned sharers;
};

static struct page_sums look_up(const struct memory *mem, unsigned n) {
  struct page_sums s = {.found.pages = n};

  for (unsigned i = 0; i < n; i++) {
    bool is_shared = (double)draw(1000000) < mem->part * 1e6;
    double share = is_shared ? 1.0 / mem->sharers : 1;

    s.found.exclusive += !is_shared;
    s.found.share += share;
    s.found.share_squared += share * share;
  }
  return s;
}

static double true_pss(const struct memory *mem) {
  return mem->bytes * (1 - mem->part + mem->part / mem->sharers);
}

static double true_uss(const struct memory *mem) {
  return mem->bytes * (1 - mem->part);
}

static struct sampled measure(const struct page_sums *anon, double bytes) {
  static const struct page_sums none = {.found = {0}};
  struct sampled s = {.swap = 0};

  sampled_add(&s, PAGE_ANON, anon, bytes);
  sampled_add(&s, PAGE_FILE, &none, 0);
  return s;
}

/* Of all bytes, the part `unseen` could not be drawn. */
static struct sampled sample_some(const struct memory *anon,
                                  const struct memory *files, unsigned n,
                                  double unseen) {
  struct page_sums a = look_up(anon, n), f = look_up(files, n / 4);
  struct sampled s = {.swap = 0};

  sampled_add(&s, PAGE_ANON, &a, anon->bytes);
  sampled_add(&s, PAGE_FILE, &f, files->bytes);
  sampled_bound_unseen(&s, unseen);
  return s;
}

static struct sampled sample(const struct memory *anon,
                             const struct memory *files, unsigned n) {
  return sample_some(anon, files, n, 0);
}

static const struct memory ANON = {4 * GIB, 0.4, 2};
static const struct memory FILES = {GIB, 0.9, 20};

static double truth_pss(void) { return true_pss(&ANON) + true_pss(&FILES); }

/* How often of 1,000 samples the truth is within the error. */
static unsigned count_held(const struct memory *anon,
                           const struct memory *files, unsigned n,
                           unsigned *ret_uss) {
  unsigned held = 0;

  draw_begin(7);
  *ret_uss = 0;
  for (unsigned i = 0; i < 1000; i++) {
    struct sampled s = sample(anon, files, n);
    double pss = true_pss(anon) + true_pss(files);
    double uss = true_uss(anon) + true_uss(files);

    held += fabs(s.pss[PAGE_ANON] + s.pss[PAGE_FILE] - pss) <=
            sampled_pss_error(&s.error);
    *ret_uss += fabs(s.uss - uss) <= sampled_uss_error(&s.error);
  }
  return held;
}

TEST(errors_hold_for_99_of_100_samples) {
  static const struct memory rare = {4 * GIB, 0.002, 2}, none = {GIB, 0, 2};
  static const struct memory all = {4 * GIB, 1, 300}, nearly = {GIB, 0.998, 30};
  unsigned uss;

  assert_true(count_held(&ANON, &FILES, 500, &uss) >= 985);
  assert_true(uss >= 985);
  assert_true(count_held(&rare, &none, 500, &uss) >= 985);
  assert_true(uss >= 985);
  assert_true(count_held(&all, &nearly, 100, &uss) >= 985);
  assert_true(uss >= 985);
}

/* Two sharers are assumed where there are as many at least. */
TEST(shares_that_are_not_known_are_bounded) {
  struct page_sums anon = {.found = {1000, 400, 400, 400, 0}};

  for (anon.sharers = 2; anon.sharers <= 64; anon.sharers *= 4) {
    struct sampled s = measure(&anon, GIB);
    double off = 0;

    assert_near(s.uss, 0.4 * GIB, 1);
    assert_near(s.pss[PAGE_ANON], (0.4 + 0.6 / anon.sharers) * GIB, 1);
    for (unsigned truth = 2; truth <= 1000; truth++)
      off = fmax(off, fabs(s.pss[PAGE_ANON] - (0.4 + 0.6 / truth) * GIB));
    assert_near(s.error.pss_bound, off, 0.001 * GIB);
    assert_true(off <= s.error.pss_bound + 1);
  }
}

/* --- what is known of all pages --- */

/* A page of several costs half of it at most, and nothing is exclusive. */
TEST(memory_without_exclusive_pages_has_no_uss) {
  struct page_sums shared = {.found = {100, 0, 50, 25, 0}, .are_shared = true};
  struct page_sums none = {.found = {0}, .are_shared = true};
  struct sampled s = {.swap = 0};

  sampled_add(&s, PAGE_ANON, &shared, GIB);
  assert_near(s.pss[PAGE_ANON], GIB / 2, 1);
  assert_near(sampled_pss_error(&s.error), 4.6 * GIB / 100 / 2, 1);
  sampled_add(&s, PAGE_FILE, &none, GIB);
  assert_near(s.pss[PAGE_FILE], GIB / 4, 1);
  assert_near(s.uss, 0, 0);
  assert_near(sampled_uss_error(&s.error), 0, 0);
}

/* --- beside an estimate --- */

struct follower {
  struct rollup estimate;
  struct sampled_error error;
};

static void follow(struct follower *f, struct sampled *s, double usual) {
  struct sampled_error before = f->error;

  before.pss[PAGE_ANON].noise = hypot(before.pss[PAGE_ANON].noise, usual);
  before.pss[PAGE_FILE].noise = hypot(before.pss[PAGE_FILE].noise, usual);
  before.uss.noise = hypot(before.uss.noise, 2 * usual);

  if (f->estimate.known)
    sampled_fuse(s, &f->estimate, &before);
  f->error = s->error;
  sampled_rollup(s, &f->estimate);
}

static double off(const struct follower *f) {
  return fabs((double)f->estimate.bytes[ROLLUP_PSS] - truth_pss());
}

/* In the end seven samples count, and no more than that is claimed however many
 * follow. Now and then a sample is far off, by chance, and stands alone. */
TEST(samples_of_quiet_memory_add_up) {
  struct follower f = {.error.pss_bound = 0};
  struct sampled s;
  double first, sum = 0;
  unsigned held = 0;

  draw_begin(7);
  s = sample(&ANON, &FILES, 500);
  follow(&f, &s, 0);
  first = sampled_pss_error(&f.error);
  for (unsigned i = 0; i < 10000; i++) {
    s = sample(&ANON, &FILES, 500);
    follow(&f, &s, 0);
    held += off(&f) <= sampled_pss_error(&f.error);
    sum += sampled_pss_error(&f.error);
  }
  assert_true(sum / 10000 < 0.7 * first);
  assert_true(sum / 10000 > 0.3 * first);
  assert_true(held >= 9900);
}

/* The sample is far from the estimate, and no mean of the two is taken. But the
 * next estimate may be off again. */
TEST(sample_that_is_far_off_takes_the_place_of_the_estimate) {
  struct sampled s = {.swap = 0}, before = {.swap = 0};
  struct sampled_error error = {.pss[PAGE_ANON].noise = MIB};
  struct rollup estimate;

  sampled_add_exclusive(&before, PAGE_ANON, 64 * MIB);
  sampled_add_exclusive(&before, PAGE_FILE, MIB);
  sampled_rollup(&before, &estimate);
  sampled_add_exclusive(&s, PAGE_ANON, 80 * MIB);
  sampled_add_exclusive(&s, PAGE_FILE, MIB);
  s.error.pss[PAGE_ANON].noise = 2 * MIB;
  sampled_fuse(&s, &estimate, &error);
  assert_near(s.pss[PAGE_ANON], 80 * MIB, 0);
  assert_near(s.uss, 81 * MIB, 0);
  assert_near(sampled_pss_error(&s.error), (2.6 * 2 + 4) * MIB, 1);
  assert_near(sampled_uss_error(&s.error), 4 * MIB, 1);
}

/* Half of the estimate had no chance to be drawn, and is not as it was taken to
 * be. The next sample counts for more, and the mean of the two is within its
 * error. */
TEST(estimate_in_doubt_weighs_less) {
  const struct memory shared = {GIB, 1, 2}, none = {0, 0, 1};
  const struct memory half = {GIB, 0.5, 2};
  struct sampled before, s;
  struct rollup estimate;
  double held = 0;

  draw_begin(7);
  for (unsigned i = 0; i < 100; i++) {
    before = sample_some(&shared, &none, 400, 0.5);
    before.error.pss[PAGE_ANON].noise = before.error.uss.noise = GIB / 100;
    sampled_rollup(&before, &estimate);
    s = sample(&half, &none, 400);
    sampled_fuse(&s, &estimate, &before.error);
    held += fabs(s.pss[PAGE_ANON] - true_pss(&half)) <=
                sampled_pss_error(&s.error) &&
            fabs(s.uss - true_uss(&half)) <= sampled_uss_error(&s.error);
    assert_near(s.pss[PAGE_ANON], true_pss(&half), GIB / 10);
  }
  assert_true(held >= 99);
}

/* --- as a rollup --- */

TEST(parts_add_up) {
  struct sampled s;
  struct rollup u;

  draw_begin(7);
  for (unsigned i = 0; i < 100; i++) {
    s = sample(&ANON, &FILES, 100);
    s.shmem_part = (double)draw(101) / 100;
    s.swap = (double)draw(1 << 30);
    sampled_rollup(&s, &u);
    assert_true(rollup_is_consistent(&u));
    assert_int_equal(u.bytes[ROLLUP_PSS], u.bytes[ROLLUP_PSS_ANON] +
                                              u.bytes[ROLLUP_PSS_FILE] +
                                              u.bytes[ROLLUP_PSS_SHMEM]);
    assert_true(rollup_uss(&u) <= u.bytes[ROLLUP_PSS]);
    if (s.shmem_part >= 1) /* which is dirty, as anonymous memory is */
      assert_int_equal(
          u.bytes[ROLLUP_SHARED_CLEAN] + u.bytes[ROLLUP_PRIVATE_CLEAN], 0);
    assert_true(u.bytes[ROLLUP_SWAP_PSS] <= u.bytes[ROLLUP_SWAP]);
    assert_int_equal(u.bytes[ROLLUP_RSS] % 1024, 0);
  }
}

/* pagemap does not say whether a page was written, referenced, locked, lazily
 * freed, merged or part of a huge page. */
TEST(a_sample_does_not_know_all_of_a_rollup) {
  static const enum rollup_field unknown[] = {
      ROLLUP_PSS_DIRTY,       ROLLUP_REFERENCED,      ROLLUP_KSM,
      ROLLUP_LAZY_FREE,       ROLLUP_ANON_HUGE_PAGES, ROLLUP_SHMEM_PMD_MAPPED,
      ROLLUP_FILE_PMD_MAPPED, ROLLUP_SHARED_HUGETLB,  ROLLUP_PRIVATE_HUGETLB,
      ROLLUP_LOCKED};
  const struct sampled s = {.uss = GIB};
  struct rollup u;
  uint32_t known = (UINT32_C(1) << ROLLUP_FIELDS) - 1;

  for (size_t i = 0; i < LENGTH(unknown); i++)
    known &= ~(UINT32_C(1) << unknown[i]);
  sampled_rollup(&s, &u);
  assert_int_equal(u.known, known);
}

/* The lag of one is the lag of all: it does not add up by squares. */
TEST(noise_is_independent_and_lag_is_common) {
  struct sampled_error e = {.pss[PAGE_ANON] = {.noise = 30, .lag = 5},
                            .pss[PAGE_FILE] = {.noise = 40, .lag = -9},
                            .pss_bound = 3};

  assert_near(sampled_pss_common(&e), 7, 0.001);
  assert_near(sampled_pss_error(&e), 2.6 * 50 + 7, 0.001);
}

/* Samples that all agreed vouch for nothing that has come since. */
TEST(pages_that_samples_had_ruled_out_are_news) {
  struct follower f = {.error.pss_bound = 0};

  for (unsigned i = 0; i <= 30; i++) {
    uint32_t shared = i == 30 ? 4 : 0, n = 500;
    struct page_sums pages = {
        .found = {n, n - shared, n - shared / 2, n - shared * 3 / 4, 0}};
    struct sampled s = {.uss = 0};

    sampled_add(&s, PAGE_ANON, &pages, 100.0 * GIB);
    follow(&f, &s, 0);
  }
  assert_true(sampled_pss_error(&f.error) >=
              (double)f.estimate.bytes[ROLLUP_PSS] - 99.6 * GIB);
  assert_true((double)f.estimate.bytes[ROLLUP_PSS] < 99.95 * GIB);
}
