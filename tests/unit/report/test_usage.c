/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "report/usage.h"

#include <math.h>

#include "draw.h"

#define KNOWN ((1U << ROLLUP_FIELDS) - 1)

/* All that a reader knows of a process, in kB: the rest follows. */
static struct rollup make_rollup(uint64_t pss, uint64_t private_clean,
                                 uint64_t private_dirty, uint64_t shared) {
  struct rollup r = {.known = KNOWN};

  r.bytes[ROLLUP_PSS] = pss * KIB;
  r.bytes[ROLLUP_PRIVATE_CLEAN] = private_clean * KIB;
  r.bytes[ROLLUP_PRIVATE_DIRTY] = private_dirty * KIB;
  r.bytes[ROLLUP_SHARED_CLEAN] = shared * KIB;
  r.bytes[ROLLUP_RSS] = (private_clean + private_dirty + shared) * KIB;
  return r;
}

static void add_rollup(struct usage *u, const struct rollup *r,
                       uint64_t resident_bytes) {
  usage_add_memory(u, &(struct usage_memory){.rollup = r,
                                             .resident_bytes = resident_bytes,
                                             .is_fresh = true});
}

static void add_estimate(struct usage *u, const struct rollup *r,
                         uint64_t resident_bytes, struct error pss,
                         struct error uss, uint64_t age_ns) {
  usage_add_memory(u, &(struct usage_memory){.rollup = r,
                                             .resident_bytes = resident_bytes,
                                             .pss = pss,
                                             .uss = uss,
                                             .age_ns = age_ns});
}

static void add(struct usage *u, const struct rollup *r, uint64_t pages) {
  const struct statm_sample statm = {.resident_pages = pages};

  u->processes++;
  usage_add_statm(u, &statm, PAGE);
  if (r)
    add_rollup(u, r, pages * PAGE);
  else
    u->unreadable++;
}

TEST(statm_adds_up_in_bytes) {
  static const struct statm_sample one = {.size_pages = 1000,
                                          .resident_pages = 300,
                                          .shared_pages = 200,
                                          .text_pages = 40,
                                          .data_pages = 5};
  /* The sum exceeds 4 GiB, on a kernel with pages of 64 KiB. */
  static const struct statm_sample big = {.size_pages = UINT32_MAX};
  struct usage u = {.processes = 0};

  usage_add_statm(&u, &one, PAGE);
  usage_add_statm(&u, &one, 16 * PAGE);
  assert_int_equal(u.size, 17000 * PAGE);
  assert_int_equal(u.resident, 5100 * PAGE);
  assert_int_equal(u.resident_shared, 3400 * PAGE);
  assert_int_equal(u.text, 680 * PAGE);
  assert_int_equal(u.data, 85 * PAGE);
  usage_add_statm(&u, &big, 16 * PAGE);
  assert_true(u.size == 17000 * PAGE + 16 * PAGE * UINT32_MAX);
  assert_int_equal(u.processes, 0);
}

/* The sums that rollup_parse() accepts: pss up to rss, any uss, and the four
 * short of rss or above it by up to 4 kB. */
static struct rollup draw_rollup(void) {
  uint64_t scale = UINT64_C(1) << draw(32);
  struct rollup r = make_rollup(0, draw(2) * draw(scale), draw(scale),
                                draw(3) ? draw(scale) : 0);
  uint64_t rss = r.bytes[ROLLUP_RSS] / KIB + draw(9);

  rss = rss > 4 ? rss - 4 : 0;
  r.bytes[ROLLUP_RSS] = rss * KIB;
  r.bytes[ROLLUP_PSS] = draw(4) ? draw(rss + 1) * KIB : rss * KIB;
  return r;
}

TEST(guesses_of_unreadable_members_do_not_count_as_coverage) {
  const struct error whole = {.common = 90 * KIB};
  struct rollup large = make_rollup(90, 90, 0, 30);
  struct rollup small = make_rollup(10, 10, 0, 0);
  struct usage u = {.processes = 0};

  add(&u, &small, 10);
  add(&u, NULL, 30);
  usage_add_memory(
      &u, &(struct usage_memory){
              .rollup = &large, .pss = whole, .uss = whole, .is_unread = true});
  assert_int_equal(u.rollup.bytes[ROLLUP_PSS], 100 * KIB);
  assert_int_equal(u.rollup.bytes[ROLLUP_RSS], 130 * KIB);
  assert_int_equal(usage_pss_error(&u), 90 * KIB); /* it may be nothing */
  assert_int_equal(u.unmeasured, 1);
  assert_true(usage_coverage_percent(&u) == 25);
  assert_true(usage_age_seconds(&u) == 0);
}

