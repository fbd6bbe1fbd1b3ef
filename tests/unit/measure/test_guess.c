#include "test.h"

#include "measure/aggregate.h"

#include <math.h>

#include "draw.h"

#define KNOWN ((1U << ROLLUP_FIELDS) - 1)

static const struct meminfo_sample host = {.anon_pages_bytes = 1000 * MIB,
                                           .mapped_bytes = 200 * MIB};
static const struct doubt none = {.common = 0};

/* Anonymous memory of its own, and files; in MiB. */
static struct rollup make_rollup(uint64_t anon, uint64_t files,
                                 uint64_t pss_files) {
  struct rollup r = {.known = KNOWN};

  r.bytes[ROLLUP_RSS] = (anon + files) * MIB;
  r.bytes[ROLLUP_ANONYMOUS] = anon * MIB;
  r.bytes[ROLLUP_PSS_ANON] = anon * MIB;
  r.bytes[ROLLUP_PSS_FILE] = pss_files * MIB;
  r.bytes[ROLLUP_PSS] = (anon + pss_files) * MIB;
  r.bytes[ROLLUP_PRIVATE_DIRTY] = anon * MIB;
  r.bytes[ROLLUP_SHARED_CLEAN] = files * MIB;
  return r;
}

static struct guess_limit begin(const struct meminfo_sample *meminfo) {
  struct guess_limit l;

  guess_begin(&l, meminfo);
  return l;
}

static void measured(struct guess_limit *l, uint64_t anon, uint64_t files) {
  struct rollup r = make_rollup(anon, files, files);

  guess_measured(l, &r, none);
}

static void check(const struct rollup *r, uint64_t anon, uint64_t files) {
  uint64_t uss = rollup_uss(r);

  assert_int_equal(r->bytes[ROLLUP_PSS_ANON], anon * MIB);
  assert_int_equal(r->bytes[ROLLUP_PSS_FILE], files * MIB);
  assert_int_equal(r->bytes[ROLLUP_PSS], (anon + files) * MIB);
  assert_in_range(uss, 0, r->bytes[ROLLUP_PSS]);
  assert_int_equal(uss + r->bytes[ROLLUP_SHARED_CLEAN] +
                       r->bytes[ROLLUP_SHARED_DIRTY],
                   r->bytes[ROLLUP_RSS]);
}

TEST(guesses_share_what_the_host_has_left) {
  struct guess_limit l = begin(&host);
  struct rollup one = make_rollup(300, 100, 80);
  struct rollup other = make_rollup(900, 40, 20);

  measured(&l, 400, 150);
  guess_made(&l, &one);
  guess_made(&l, &other);
  guess_limit(&l, &one);
  guess_limit(&l, &other);
  check(&one, 150, 40);
  check(&other, 450, 10);
  assert_int_equal(one.bytes[ROLLUP_RSS], 400 * MIB);
  assert_int_equal(one.bytes[ROLLUP_PRIVATE_DIRTY], 150 * MIB);
}

TEST(each_kind_has_its_own_limit) {
  struct guess_limit l = begin(&host);
  struct rollup guess = make_rollup(500, 100, 80);

  measured(&l, 100, 160);
  guess_made(&l, &guess);
  guess_limit(&l, &guess);
  check(&guess, 500, 40);
}

TEST(a_guess_within_the_limit_stays_as_it_is) {
  struct guess_limit l = begin(&host);
  struct rollup guess = make_rollup(300, 100, 80), before = guess;

  measured(&l, 700, 120);
  guess_made(&l, &guess);
  guess_limit(&l, &guess);
  assert_memory_equal(&guess, &before, sizeof(guess));
}

TEST(nothing_is_left_where_more_was_measured) {
  struct guess_limit l = begin(&host);
  struct rollup guess = make_rollup(300, 100, 80);

  measured(&l, 1100, 201);
  guess_made(&l, &guess);
  guess_limit(&l, &guess);
  check(&guess, 0, 0);
  assert_int_equal(guess.bytes[ROLLUP_RSS], 400 * MIB);
}

static const struct doubt_sum of_nobody;

static void check_unlimited(struct guess_limit *l) {
  struct rollup guess = make_rollup(5000, 1000, 800), before = guess;

  guess_made(l, &guess);
  guess_limit(l, &guess);
  assert_memory_equal(&guess, &before, sizeof(guess));
  assert_true(isinf(guess_beyond(l, &of_nobody)));
}

TEST(without_both_numbers_of_this_host_there_is_no_limit) {
  static const struct meminfo_sample no_anon = {.mapped_bytes = MIB};
  static const struct meminfo_sample no_mapped = {.anon_pages_bytes = MIB};
  struct guess_limit l = begin(NULL);

  check_unlimited(&l);
  l = begin(&no_anon);
  check_unlimited(&l);
  l = begin(&no_mapped);
  check_unlimited(&l);
}

TEST(a_kernel_that_tells_no_kinds_apart_gives_no_limit) {
  struct guess_limit l = begin(&host);
  struct rollup old = make_rollup(10, 10, 10);

  old.known &= ~(1U << ROLLUP_PSS_ANON);
  guess_measured(&l, &old, none);
  check_unlimited(&l);
}

/* All that is left, what the measured may lack, and what has moved between
 * meminfo and the readings: a hundredth of 1200 MiB. */
TEST(the_error_is_what_the_host_may_have_left) {
  struct guess_limit l = begin(&host);
  struct rollup r = make_rollup(400, 150, 150);

  guess_measured(&l, &r, (struct doubt){.common = 8 * (double)MIB});
  assert_in_range(guess_beyond(&l, &of_nobody), 670 * MIB - 1, 670 * MIB);
  measured(&l, 900, 150);
  assert_in_range(guess_beyond(&l, &of_nobody), 20 * MIB - 1, 20 * MIB);
  /* Its own error is not the room that a group has. */
  assert_in_range(
      guess_beyond(&l, &(struct doubt_sum){.common = 6 * (double)MIB}),
      14 * MIB - 1, 14 * MIB);
}

/* Whatever is true, it is within the limits of the kernel's own relations. */
TEST(any_limited_guess_keeps_uss_below_pss_below_rss) {
  draw_begin(1807);
  for (int round = 0; round < 2000; round++) {
    struct guess_limit l = begin(&host);
    uint64_t anon = draw(3000), files = draw(600);
    struct rollup guess = make_rollup(anon, files, draw(files + 1));

    guess.bytes[ROLLUP_PSS_SHMEM] = draw(guess.bytes[ROLLUP_PSS_FILE] + 1);
    guess.bytes[ROLLUP_PSS_FILE] -= guess.bytes[ROLLUP_PSS_SHMEM];
    measured(&l, draw(1200), draw(300));
    guess_made(&l, &guess);
    guess_limit(&l, &guess);
    assert_in_range(rollup_uss(&guess), 0, guess.bytes[ROLLUP_PSS]);
    assert_in_range(guess.bytes[ROLLUP_PSS], 0, guess.bytes[ROLLUP_RSS]);
    assert_in_range(guess.bytes[ROLLUP_PSS_ANON], 0, 1000 * MIB);
    assert_in_range(guess.bytes[ROLLUP_PSS] - guess.bytes[ROLLUP_PSS_ANON], 0,
                    200 * MIB);
    assert_int_equal(guess.bytes[ROLLUP_PSS],
                     guess.bytes[ROLLUP_PSS_ANON] +
                         guess.bytes[ROLLUP_PSS_FILE] +
                         guess.bytes[ROLLUP_PSS_SHMEM]);
  }
}
