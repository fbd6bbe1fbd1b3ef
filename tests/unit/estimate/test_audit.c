/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "estimate/audit.h"

#include <math.h>

#define SECOND UINT64_C(1000000000)

/* Returns an exposure to one cause. */
static struct bounds exposed(enum cause cause, double bytes) {
  struct bounds x = {.bytes = {[CAUSE_FILES] = 0}};

  x.bytes[cause] = bytes;
  return x;
}

static double pss(const struct audit *a, const struct bounds *x,
                  enum audit_level level) {
  struct audit_errors e;

  audit_errors(a, x, level, &e);
  return error_bytes(e.pss);
}

static double uss(const struct audit *a, const struct bounds *x,
                  enum audit_level level) {
  struct audit_errors e;

  audit_errors(a, x, level, &e);
  return error_bytes(e.uss);
}

/* So many cycles, each with a reading that was off by so much. */
static void learn(struct audit *a, const struct bounds *x, unsigned cycles,
                  double off, double uss_off) {
  for (unsigned i = 0; i < cycles; i++)
    audit_learn(a, a->cycle_ns + SECOND, x,
                &(struct audit_lesson){.pss_off = off, .uss_off = uss_off});
}

TEST(published_error_follows_the_errors_that_readings_show) {
  static const double parts[] = {0.5, 0.05, 0.25};
  struct audit a = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_RELATIVES, 1000);

  for (size_t i = 0; i < LENGTH(parts); i++) {
    learn(&a, &x, 150, 1000 * parts[i], 0);
    assert_true(fabs(pss(&a, &x, AUDIT_EXPECTED) - 1000 * parts[i]) < 20);
  }
}

/* An error that was seen is feared for longer than it is expected. */
TEST(a_published_error_is_forgotten_slowly) {
  struct audit a = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_FILES, 1000);

  learn(&a, &x, 40, 500, 0);
  learn(&a, &x, 40, 0, 0);
  assert_true(pss(&a, &x, AUDIT_EXPECTED) < 150);
  assert_true(pss(&a, &x, AUDIT_PUBLISHED) > 1500);
  learn(&a, &x, 400, 0, 0);
  assert_true(pss(&a, &x, AUDIT_PUBLISHED) < 400);
}

/* Off alike, they are less off by their size: in a cycle, whichever comes
 * first. */
TEST(small_process_that_is_read_first_does_not_widen_the_error_of_a_large_one) {
  struct audit a = {.cycle_ns = 0};
  struct bounds small = exposed(CAUSE_FILES, 1e6);
  struct bounds large = exposed(CAUSE_FILES, 1e9);
  const struct audit_lesson l = {.pss_off = 1e6};

  for (unsigned cycle = 1; cycle <= 60; cycle++) {
    audit_learn(&a, cycle * SECOND, &small, &l);
    audit_learn(&a, cycle * SECOND, &large, &l);
  }
  assert_true(pss(&a, &large, AUDIT_PUBLISHED) < 0.2e9);
}

static bool is_sure(enum cause k) {
  return k == CAUSE_KSM || k == CAUSE_READING || k == CAUSE_STATM;
}

/* Readings that were right may have been so by chance. */
TEST(no_error_is_ever_ruled_out) {
  for (int k = 0; k < CAUSES; k++) {
    struct audit a = {.cycle_ns = 0};
    struct bounds x = exposed((enum cause)k, 1e6);

    learn(&a, &x, 5000, 0, 0);
    if (!(pss(&a, &x, AUDIT_PUBLISHED) > 0) ||
        (pss(&a, &x, AUDIT_EXPECTED) >= 1e6) != is_sure((enum cause)k))
      fail_msg("cause %d", k);
  }
}

/* A cause that is not learnt has its exposure as error. */
TEST(a_sure_error_is_neither_learnt_nor_multiplied) {
  struct audit a = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_READING, 1000);

  learn(&a, &x, 10, 1e6, 1e6);
  for (int level = AUDIT_EXPECTED; level <= AUDIT_PUBLISHED; level++)
    assert_int_equal((int)pss(&a, &x, (enum audit_level)level), 1000);
}