static void estimate(struct usage *u, const struct rollup *r, uint64_t pages,
                     uint64_t doubt_kb, uint64_t age_ns) {
  const struct statm_sample statm = {.resident_pages = pages};

  u->processes++;
  usage_add_statm(u, &statm, PAGE);
  add_estimate(u, r, pages * PAGE,
               (struct error){.common = (double)(doubt_kb * KIB)},
               (struct error){.common = 0}, age_ns);
}

TEST(doubt_adds_up_and_the_oldest_age_counts) {
  struct rollup r = make_rollup(10, 10, 0, 0);
  struct usage u = {.processes = 0};

  add(&u, &r, 10);
  assert_int_equal(usage_pss_error(&u), 0);
  assert_int_equal(u.oldest_age_ns, 0);
  estimate(&u, &r, 10, 3, 7);
  estimate(&u, &r, 10, 4, 9000000000);
  estimate(&u, &r, 10, 5, 8);
  assert_int_equal(usage_pss_error(&u), 12 * KIB);
  assert_true(u.oldest_age_ns == 9000000000);
  assert_int_equal(u.unmeasured, 0);
  estimate(&u, &r, 10, 10, 0);
  assert_int_equal(u.unmeasured, 1);
  assert_int_equal(usage_pss_error(&u), 22 * KIB);
  assert_true(usage_age_seconds(&u) == 9);
}

/* A fork that was never read can be as large as it looks only if it is small.
 */
TEST(unread_members_that_ended_were_no_larger_than_others) {
  struct rollup r = make_rollup(20, 16, 0, 8);
  struct usage u = {.ended_unread = 2, .ended_unread_bytes = 70 * KIB};

  assert_int_equal(usage_pss_error(&u), 70 * KIB);
  add(&u, &r, 10);
  assert_int_equal(usage_pss_error(&u), 40 * KIB);
  assert_int_equal(usage_uss_error(&u), 32 * KIB);
  u.ended_unread_bytes = 8 * KIB;
  assert_int_equal(usage_pss_error(&u), 8 * KIB);
  assert_int_equal(usage_uss_error(&u), 8 * KIB);
}

TEST(a_sample_covers_all_but_its_error) {
  const struct error small = {.common = 10 * KIB}, large = {.common = MIB};
  struct rollup r = make_rollup(40, 40, 0, 0);
  struct usage u = {.processes = 0};

  usage_add_memory(
      &u, &(struct usage_memory){.rollup = &r, .pss = small, .is_fresh = true});
  assert_true(usage_coverage_percent(&u) == 75);
  usage_add_memory(
      &u, &(struct usage_memory){.rollup = &r, .pss = large, .is_fresh = true});
  assert_true(usage_coverage_percent(&u) == 37.5);
  assert_true(usage_age_seconds(&u) == 0);
}

TEST(coverage_is_the_share_of_pss_that_is_fresh) {
  struct rollup large = make_rollup(30, 30, 0, 0);
  struct rollup small = make_rollup(10, 10, 0, 0);
  struct usage u = {.processes = 0};

  estimate(&u, &large, 10, 0, 1);
  assert_true(usage_coverage_percent(&u) == 0);
  add(&u, &small, 70); /* large in statm, but that is not what counts */
  assert_true(usage_coverage_percent(&u) == 25);
  estimate(&u, &large, 20, 0, 0);
  add(&u, &large, 20);
  assert_true(usage_coverage_percent(&u) == 40);
  /* A third of resident memory is unknown. */
  add(&u, NULL, 60);
  assert_true(usage_coverage_percent(&u) > 40.0 * 2 / 3 - 1e-9);
  assert_true(usage_coverage_percent(&u) < 40.0 * 2 / 3 + 1e-9);
}

TEST(age_is_unknown_where_nothing_was_ever_read) {
  struct rollup r = make_rollup(10, 10, 0, 0);
  struct usage none = {.processes = 0}, guessed = none, denied = none;

  assert_true(usage_age_seconds(&none) == 0);
  estimate(&guessed, &r, 10, 10, 0);
  assert_true(isnan(usage_age_seconds(&guessed)));
  add(&denied, NULL, 10);
  assert_true(isnan(usage_age_seconds(&denied)));
  estimate(&guessed, &r, 10, 10, 500000000);
  assert_true(usage_age_seconds(&guessed) == 0.5);
  add(&denied, &r, 10);
  assert_true(usage_age_seconds(&denied) == 0);
}

