/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdint.h>

#include "base/duration.h"
#include "schedule/schedule.h"

#define SPAN_NS (60 * NS_PER_S)
#define START_NS (1000 * NS_PER_S)

/* Spends in each of n cycles what it may, and returns it. */
static uint64_t spend(struct read_budget *b, uint64_t *now_ns,
                      uint64_t interval_ns, unsigned n) {
  uint64_t spent_ns = 0;

  for (unsigned i = 0; i < n; i++) {
    *now_ns += interval_ns;
    read_budget_begin(b, *now_ns, interval_ns, 0);
    assert_true(b->spend_ns <= b->earned_ns &&
                (b->spend_ns == 0 || (int64_t)b->spend_ns <= b->saved_ns));
    read_budget_charge(b, b->spend_ns);
    spent_ns += b->spend_ns;
  }
  return spent_ns;
}

static struct read_budget make(double percent) {
  struct read_budget b;

  read_budget_init(&b, percent, SPAN_NS);
  return b;
}

/* It is full: 600 ms, of which a cycle of a second may have a twentieth. */
TEST(start_is_spread_over_the_first_minute) {
  struct read_budget b = make(1);
  uint64_t now_ns = START_NS, first_ns = spend(&b, &now_ns, NS_PER_S, 1),
           minute_ns = first_ns + spend(&b, &now_ns, NS_PER_S, 59);

  assert_int_equal(first_ns, 40 * NS_PER_MS);
  assert_in_range(minute_ns, 1130 * NS_PER_MS, 1200 * NS_PER_MS);
  /* And then it is the share of each interval, and a rest. */
  assert_in_range(spend(&b, &now_ns, NS_PER_S, 1), 10 * NS_PER_MS,
                  13 * NS_PER_MS);
}

/* Half of the savings above the income of an interval is kept. */
TEST(a_part_of_the_savings_is_kept) {
  struct read_budget b = make(1), slow = make(1);

  read_budget_begin(&b, START_NS, 10 * NS_PER_S, 0);
  read_budget_begin(&slow, START_NS, 90 * NS_PER_S, 0);
  assert_int_equal(b.kept_ns, 250 * NS_PER_MS);
  assert_int_equal(slow.kept_ns, 0);
}

TEST(share_is_the_same_at_any_interval) {
  static const unsigned intervals_s[] = {1, 10, 60, 7, 300};

  for (size_t i = 0; i < LENGTH(intervals_s); i++) {
    unsigned s = intervals_s[i], n = 42000 / s;
    struct read_budget b = make(0.5);
    uint64_t now_ns = START_NS, spent_ns = spend(&b, &now_ns, s * NS_PER_S, n),
             seconds = s * n;

    assert_in_range(spent_ns, seconds * 5 * NS_PER_MS,
                    (seconds + (s > 60 ? s : 60)) * 5 * NS_PER_MS);
  }
}

/* Time that was not spent for a minute is there afterwards, and no more. */
TEST(nothing_is_lost_in_a_quiet_minute) {
  static const unsigned quiet_s[] = {10, 60, 6000};

  for (size_t i = 0; i < LENGTH(quiet_s); i++) {
    struct read_budget b = make(1);
    uint64_t now_ns = START_NS, saved_ns, spent_ns;

    spend(&b, &now_ns, NS_PER_S, 1000);
    for (unsigned s = 0; s < quiet_s[i]; s++) {
      now_ns += NS_PER_S;
      read_budget_begin(&b, now_ns, NS_PER_S, 0);
    }
    saved_ns = (quiet_s[i] < 60 ? quiet_s[i] : 60) * 10 * NS_PER_MS;
    spent_ns = spend(&b, &now_ns, NS_PER_S, 120);
    assert_in_range(spent_ns, saved_ns + 118 * 10 * NS_PER_MS,
                    saved_ns + 122 * 10 * NS_PER_MS);
  }
}

TEST(debt_is_paid_before_anything_is_spent) {
  struct read_budget b = make(1);
  uint64_t now_ns = START_NS;

  spend(&b, &now_ns, SPAN_NS, 1);
  read_budget_charge(&b, 45 * NS_PER_MS);
  for (unsigned s = 0; s < 4; s++) {
    read_budget_begin(&b, now_ns += NS_PER_S, NS_PER_S, 0);
    assert_int_equal(b.spend_ns, 0);
    assert_true(b.saved_ns <= 0);
    assert_int_equal(b.earned_ns, 10 * NS_PER_MS);
  }
  read_budget_begin(&b, now_ns += NS_PER_S, NS_PER_S, 0);
  assert_int_equal(b.spend_ns, 5 * NS_PER_MS);
}

TEST(due_readings_get_half_of_the_budget_or_more_but_never_all) {
  static const double needed[] = {0, 0.002, 0.007, 0.05},
                      parts[] = {0.5, 0.5, 0.7, 0.75};
  struct read_budget b = make(1);

  for (size_t i = 0; i < LENGTH(needed); i++) {
    read_budget_begin(&b, START_NS, 1, needed[i]);
    assert_true(fabs(b.due_part - parts[i]) < 1e-9);
  }
}

/* Not at once, and no longer than it lasts. */
TEST(budget_that_is_too_small_for_a_minute_is_reported) {
  struct read_budget b = make(1);
  uint64_t now_ns = START_NS;

  for (unsigned s = 0; s < 60; s++) {
    read_budget_begin(&b, now_ns += NS_PER_S, NS_PER_S, 0.0125);
    assert_true(read_budget_wanted_percent(&b) == 0);
  }
  read_budget_begin(&b, now_ns += NS_PER_S, NS_PER_S, 0.0125);
  assert_true(fabs(read_budget_wanted_percent(&b) - 1.6) < 1e-9);
  read_budget_begin(&b, now_ns += NS_PER_S, NS_PER_S, 0.01);
  assert_true(read_budget_wanted_percent(&b) == 0);
  for (unsigned s = 0; s <= 60; s++)
    read_budget_begin(&b, now_ns += NS_PER_S, NS_PER_S, 2.3);
  assert_true(fabs(read_budget_wanted_percent(&b) - 290) < 1e-9);
}

/* 5 % of what comes in; below 10 s for readings that are a minute old. None
 * where due readings need three quarters: these are the oldest. */
TEST(a_twentieth_is_spent_on_old_readings) {
  struct read_budget b = make(1);

  read_budget_begin(&b, START_NS, 10 * NS_PER_S, 0);
  assert_int_equal(b.cheap_ns, 5000000);
  assert_true(b.cheap_intervals == 0);
  b = make(1);
  read_budget_begin(&b, START_NS, 5 * NS_PER_S, 0);
  assert_int_equal(b.cheap_ns, 2500000);
  assert_true(b.cheap_intervals == 12);
  b = make(1);
  read_budget_begin(&b, START_NS, 10 * NS_PER_S, 0.0074);
  assert_int_equal(b.cheap_ns, 5000000);
  b = make(1);
  read_budget_begin(&b, START_NS, 10 * NS_PER_S, 0.0076);
  assert_int_equal(b.cheap_ns, 0);
}

/* Half of what can be saved beyond an interval is for the others. */
TEST(readings_of_other_leave_the_savings) {
  struct read_budget b = make(1);

  read_budget_begin(&b, START_NS, 10 * NS_PER_S, 0);
  read_budget_charge(&b, 350000000);
  assert_false(read_budget_is_spent(&b, true));
  read_budget_charge(&b, 1);
  assert_true(read_budget_is_spent(&b, true));
  assert_false(read_budget_is_spent(&b, false));
}