TEST(an_error_is_divided_between_its_causes) {
  struct audit a = {.cycle_ns = 0};
  struct bounds files = exposed(CAUSE_FILES, 1000);
  struct bounds copies = exposed(CAUSE_COPIES, 1000);
  struct bounds both = exposed(CAUSE_FILES, 1000);

  both.bytes[CAUSE_COPIES] = 1000;
  for (unsigned i = 0; i < 100; i++) {
    learn(&a, &files, 1, 0, 0);
    learn(&a, &both, 1, 600, 0);
  }
  assert_true(pss(&a, &files, AUDIT_EXPECTED) <
              pss(&a, &copies, AUDIT_EXPECTED) / 3);
}

/* A sample is off by its own noise. */
TEST(noise_of_samples_does_not_count_as_an_error_of_the_estimate) {
  struct audit a = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_TIME, 1e6);

  for (unsigned i = 0; i < 300; i++)
    audit_learn(&a, i * SECOND, &x,
                &(struct audit_lesson){.pss_off = i % 2 ? 5000 : -5000,
                                       .pss_noise = 5000});
  assert_true(pss(&a, &x, AUDIT_EXPECTED) < 2500);
}

/* Members that are off alike are so together, and others are not. */
TEST(errors_of_one_sign_are_common) {
  static const struct {
    double off[2];
    bool are_common;
  } rows[] = {{{500, 500}, true}, {{500, -500}, false}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct audit a = {.cycle_ns = 0};
    struct bounds x = exposed(CAUSE_FILES, 1000);
    struct audit_errors e;

    for (unsigned cycle = 1; cycle < 100; cycle++)
      for (unsigned m = 0; m < 2; m++)
        audit_learn(&a, cycle * SECOND, &x,
                    &(struct audit_lesson){.pss_off = rows[i].off[m]});
    audit_errors(&a, &x, AUDIT_EXPECTED, &e);
    assert_int_equal(e.pss.common > e.pss.independent, rows[i].are_common);
  }
}

TEST(uss_can_be_off_by_more_or_less_than_pss) {
  struct audit more = {.cycle_ns = 0}, less = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_COPIES, 1000);

  learn(&more, &x, 100, 300, 400);
  learn(&less, &x, 100, 300, 30);
  assert_true(uss(&more, &x, AUDIT_EXPECTED) >
              1.2 * pss(&more, &x, AUDIT_EXPECTED));
  assert_true(uss(&less, &x, AUDIT_EXPECTED) <
              0.2 * pss(&less, &x, AUDIT_EXPECTED));
}

/* However long all that was freed has been private. */
TEST(freed_memory_may_have_been_shared) {
  struct audit a = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_FREED, 1000);

  learn(&a, &x, 200, 10, 0);
  /* For two members it is the root of two of it; uss is off by twice as much.
   */
  assert_true(fabs(pss(&a, &x, AUDIT_PUBLISHED) - 1414.2) < 0.1);
  assert_true(fabs(uss(&a, &x, AUDIT_PUBLISHED) - 2828.4) < 0.1);
  assert_true(pss(&a, &x, AUDIT_CHOSEN) >= 300);
}

/* With what is sure, and what was learnt of some of them. */
TEST(parts_by_cause_add_up_to_the_error) {
  struct audit a = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_SWAP, 3e5), all;
  struct audit_errors e;
  double sum = 0;

  learn(&a, &x, 100, 2e4, 0);
  for (int k = 0; k < CAUSES; k++)
    all.bytes[k] = 1e4 * (k + 1);
  audit_errors(&a, &all, AUDIT_PUBLISHED, &e);
  for (int k = 0; k < CAUSES; k++) {
    if (!(e.pss_parts[k] > 0))
      fail_msg("cause %d", k);
    sum += e.pss_parts[k];
  }
  assert_true(fabs(sum / error_bytes(e.pss) - 1) < 1e-9);
  assert_true(e.pss_parts[CAUSE_KSM] == all.bytes[CAUSE_KSM]);
  assert_true(e.pss_parts[CAUSE_STATM] == all.bytes[CAUSE_STATM]);
}

/* --- calculated by hand --- */

static void assert_about(double is, double expected) {
  if (!(fabs(is - expected) <= 1e-3 * (1 + fabs(expected))))
    fail_msg("%f and not %f", is, expected);
}

/* The part of its squared bound that an error has: with a blank audit. */
static double part_at_first(void) {
  const struct audit blank = {.cycle_ns = 0};
  const struct bounds x = exposed(CAUSE_FILES, 1);

  return pow(pss(&blank, &x, AUDIT_EXPECTED), 2);
}