TEST(newcomer_is_guessed_from_known_members) {
  static const struct statm_sample half = {.resident_pages = 100,
                                           .shared_pages = 60};
  struct rollup r = make_rollup(200, 100, 50, 650), got;
  struct usage u = {.processes = 0};

  r.bytes[ROLLUP_ANONYMOUS] = 160 * KIB;
  r.bytes[ROLLUP_SWAP_PSS] = 44 * KIB;
  r.known &= ~(1U << ROLLUP_KSM);
  add(&u, &r, 200);
  usage_guess(&u, &half, PAGE, KNOWN, &got);
  assert_int_equal(got.known, r.known);
  assert_int_equal(got.bytes[ROLLUP_RSS], 400 * KIB);
  assert_int_equal(got.bytes[ROLLUP_PSS], 100 * KIB);
  assert_int_equal(got.bytes[ROLLUP_PRIVATE_DIRTY], 25 * KIB);
  assert_int_equal(got.bytes[ROLLUP_SWAP_PSS], 22 * KIB);
}

/* The one member that is known has 160 kB, at a quarter of it; the newcomer 40
 * MB, which it can share with nobody. */
TEST(memory_that_no_member_shares_is_guessed_to_be_private) {
  static const struct statm_sample large = {.resident_pages = 10000 + 15,
                                            .shared_pages = 15};
  struct rollup r = make_rollup(200, 100, 50, 650), got;
  struct usage u = {.processes = 0};

  r.bytes[ROLLUP_ANONYMOUS] = 160 * KIB;
  add(&u, &r, 200);
  usage_guess(&u, &large, PAGE, KNOWN, &got);
  assert_int_equal(got.bytes[ROLLUP_RSS], 40060 * KIB);
  assert_int_equal(got.bytes[ROLLUP_PSS], (39840 + 220 / 4) * KIB);
  assert_in_range(got.bytes[ROLLUP_PRIVATE_DIRTY], 39840 * KIB, 39860 * KIB);
  assert_true(got.bytes[ROLLUP_ANONYMOUS] >= 39840 * KIB);
}

TEST(alone_a_newcomer_is_guessed_from_its_statm) {
  static const struct statm_sample s = {.resident_pages = 100,
                                        .shared_pages = 60};
  struct usage u = {.processes = 0};
  struct rollup got;

  usage_guess(&u, &s, PAGE, KNOWN & ~(1U << ROLLUP_KSM), &got);
  assert_int_equal(got.known, KNOWN & ~(1U << ROLLUP_KSM));
  assert_int_equal(got.bytes[ROLLUP_RSS], 400 * KIB);
  assert_int_equal(got.bytes[ROLLUP_PSS], 280 * KIB);
  assert_int_equal(got.bytes[ROLLUP_PRIVATE_DIRTY], 160 * KIB);
  assert_int_equal(got.bytes[ROLLUP_ANONYMOUS], 160 * KIB);
  assert_int_equal(got.bytes[ROLLUP_PSS_ANON], 160 * KIB);
  assert_int_equal(got.bytes[ROLLUP_PSS_FILE], 120 * KIB);
  assert_int_equal(got.bytes[ROLLUP_PSS_DIRTY], 160 * KIB);
}

TEST(any_guess_keeps_uss_below_pss_below_rss) {
  draw_begin(1815);
  for (int round = 0; round < 20000; round++) {
    struct statm_sample s = {.resident_pages = draw(UINT64_C(1) << draw(28))};
    struct usage u = {.processes = 0}, one = {.processes = 0};
    struct rollup got;

    s.shared_pages = draw(s.resident_pages + 1);
    for (uint64_t n = draw(4); n > 0; n--) {
      struct rollup r = draw_rollup();

      /* statm is from another moment, and not exact on each kernel. */
      add_rollup(&u, &r, r.bytes[ROLLUP_RSS] / (1 + draw(3)));
    }
    usage_guess(&u, &s, PAGE, KNOWN, &got);
    for (int f = 0; f < ROLLUP_FIELDS; f++)
      assert_in_range(got.bytes[f], 0, UINT64_C(1) << 61);
    assert_true(got.bytes[ROLLUP_PSS] <= got.bytes[ROLLUP_RSS]);
    assert_true(
        got.bytes[ROLLUP_SHARED_CLEAN] + got.bytes[ROLLUP_SHARED_DIRTY] +
            got.bytes[ROLLUP_PRIVATE_CLEAN] + got.bytes[ROLLUP_PRIVATE_DIRTY] ==
        got.bytes[ROLLUP_RSS]);
    add_estimate(&one, &got, s.resident_pages * PAGE,
                 (struct error){.common = 0}, (struct error){.common = 0}, 0);
    assert_true(one.uss <= one.rollup.bytes[ROLLUP_PSS]);
  }
}

