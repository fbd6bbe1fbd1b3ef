#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/cost.h>

#define MS UINT64_C(1000000)
#define GIB_PAGES (UINT64_C(1) << 18)

static const struct policy policy = {.max_age_ns = 60 * NS_PER_S,
                                     .max_stall_ns = 100 * MS};

static void learn(struct cost *c, uint64_t took_ns, uint64_t pages) {
  cost_learn(c, took_ns, pages, &policy, NS_PER_S);
}

static void all_that_is_walked_makes_the_first_guess_dearer(void **state) {
  struct cost_basis basis = {.resident = 1000, .swapped = 1000, .tables = 10};
  uint64_t guess = cost_guess(&basis).ns;
  struct cost_basis more[] = {basis, basis, basis};

  (void)state;
  more[0].resident *= 2;
  more[1].swapped *= 2;
  more[2].tables *= 2;
  for (int i = 0; i < 3; i++)
    assert_true(cost_guess(&more[i]).ns > guess);
}

/* As measured on Linux 6.18: each within a factor of three. */
static void the_first_guess_is_of_the_right_size(void **state) {
  static const struct {
    struct cost_basis basis;
    uint64_t measured_ns;
  } cases[] = {
      {{.resident = 400, .tables = 12}, 15000},
      {{.resident = GIB_PAGES, .tables = 520}, 2900000},
      {{.resident = 4 * GIB_PAGES, .tables = 2060}, 12300000},
      {{.resident = 2480, .tables = 2480}, 1200000}, /* scattered */
  };

  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    uint64_t guess = cost_guess(&cases[i].basis).ns;

    assert_in_range(guess, cases[i].measured_ns / 3, cases[i].measured_ns * 3);
  }
}

static void what_was_never_guessed_costs_something(void **state) {
  struct cost c = {0};

  (void)state;
  assert_true(cost_predict(&c, 1000) > 0);
}

static void the_last_walk_counts_whatever_was_guessed(void **state) {
  struct cost c = cost_guess(&(struct cost_basis){.resident = 4 * GIB_PAGES});

  (void)state;
  learn(&c, MS / 10, 4 * GIB_PAGES); /* huge pages */
  assert_int_equal(cost_predict(&c, 4 * GIB_PAGES), MS / 10);
}

static void the_price_goes_up_and_down_with_what_is_resident(void **state) {
  struct cost c = {.ns = 2 * MS, .pages = 1000};

  (void)state;
  assert_int_equal(cost_predict(&c, 3000), 6 * MS);
  assert_int_equal(cost_predict(&c, 500), MS);
}

static void page_tables_that_are_left_empty_cost_something(void **state) {
  struct cost c = {.ns = 400 * MS, .pages = 40000};

  (void)state;
  assert_in_range(cost_predict(&c, 10), 10 * MS, 100 * MS);
  c.ns = 6000;
  assert_int_equal(cost_predict(&c, 10), 5000);
}

/* What was shrunk may have gone to swap, which is walked as well. */
static void one_walk_undoes_a_price_that_fell_too_far(void **state) {
  struct cost c = {.ns = 150 * MS, .pages = 1000};

  (void)state;
  assert_true(cost_predict(&c, 10) < 100 * MS);
  learn(&c, 160 * MS, 10);
  assert_int_equal(cost_predict(&c, 10), 160 * MS);
}

static void a_single_slow_walk_no_more_than_doubles_it(void **state) {
  struct cost c = {.ns = 2 * MS, .pages = 1000};

  (void)state;
  learn(&c, 900 * MS, 1000);
  assert_int_equal(cost_predict(&c, 1000), 4 * MS);
  learn(&c, 900 * MS, 1000);
  assert_int_equal(cost_predict(&c, 1000), 8 * MS);
  learn(&c, 2 * MS, 1000);
  assert_int_equal(cost_predict(&c, 1000), 2 * MS);
}

static void no_number_is_too_large(void **state) {
  struct cost c = cost_guess(&(struct cost_basis){
      .resident = UINT64_MAX, .swapped = UINT64_MAX, .tables = UINT64_MAX});

  (void)state;
  assert_int_equal(c.ns, UINT32_MAX);
  assert_int_equal(c.pages, UINT32_MAX);
  assert_true(cost_predict(&c, UINT64_MAX) >= c.ns);
  learn(&c, UINT64_MAX, UINT64_MAX);
  assert_int_equal(c.ns, UINT32_MAX);
}

/* A walk that found nothing is no measure of what a page costs. */
static void what_had_no_page_costs_what_it_did_whatever_comes(void **state) {
  struct cost c = {.ns = 2 * MS};

  (void)state;
  assert_int_equal(cost_predict(&c, 0), 2 * MS);
  assert_int_equal(cost_predict(&c, 1000), 2 * MS);
}