/* How much one lesson counts, beside what was thought before it. */
static double weight_of_lesson(void) {
  struct audit a = {.cycle_ns = 0};
  const struct bounds x = exposed(CAUSE_FILES, 1);

  learn(&a, &x, 1, 1, 0);
  return (pow(pss(&a, &x, AUDIT_EXPECTED), 2) - part_at_first()) /
         (1 - part_at_first());
}

/* The part that is expected after a first lesson that shows this one. */
static double learnt(double part) {
  double weight = weight_of_lesson();

  return part * weight + part_at_first() * (1 - weight);
}

TEST(causes_add_up_by_squares_and_sure_ones_as_they_are) {
  const struct audit blank = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_FILES, 300);
  double one;

  one = pss(&blank, &x, AUDIT_EXPECTED);
  x.bytes[CAUSE_COPIES] = 400;
  assert_about(pss(&blank, &x, AUDIT_EXPECTED), one * 5 / 3);
  assert_about(uss(&blank, &x, AUDIT_EXPECTED), one * 5 / 3 * sqrt(2));
  x.bytes[CAUSE_KSM] = 7000;
  assert_about(pss(&blank, &x, AUDIT_EXPECTED), one * 5 / 3 + 7000);
  assert_about(uss(&blank, &x, AUDIT_EXPECTED), one * 5 / 3 * sqrt(2) + 14000);
}

TEST(lessons_count_more_the_more_there_are) {
  double weight = weight_of_lesson();
  struct audit a = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_FILES, 1);

  assert_true(weight > 0.1 && weight < 0.3);
  learn(&a, &x, 2, 1, 0);
  assert_about(pow(pss(&a, &x, AUDIT_EXPECTED), 2),
               1 - (1 - part_at_first()) * pow(1 - weight, 2));
}

/* All members that were read in a cycle count alike. */
TEST(errors_of_a_cycle_count_by_their_mean_square) {
  static const double times[] = {1, 1.96, 6.5};
  struct audit a = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_FILES, 1000);

  for (unsigned i = 1; i <= 200; i++) {
    audit_learn(&a, i * SECOND, &x, &(struct audit_lesson){.pss_off = 100});
    audit_learn(&a, i * SECOND, &x, &(struct audit_lesson){.pss_off = -700});
  }
  for (int level = AUDIT_EXPECTED; level <= AUDIT_PUBLISHED; level++)
    assert_about(pss(&a, &x, (enum audit_level)level), 500 * times[level]);
}

/* It was 800 in one cycle, and 100 in the next ten: readings are chosen by what
 * is between the mean and the highest, and this is published. */
TEST(the_highest_error_of_late_is_published) {
  struct audit a = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_FILES, 1000);
  double mean, highest;

  learn(&a, &x, 100, 800, 0);
  learn(&a, &x, 10, 100, 0);
  mean = pss(&a, &x, AUDIT_EXPECTED);
  highest = pss(&a, &x, AUDIT_PUBLISHED) / 6.5;
  assert_true(mean < 600 && highest > 650 && highest < 800);
  assert_about(pss(&a, &x, AUDIT_CHOSEN), 1.96 * sqrt(mean * highest));
}

TEST(an_error_is_taken_for_its_bound_at_most) {
  struct audit a = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_FILES, 1000);

  learn(&a, &x, 200, -5000, 0);
  assert_about(pss(&a, &x, AUDIT_EXPECTED), 1000);
}

/* Of two causes that were as likely each has half of an error of 600, and the
 * other half of the doubt about it stays. The same with a noise as likely. */
TEST(a_lesson_is_split_by_what_was_expected) {
  double own = part_at_first() * 1e6;
  double part = (0.25 * 600 * 600 + 0.5 * own) / 1e6;
  struct bounds files = exposed(CAUSE_FILES, 1000), both = files;
  struct audit a = {.cycle_ns = 0}, noisy = {.cycle_ns = 0};
  double uss_square;

  both.bytes[CAUSE_COPIES] = 1000;
  learn(&a, &both, 1, 600, 0);
  assert_about(pss(&a, &files, AUDIT_EXPECTED), 1000 * sqrt(learnt(part)));
  audit_learn(&noisy, SECOND, &files,
              &(struct audit_lesson){.pss_off = 600,
                                     .pss_noise = sqrt(own),
                                     .uss_off = 400,
                                     .uss_noise = sqrt(2 * own)});
  assert_about(pss(&noisy, &files, AUDIT_EXPECTED), 1000 * sqrt(learnt(part)));
  /* Half of an error of uss, by that of Pss; twice was thought at first. */
  uss_square = (0.25 * 400 * 400 + 0.5 * 2 * own) / (part * 1e6);
  uss_square = uss_square * weight_of_lesson() + 2 * (1 - weight_of_lesson());
  assert_about(uss(&noisy, &files, AUDIT_EXPECTED),
               1000 * sqrt(learnt(part) * fmin(uss_square, 2)));
}