/* From 6.2 to 6.16 a small process may show next to nothing in its statm. */
TEST(a_guess_is_within_resident_memory) {
  static const struct statm_sample s = {.resident_pages = 1000,
                                        .shared_pages = 600};
  struct rollup r = make_rollup(3000, 0, 2000, 2000), got;
  struct usage u = {.processes = 0};

  add(&u, &r, 1);
  usage_guess(&u, &s, PAGE, KNOWN, &got);
  assert_in_range(got.bytes[ROLLUP_RSS], 0, 1000 * PAGE);
}

static void assert_part(double part, double kib) {
  if (fabs(part - kib * (double)KIB) > 1)
    fail_msg("%f and not %f KiB", part / (double)KIB, kib);
}

/* Common errors add up, and others add up as squares. */
TEST(parts_by_cause_add_up_to_the_error) {
  static const struct error one = {.common = 4 * KIB, .independent = 6 * KIB};
  static const struct error other = {.independent = 8 * KIB};
  static const double ones[ALL_CAUSES] = {[CAUSE_GUESS] = 3, [CAUSE_FORK] = 1};
  static const double others[ALL_CAUSES] = {[CAUSE_FORK] = 0.5};
  struct error_sum sums[ALL_CAUSES] = {{0}};
  struct rollup r = make_rollup(100, 0, 50, 100);
  struct usage u = {.processes = 0};
  double parts[ALL_CAUSES];

  add_estimate(&u, &r, 150 * KIB, one, one, 1);
  add_estimate(&u, &r, 150 * KIB, other, other, 1);
  error_divide(sums, one, ones);
  error_divide(sums, other, others);
  assert_int_equal(usage_pss_error(&u), 14 * KIB);
  usage_pss_parts(&u, sums, parts);
  assert_part(parts[CAUSE_GUESS], 3 + 2.7);
  assert_part(parts[CAUSE_FORK], 1 + 7.3);
  u.ended_pss = 10 * KIB;
  u.perhaps_bytes = 4 * KIB;
  usage_pss_parts(&u, sums, parts);
  assert_part(parts[CAUSE_FORK], 1 + 7.3);
  assert_part(parts[CAUSE_ENDED], 10);
  assert_part(parts[CAUSE_UNIDENTIFIED], 4);
}

TEST(files_and_lazily_freed_memory_do_not_fill_the_machine) {
  struct rollup r = make_rollup(1000, 0, 900, 200);
  struct rollup old = make_rollup(1000, 0, 900, 200);
  struct usage u = {.processes = 0}, before_5_3 = {.processes = 0};

  r.bytes[ROLLUP_PSS_ANON] = 600 * KIB;
  r.bytes[ROLLUP_PSS_FILE] = 370 * KIB;
  r.bytes[ROLLUP_PSS_SHMEM] = 30 * KIB;
  r.bytes[ROLLUP_LAZY_FREE] = 200 * KIB;
  r.bytes[ROLLUP_SWAP_PSS] = 5 * KIB;
  add_rollup(&u, &r, 1100 * KIB);
  assert_int_equal(usage_filling(&u), (600 + 30 - 200 + 5) * KIB);
  /* Of shared pages LazyFree has each whole, and PSS a part. */
  r.bytes[ROLLUP_LAZY_FREE] = 700 * KIB;
  u = (struct usage){.processes = 0};
  add_rollup(&u, &r, 1100 * KIB);
  assert_int_equal(usage_filling(&u), (30 + 5) * KIB);
  old.known &=
      ~(1U << ROLLUP_PSS_ANON | 1U << ROLLUP_PSS_FILE | 1U << ROLLUP_PSS_SHMEM);
  old.bytes[ROLLUP_ANONYMOUS] = 700 * KIB;
  old.bytes[ROLLUP_LAZY_FREE] = 200 * KIB;
  add_rollup(&before_5_3, &old, 1100 * KIB);
  assert_int_equal(usage_filling(&before_5_3), 500 * KIB);
  /* Shared since a fork. */
  old.bytes[ROLLUP_ANONYMOUS] = 1050 * KIB;
  before_5_3 = (struct usage){.processes = 0};
  add_rollup(&before_5_3, &old, 1100 * KIB);
  assert_int_equal(usage_filling(&before_5_3), 800 * KIB);
}
