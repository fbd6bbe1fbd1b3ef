#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/experience.h>

static void expect(double got, double wanted) {
  if (got < wanted - 0.001 || got > wanted + 0.001)
    fail_msg("%f, not %f", got, wanted);
}

static double error_of(struct experience *x, uint64_t cycle_ns) {
  experience_conclude(x, cycle_ns);
  return x->error;
}

static void without_any_the_worst_is_to_be_expected(void **state) {
  struct experience x = EXPERIENCE_NONE;

  (void)state;
  expect(error_of(&x, 1), 1);
}

static void readings_count_from_the_next_cycle_on(void **state) {
  struct experience x = EXPERIENCE_NONE;

  (void)state;
  experience_add(&x, 1, 0, 100);
  expect(error_of(&x, 1), 1);
  assert_true(error_of(&x, 2) < 0.95);
}

/* 10 of 100 and 30 of 100, in whatever direction. */
static void readings_of_a_cycle_count_as_one(void **state) {
  struct experience x = {.error = 0.2};

  (void)state;
  experience_add(&x, 1, 10, 100);
  experience_add(&x, 1, -30, 100);
  expect(error_of(&x, 2), 0.2);
}

static void good_ones_are_believed_little_by_little(void **state) {
  struct experience x = EXPERIENCE_NONE;

  (void)state;
  experience_add(&x, 1, 0, 100);
  expect(error_of(&x, 2), 1 - 0.1 * 0.98);
  for (uint64_t cycle = 2; cycle < 200; cycle++)
    experience_add(&x, cycle, 0, 100);
  expect(error_of(&x, 200), 0.02);
}

static void bad_ones_at_once(void **state) {
  struct experience x = {.error = 0.02};

  (void)state;
  experience_add(&x, 1, 60, 100);
  expect(error_of(&x, 2), 0.6);
  experience_add(&x, 2, 500, 100);
  expect(error_of(&x, 3), 1);
}

static void cycles_without_a_reading_change_nothing(void **state) {
  struct experience x = {.error = 0.3};

  (void)state;
  experience_add(&x, 1, 10, 0);
  for (uint64_t cycle = 1; cycle < 10; cycle++)
    expect(error_of(&x, cycle), 0.3);
}

/* One of many that is far off makes no difference to what is usual. */
static void the_worst_reading_is_remembered(void **state) {
  struct experience x = EXPERIENCE_NONE;

  (void)state;
  for (uint64_t cycle = 1; cycle <= 1000; cycle++)
    experience_add(&x, cycle, 0, 1000);
  experience_conclude(&x, 1001);
  expect(x.worst, 0);
  experience_add(&x, 1001, 80, 100);
  for (int i = 0; i < 99; i++)
    experience_add(&x, 1001, 0, 100);
  experience_conclude(&x, 1002);
  assert_true(x.error < 0.05);
  expect(x.worst, 0.8);
  for (uint64_t cycle = 1002; cycle <= 1012; cycle++)
    experience_add(&x, cycle, 0, 1000);
  assert_true(x.worst > 0.6 && x.worst < 0.8);
  for (uint64_t cycle = 1013; cycle <= 2000; cycle++)
    experience_add(&x, cycle, 0, 1000);
  expect(x.worst, 0);
  experience_add(&x, 2001, 1e9, 1);
  experience_add(&x, 2001, 1e9, 0);
  experience_conclude(&x, 2002);
  expect(x.worst, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_any_the_worst_is_to_be_expected),
      cmocka_unit_test(readings_count_from_the_next_cycle_on),
      cmocka_unit_test(readings_of_a_cycle_count_as_one),
      cmocka_unit_test(good_ones_are_believed_little_by_little),
      cmocka_unit_test(bad_ones_at_once),
      cmocka_unit_test(cycles_without_a_reading_change_nothing),
      cmocka_unit_test(the_worst_reading_is_remembered),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
