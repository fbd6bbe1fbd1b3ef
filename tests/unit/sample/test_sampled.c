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
    /* 1 and 1 / sharers, as 4 to 6: their difference by sqrt(0.4 * 0.6). */
    assert_near(s.error.pss[PAGE_ANON].noise,
                (1 - 1 / anon.sharers) * sqrt(0.24 / 1000) * GIB, 1000);
    assert_true(off <= s.error.pss_bound + 1);
  }
}

/* Of 100 pages, 60 are exclusive and 40 are of two: a mean share of 0.8, with a
 * standard deviation of sqrt(0.06). 1 % of samples as large meet no page of a
 * kind that 4.6 % of all are of; and of four relatives together, half as many.
 * The amount that they are of is uncertain by itself. */
TEST(an_error_is_made_of_shares_and_of_the_amount) {
  struct page_sums pages = {
      .found = {100, 60, 80, 70, 0}, .bytes_error = 50e3, .alike = 4};
  struct sampled s = {.swap = 0};
  double rare = -log(0.01) / 100 / 2.576 / 2;
  double pss = hypot(1e6 * sqrt(0.06 / 100), 50e3 * 0.8);
  double uss = hypot(1e6 * sqrt(0.24 / 100), 50e3 * 0.6);

  for (int n = 1; n <= 2; n++) {
    sampled_add(&s, PAGE_ANON, &pages, 1e6);
    assert_near(s.resident[PAGE_ANON], n * 1e6, 0.1);
    assert_near(s.pss[PAGE_ANON], n * 0.8e6, 0.1);
    assert_near(s.uss, n * 0.6e6, 0.1);
    assert_near(s.error.pss[PAGE_ANON].noise, sqrt(n) * pss, 1);
    assert_near(s.error.uss.noise, sqrt(n) * uss, 1);
    assert_near(s.error.pss[PAGE_ANON].rare, sqrt(n) * 0.8e6 * rare, 200);
    assert_near(s.error.uss.rare, sqrt(n) * 0.6e6 * rare, 150);
  }
  assert_near(s.error.pss_bound, 0, 0);
}

/* Nor do they of the only page that was found. */
TEST(a_shared_page_alone_is_bounded) {
  struct page_sums anon = {.found = {1, 0, 0, 0, 0}, .sharers = 2};
  struct sampled s = measure(&anon, GIB);

  assert_near(s.pss[PAGE_ANON], GIB / 2, 1);
  assert_near(s.error.pss_bound, GIB / 2, 1);
}

