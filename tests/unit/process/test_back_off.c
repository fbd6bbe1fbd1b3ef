/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "process/back_off.h"

#define NOW_NS (1000 * NS_PER_S)

static uint64_t length_of(const struct back_off *b) {
  return b->until_ns - NOW_NS;
}

static void hang(struct back_off *b, unsigned times, bool has_waited) {
  for (unsigned i = 0; i < times; i++)
    back_off_hang(b, has_waited, NS_PER_S, NOW_NS);
}

/* ReadTimeout is a second. */
TEST(hangs_double_the_time_up_to_an_hour) {
  static const struct {
    unsigned waited, lasting; /* hangs; the lasting ones follow */
    uint64_t seconds;
  } cases[] = {
      {1, 0, 2},     {2, 0, 4},     {3, 0, 8},       {11, 0, 2048},
      {12, 0, 3600}, {1, 9, 2},     {3, 9, 8},       {0, 1, 2},
      {0, 9, 2},     {99, 9, 3600}, {1000, 0, 3600},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct back_off b = {.failures = 0};

    hang(&b, cases[i].waited, true);
    hang(&b, cases[i].lasting, false);
    if (length_of(&b) != cases[i].seconds * NS_PER_S)
      fail_msg("%u and %u hangs: %g s", cases[i].waited, cases[i].lasting,
               (double)length_of(&b) / 1e9);
  }
}

TEST(forgiven_hang_counts_as_the_first_again) {
  struct back_off b = {.failures = 0};

  hang(&b, 5, true);
  back_off_forgive(&b);
  hang(&b, 1, true);
  assert_int_equal(length_of(&b), 2 * NS_PER_S);
}

TEST(refusal_lasts_for_an_hour) {
  struct back_off b = {.failures = 0};

  assert_false(back_off_is_on(&b, NOW_NS));
  back_off_refuse(&b, NOW_NS);
  back_off_refuse(&b, NOW_NS); /* it does not double */
  assert_int_equal(b.failures, 1);
  assert_true(back_off_is_on(&b, NOW_NS + 3600 * NS_PER_S - 1));
  assert_false(back_off_is_on(&b, NOW_NS + 3600 * NS_PER_S));
}

/* Twice the least ReadTimeout gets to an hour, and no length wraps around. */
TEST(length_never_exceeds_the_most) {
  for (unsigned doublings = 0; doublings < 300; doublings++)
    assert_in_range(back_off_length(NS_PER_S / 5, BACK_OFF_MAX_NS, doublings),
                    NS_PER_S / 5, BACK_OFF_MAX_NS);
  assert_int_equal(back_off_length(NS_PER_S / 5, BACK_OFF_MAX_NS, 15),
                   BACK_OFF_MAX_NS);
}
