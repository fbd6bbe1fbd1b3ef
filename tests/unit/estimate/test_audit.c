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

/* Readings that were right may have been so by chance. */
TEST(no_error_is_ever_ruled_out) {
  for (int k = 0; k < CAUSES; k++) {
    struct audit a = {.cycle_ns = 0};
    struct bounds x = exposed((enum cause)k, 1e6);

    learn(&a, &x, 5000, 0, 0);
    if (!(pss(&a, &x, AUDIT_PUBLISHED) > 0))
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
  assert_true(pss(&a, &x, AUDIT_PUBLISHED) >= 1414);
  assert_true(uss(&a, &x, AUDIT_PUBLISHED) >= 2828);
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