/* It is one page, or none: the mean is anything from 0 to 1. */
TEST(one_page_shows_nothing_of_the_others) {
  for (uint32_t n = 0; n <= 1; n++) {
    struct page_sums pages = {.found = {n, n, n, n, 0}};
    struct sampled s = measure(&pages, 1e6);

    assert_near(s.pss[PAGE_ANON], n ? 1e6 : 0.5e6, 0);
    assert_near(sampled_spread(&s.error.pss[PAGE_ANON]), 0.5e6, 0);
    assert_near(s.uss, n ? 1e6 : 0.5e6, 0);
    assert_near(sampled_spread(&s.error.uss), 0.5e6, 0);
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

static struct rollup estimate_of(double anon) {
  struct sampled s = {.swap = 0};
  struct rollup u;

  sampled_add_exclusive(&s, PAGE_ANON, anon);
  sampled_rollup(&s, &u);
  return u;
}

/* Errors of 3 and 4: the weights are as their squares, to the others'. */
TEST(mean_weighs_a_sample_by_the_errors) {
  static const struct {
    double apart, ours, theirs, gain;
    bool is_news;
  } rows[] = {{10, 3, 4, 0.64, false},  {-10, 3, 4, 0.64, false},
              {14, 3, 4, 0.64, false},  {16, 3, 4, 1, false},
              {-16, 3, 4, 1, false},    {10, 4, 0.5, 0.25, true},
              {0.5, 4, 0, 0.25, true},  {9, 4, 1.2, 0.25, false},
              {0.1, 0.01, 1, 1, false}, {9, 5, 1, 0.25, true}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct rollup estimate = estimate_of(100 * MIB);
    struct sampled s = {.pss[PAGE_ANON] = (100 + rows[i].apart) * MIB,
                        .error.pss[PAGE_ANON].noise = rows[i].ours * MIB};
    struct sampled_error its = {
        .pss[PAGE_ANON] = {.noise = rows[i].theirs * MIB, .lag = MIB}};
    double gain = rows[i].gain;

    sampled_fuse(&s, &estimate, &its);
    assert_near(s.pss[PAGE_ANON], (100 + gain * rows[i].apart) * MIB,
                0.001 * MIB);
    assert_near(s.error.pss[PAGE_ANON].noise,
                hypot(gain * rows[i].ours, (1 - gain) * rows[i].theirs) * MIB,
                0.001 * MIB);
    /* A fourth of what is new in the lag, or all of it. */
    assert_near(s.error.pss[PAGE_ANON].lag,
                (rows[i].is_news ? rows[i].apart : 0.75 + rows[i].apart / 4) *
                    MIB,
                0.001 * MIB);
  }
}

/* Ten samples that all agreed have seen as many pages more; not more than they
 * have together is claimed. */
TEST(pages_that_none_of_the_samples_has_met_are_rarer) {
  struct rollup estimate = estimate_of(100 * MIB);
  struct sampled_error its = {.pss[PAGE_ANON].rare = 2 * MIB};

  for (int i = 1; i <= 30; i++) {
    struct sampled s = {.pss[PAGE_ANON] = 100 * MIB,
                        .error.pss[PAGE_ANON].rare = 2 * MIB};
    double before = its.pss[PAGE_ANON].rare;

    sampled_fuse(&s, &estimate, &its);
    its = s.error;
    assert_true(its.pss[PAGE_ANON].rare < before);
    assert_true(its.pss[PAGE_ANON].rare >= 2.0 * MIB / (1 + i));
  }
  assert_near(its.pss[PAGE_ANON].rare, 2 * MIB / 10.0, MIB / 40.0);
}

/* The process has changed; or the estimate had no such error. */
TEST(rare_pages_of_a_sample_alone_stay_as_rare) {
  struct rollup estimate = estimate_of(100 * MIB);
  struct sampled changed = {.pss[PAGE_ANON] = 200 * MIB,
                            .error.pss[PAGE_ANON].rare = 2 * MIB};
  struct sampled same = {
      .pss[PAGE_ANON] = 100 * MIB,
      .error.pss[PAGE_ANON] = {.noise = 2 * MIB, .rare = 2 * MIB}};
  struct sampled news = {
      .pss[PAGE_ANON] = 100 * MIB,
      .error.pss[PAGE_ANON] = {.noise = 9 * MIB, .rare = 3 * MIB}};
  const struct sampled_error rare = {.pss[PAGE_ANON].rare = 2 * MIB};
  const struct sampled_error none = {.pss[PAGE_ANON].noise = 2 * MIB};

  sampled_fuse(&changed, &estimate, &rare);
  assert_near(changed.error.pss[PAGE_ANON].rare, 2 * MIB, 1);
  sampled_fuse(&same, &estimate, &none);
  assert_near(same.error.pss[PAGE_ANON].rare, MIB, 1);
  /* Or the sample has met pages that were ruled out. */
  sampled_fuse(&news, &estimate, &rare);
  assert_near(news.error.pss[PAGE_ANON].rare, 3 * MIB, 1);
}

/* Shmem is of the files. */
TEST(an_estimate_of_files_has_their_shmem) {
  const struct rollup estimate = {
      .bytes = {[ROLLUP_PSS_FILE] = 10 * MIB, [ROLLUP_PSS_SHMEM] = 6 * MIB}};
  const struct sampled_error its = {.pss[PAGE_FILE].noise = MIB};
  struct sampled s = {.pss[PAGE_FILE] = 17 * MIB,
                      .error.pss[PAGE_FILE].noise = MIB};

  sampled_fuse(&s, &estimate, &its);
  assert_near(s.pss[PAGE_FILE], 16.5 * MIB, 1);
}

TEST(all_of_a_part_that_could_not_be_drawn_is_in_doubt) {
  struct sampled s = {.swap = 0};

  sampled_add_exclusive(&s, PAGE_ANON, 3 * MIB);
  sampled_add_exclusive(&s, PAGE_FILE, MIB);
  for (unsigned i = 1; i <= 2; i++) {
    sampled_bound_unseen(&s, 0.25);
    assert_near(s.error.pss_bound, i * MIB, 0);
    assert_near(s.error.uss_bound, i * MIB, 0);
  }
  assert_near(sampled_uss_common(&s.error), 2 * MIB, 0);
  assert_near(sampled_uss_error(&s.error), 2 * MIB, 0);
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

/* 100 KiB of anonymous memory cost 80, and 60 KiB of files 30; 90 are its own,
 * and half of what files cost is shmem. Swap is shared as anonymous memory. */
TEST(a_rollup_has_the_parts_of_a_sample) {
  static const struct {
    enum rollup_field field;
    unsigned kib;
  } rows[] = {{ROLLUP_RSS, 160},          {ROLLUP_ANONYMOUS, 100},
              {ROLLUP_PSS, 110},          {ROLLUP_PSS_ANON, 80},
              {ROLLUP_PSS_FILE, 15},      {ROLLUP_PSS_SHMEM, 15},
              {ROLLUP_PRIVATE_DIRTY, 85}, {ROLLUP_PRIVATE_CLEAN, 5},
              {ROLLUP_SHARED_DIRTY, 45},  {ROLLUP_SHARED_CLEAN, 25},
              {ROLLUP_SWAP, 10},          {ROLLUP_SWAP_PSS, 8}};
  struct sampled s = {.resident = {100 * KIB, 60 * KIB},
                      .pss = {80 * KIB, 30 * KIB},
                      .uss = 90 * KIB,
                      .shmem_part = 0.5,
                      .swap = 10 * KIB + 512};
  struct rollup u;

  sampled_rollup(&s, &u);
  for (size_t i = 0; i < LENGTH(rows); i++)
    if (u.bytes[rows[i].field] != rows[i].kib * KIB)
      fail_msg("field %d: %.1f KiB", rows[i].field,
               (double)u.bytes[rows[i].field] / 1024);
  s = (struct sampled){.swap = 10 * KIB};
  sampled_rollup(&s, &u);
  assert_int_equal(u.bytes[ROLLUP_SWAP_PSS], 10 * KIB);
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