/* Only what exceeds what is sure is an error; of uss twice as much is. */
TEST(what_is_sure_explains_an_error_first) {
  struct audit a = {.cycle_ns = 0}, b = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_FILES, 1000), with = x;

  with.bytes[CAUSE_READING] = 200;
  for (int i = 0; i < 50; i++) {
    learn(&a, &with, 1, i % 2 ? -500 : 500, i % 2 ? 450 : -450);
    learn(&b, &x, 1, i % 2 ? -300 : 300, i % 2 ? 50 : -50);
  }
  assert_about(pss(&a, &x, AUDIT_EXPECTED), pss(&b, &x, AUDIT_EXPECTED));
  assert_about(uss(&a, &x, AUDIT_EXPECTED), uss(&b, &x, AUDIT_EXPECTED));
}

/* While KSM works, or where no cause is left. */
TEST(nothing_is_learnt_of_an_error_without_a_cause) {
  const struct audit blank = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_FILES, 1000), ksm = x;
  struct bounds none = exposed(CAUSE_FILES, 0);
  struct audit a = blank;

  ksm.bytes[CAUSE_KSM] = 1;
  learn(&a, &ksm, 10, 900, 900);
  learn(&a, &none, 10, 900, 900);
  assert_about(pss(&a, &x, AUDIT_EXPECTED), pss(&blank, &x, AUDIT_EXPECTED));
  assert_about(uss(&a, &x, AUDIT_EXPECTED), uss(&blank, &x, AUDIT_EXPECTED));
}

/* Errors of 3, 3 and -1: of products of two, 9 - 3 - 3 are left of 15. */
TEST(common_part_is_that_of_products_of_two) {
  static const struct {
    double off[3], common;
  } rows[] = {{{3, 3, -1}, 0.2}, {{3, 3, 3}, 1},    {{-3, -1, 0}, 1},
              {{3, -3, 1}, 0},   {{-1, 3, 3}, 0.2}, {{0, 3, 0}, 1}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct audit a = {.cycle_ns = 0};
    struct bounds x = exposed(CAUSE_FILES, 1000);
    struct audit_errors e;
    double all;

    for (unsigned cycle = 1; cycle <= 200; cycle++)
      for (int m = 0; m < 3; m++)
        audit_learn(&a, cycle * SECOND, &x,
                    &(struct audit_lesson){.pss_off = 100 * rows[i].off[m]});
    x.bytes[CAUSE_KSM] = 50;
    audit_errors(&a, &x, AUDIT_PUBLISHED, &e);
    all = 6.5 * 100 *
          sqrt((pow(rows[i].off[0], 2) + pow(rows[i].off[1], 2) +
                pow(rows[i].off[2], 2)) /
               3);
    assert_about(e.pss.common, 50 + all * sqrt(rows[i].common));
    assert_about(e.pss.independent, all * sqrt(1 - rows[i].common));
  }
}

/* Before two were read in a cycle, errors are taken for common; and one cycle
 * counts as one lesson, however many single errors came before. */
TEST(single_errors_do_not_show_what_is_common) {
  struct audit a = {.cycle_ns = 0};
  struct bounds x = exposed(CAUSE_FILES, 1000);
  struct audit_errors e;

  learn(&a, &x, 200, 300, 0);
  audit_errors(&a, &x, AUDIT_EXPECTED, &e);
  assert_about(e.pss.common, 300);
  assert_about(e.pss.independent, 0);
  for (int sign = -1; sign <= 1; sign += 2)
    audit_learn(&a, 1000 * SECOND, &x,
                &(struct audit_lesson){.pss_off = sign * 300});
  audit_errors(&a, &x, AUDIT_EXPECTED, &e);
  assert_about(e.pss.common, 300 * sqrt(1 - weight_of_lesson()));
  assert_about(e.pss.independent, 300 * sqrt(weight_of_lesson()));
}