/* By a clock that is coarse. */
static void a_walk_that_took_no_time_is_one(void **state) {
  struct cost c = {0};

  (void)state;
  learn(&c, 0, 1000);
  assert_true(c.ns > 0);
  assert_in_range(cost_predict(&c, 1000), 1, 10000);
}

/* --- prices above MaxStall --- */

/* A day of intervals of 10 s. Each walk takes so long; guessed is what a look
 * at it says. Returns how often it was walked. */
static unsigned run_day(struct cost *c, uint64_t walk_ns, uint32_t guess_ns,
                        uint64_t *now_ns) {
  const struct cost guess = {.ns = guess_ns, .pages = 1000};
  unsigned walks = 0;

  for (unsigned i = 0; i < 8640; i++) {
    *now_ns += 10 * NS_PER_S;
    if ((c->ns == 0 || cost_predict(c, 1000) > policy.max_stall_ns) &&
        (!cost_may_try(c, *now_ns) ||
         !cost_take_guess(c, &guess, &policy, *now_ns)))
      continue;
    cost_learn(c, walk_ns, 1000, &policy, *now_ns);
    walks++;
  }
  return walks;
}

/* Walked until that is known, then after 1, 2, 4 … minutes, then each hour. */
static void what_is_slow_is_tried_once_an_hour_in_the_long_run(void **state) {
  struct cost c = {0};
  uint64_t now_ns = NS_PER_S;

  (void)state;
  assert_in_range(run_day(&c, 150 * MS, 50 * MS, &now_ns), 24, 32);
  for (int day = 0; day < 400; day++)
    assert_in_range(run_day(&c, 150 * MS, 50 * MS, &now_ns), 23, 24);
}

static void what_must_be_slow_by_its_size_is_not_tried(void **state) {
  struct cost c = {0};
  struct cost learnt = {.ns = 150 * MS, .pages = 1000, .is_learnt = true};
  uint64_t now_ns = NS_PER_S;

  (void)state;
  assert_int_equal(run_day(&c, 150 * MS, 120 * MS, &now_ns), 0);

  assert_int_equal(run_day(&learnt, 150 * MS, 120 * MS, &now_ns), 0);
}

static void what_is_fast_again_is_walked_as_ever(void **state) {
  struct cost c = {0};
  uint64_t now_ns = NS_PER_S;

  (void)state;
  run_day(&c, 150 * MS, 50 * MS, &now_ns);
  assert_in_range(run_day(&c, MS, 50 * MS, &now_ns), 8640 - 361, 8640);
  assert_int_equal(run_day(&c, MS, 50 * MS, &now_ns), 8640);
  /* And it is forgotten that it was slow for long. */
  for (int i = 0; i < 10; i++)
    learn(&c, 150 * MS, 1000);
  assert_false(cost_may_try(&c, NS_PER_S + 59 * NS_PER_S));
}

static void a_max_age_beyond_an_hour_is_waited_for(void **state) {
  const struct policy rare = {.max_age_ns = 24 * 3600 * NS_PER_S,
                              .max_stall_ns = 100 * MS};
  struct cost c = {0};

  (void)state;
  for (int i = 0; i < 300; i++) {
    cost_learn(&c, 150 * MS, 1000, &rare, 0);
    assert_false(cost_may_try(&c, rare.max_age_ns - 1));
    assert_true(cost_may_try(&c, rare.max_age_ns));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_that_is_walked_makes_the_first_guess_dearer),
      cmocka_unit_test(the_first_guess_is_of_the_right_size),
      cmocka_unit_test(what_was_never_guessed_costs_something),
      cmocka_unit_test(the_last_walk_counts_whatever_was_guessed),
      cmocka_unit_test(the_price_goes_up_and_down_with_what_is_resident),
      cmocka_unit_test(page_tables_that_are_left_empty_cost_something),
      cmocka_unit_test(one_walk_undoes_a_price_that_fell_too_far),
      cmocka_unit_test(a_single_slow_walk_no_more_than_doubles_it),
      cmocka_unit_test(no_number_is_too_large),
      cmocka_unit_test(what_had_no_page_costs_what_it_did_whatever_comes),
      cmocka_unit_test(a_walk_that_took_no_time_is_one),
      cmocka_unit_test(what_is_slow_is_tried_once_an_hour_in_the_long_run),
      cmocka_unit_test(what_must_be_slow_by_its_size_is_not_tried),
      cmocka_unit_test(what_is_fast_again_is_walked_as_ever),
      cmocka_unit_test(a_max_age_beyond_an_hour_is_waited_for),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
