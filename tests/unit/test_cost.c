#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/cost.h>

#define MS UINT64_C(1000000)
#define GIB_PAGES (UINT64_C(1) << 18)

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
  cost_learn(&c, MS / 10, 4 * GIB_PAGES); /* huge pages */
  assert_int_equal(cost_predict(&c, 4 * GIB_PAGES), MS / 10);
}

static void what_grows_costs_more_and_what_shrinks_the_same(void **state) {
  struct cost c = {.ns = 2 * MS, .pages = 1000};

  (void)state;
  assert_int_equal(cost_predict(&c, 3000), 6 * MS);
  assert_int_equal(cost_predict(&c, 500), 2 * MS);
}

static void a_single_slow_walk_no_more_than_doubles_it(void **state) {
  struct cost c = {.ns = 2 * MS, .pages = 1000};

  (void)state;
  cost_learn(&c, 900 * MS, 1000);
  assert_int_equal(cost_predict(&c, 1000), 4 * MS);
  cost_learn(&c, 900 * MS, 1000);
  assert_int_equal(cost_predict(&c, 1000), 8 * MS);
  cost_learn(&c, 2 * MS, 1000);
  assert_int_equal(cost_predict(&c, 1000), 2 * MS);
}

static void no_number_is_too_large(void **state) {
  struct cost c = cost_guess(&(struct cost_basis){
      .resident = UINT64_MAX, .swapped = UINT64_MAX, .tables = UINT64_MAX});

  (void)state;
  assert_int_equal(c.ns, UINT32_MAX);
  assert_int_equal(c.pages, UINT32_MAX);
  assert_true(cost_predict(&c, UINT64_MAX) >= c.ns);
  cost_learn(&c, UINT64_MAX, UINT64_MAX);
  assert_int_equal(c.ns, UINT32_MAX);
}

/* A walk that found nothing is no measure of what a page costs. */
static void what_had_no_page_costs_what_it_did_whatever_comes(void **state) {
  struct cost c = {.ns = 2 * MS};

  (void)state;
  assert_int_equal(cost_predict(&c, 0), 2 * MS);
  assert_int_equal(cost_predict(&c, 1000), 2 * MS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_that_is_walked_makes_the_first_guess_dearer),
      cmocka_unit_test(the_first_guess_is_of_the_right_size),
      cmocka_unit_test(what_was_never_guessed_costs_something),
      cmocka_unit_test(the_last_walk_counts_whatever_was_guessed),
      cmocka_unit_test(what_grows_costs_more_and_what_shrinks_the_same),
      cmocka_unit_test(a_single_slow_walk_no_more_than_doubles_it),
      cmocka_unit_test(no_number_is_too_large),
      cmocka_unit_test(what_had_no_page_costs_what_it_did_whatever_comes),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
