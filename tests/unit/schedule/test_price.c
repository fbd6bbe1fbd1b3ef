#include "test.h"

#include "schedule/price.h"

/* The memory that is walked, in pages. */
struct basis {
  uint64_t resident, swapped, tables;
};

static struct read_cost guess_of(const struct basis *b) {
  return read_cost_guess(b->resident, b->swapped, b->tables);
}

#define GIB_PAGES (UINT64_C(1) << 18)

static const struct policy policy = {.max_age_ns = 60 * NS_PER_S,
                                     .max_lock_hold_ns = 100 * MS};

static void learn(struct read_cost *c, uint64_t took_ns, uint64_t pages) {
  read_cost_learn(c, took_ns, pages, 0, &policy, NS_PER_S);
}

/* As measured on Linux 6.18: each within a factor of three. */
TEST(the_first_guess_is_of_the_right_size) {
  static const struct {
    struct basis basis;
    uint64_t measured_ns;
  } cases[] = {
      {{.resident = 400, .tables = 12}, 15000},
      {{.resident = GIB_PAGES, .tables = 520}, 2900000},
      {{.resident = 4 * GIB_PAGES, .tables = 2060}, 12300000},
      {{.resident = 2480, .tables = 2480}, 1200000}, /* scattered */
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    uint64_t guess = guess_of(&cases[i].basis).ns;

    assert_in_range(guess, cases[i].measured_ns / 3, cases[i].measured_ns * 3);
  }
}

TEST(page_tables_that_are_left_empty_cost_something) {
  struct read_cost c = {.ns = 400 * MS, .pages = 40000};

  assert_in_range(read_cost_predict(&c, 10), 10 * MS, 100 * MS);
  c.ns = 6000;
  assert_int_equal(read_cost_predict(&c, 10), 5000);
}

TEST(the_price_stays_where_memory_goes_to_swap_and_comes_back) {
  struct read_cost c = {.ns = 3 * MS, .pages = 1000};

  read_cost_learn(&c, 3 * MS, 10, 990, &policy, NS_PER_S);
  assert_int_equal(c.swapped, 990);
  assert_int_equal(read_cost_predict(&c, 1000), 3 * MS);
}

/* A sample shows none of the pages in swap, and a walk meets them. */
TEST(a_sample_leaves_pages_in_swap_their_price) {
  struct basis basis = {.resident = 100000, .swapped = 900000};
  struct read_cost c = guess_of(&basis);

  read_cost_refine(&c, MS, 100000, 900000);
  assert_in_range(read_cost_predict(&c, 1000000), 10 * MS, 30 * MS);
  read_cost_refine(&c, MS, 100000, 0);
  assert_int_equal(read_cost_predict(&c, 100000), MS);
  read_cost_refine(&c, UINT64_MAX - 1, UINT64_MAX, 1);
  assert_int_equal(c.ns, UINT32_MAX);
}

TEST(a_single_slow_walk_no_more_than_doubles_it) {
  struct read_cost c = {.ns = 2 * MS, .pages = 1000};

  learn(&c, 900 * MS, 1000);
  assert_int_equal(read_cost_predict(&c, 1000), 4 * MS);
  learn(&c, 900 * MS, 1000);
  assert_int_equal(read_cost_predict(&c, 1000), 8 * MS);
  learn(&c, 2 * MS, 1000);
  assert_int_equal(read_cost_predict(&c, 1000), 2 * MS);
}

TEST(no_number_is_too_large) {
  struct read_cost c = guess_of(&(struct basis){
      .resident = UINT64_MAX, .swapped = UINT64_MAX, .tables = UINT64_MAX});

  assert_int_equal(c.ns, UINT32_MAX);
  assert_int_equal(c.pages, UINT32_MAX);
  assert_true(read_cost_predict(&c, UINT64_MAX) >= c.ns);
  learn(&c, UINT64_MAX, UINT64_MAX);
  assert_int_equal(c.ns, UINT32_MAX);
}

/* A walk that found nothing is no measure of what a page costs. */
TEST(what_had_no_page_costs_what_it_did_whatever_comes) {
  struct read_cost c = {.ns = 2 * MS};

  assert_int_equal(read_cost_predict(&c, 0), 2 * MS);
  assert_int_equal(read_cost_predict(&c, 1000), 2 * MS);
}

/* By a clock that is coarse. */
TEST(a_walk_that_took_no_time_is_one) {
  struct read_cost c = {0};

  learn(&c, 0, 1000);
  assert_true(c.ns > 0);
  assert_in_range(read_cost_predict(&c, 1000), 1, 10000);
}

/* --- prices above MaxLockHold --- */

/* A day of intervals of 10 s. Each walk takes so long; guessed is what a look
 * at it says. Returns how often it was walked. */
static unsigned run_day(struct read_cost *c, uint64_t walk_ns,
                        uint32_t guess_ns, uint64_t *now_ns) {
  const struct read_cost guess = {.ns = guess_ns, .pages = 1000};
  unsigned walks = 0;

  for (unsigned i = 0; i < 8640; i++) {
    *now_ns += 10 * NS_PER_S;
    if ((c->ns == 0 || read_cost_predict(c, 1000) > policy.max_lock_hold_ns) &&
        (*now_ns < c->next_try_s * NS_PER_S ||
         !read_cost_apply_guess(c, &guess, &policy, *now_ns)))
      continue;
    read_cost_learn(c, walk_ns, 1000, 0, &policy, *now_ns);
    walks++;
  }
  return walks;
}

/* Walked until that is known, then after 1, 2, 4 … minutes, then each hour. */
TEST(what_is_slow_is_tried_once_an_hour_in_the_long_run) {
  struct read_cost c = {0};
  uint64_t now_ns = NS_PER_S;

  assert_in_range(run_day(&c, 150 * MS, 50 * MS, &now_ns), 24, 32);
  for (int day = 0; day < 400; day++)
    assert_in_range(run_day(&c, 150 * MS, 50 * MS, &now_ns), 23, 24);
}

TEST(what_must_be_slow_by_its_size_is_not_tried) {
  struct read_cost c = {0};
  struct read_cost learnt = {.ns = 150 * MS, .pages = 1000, .is_learnt = true};
  uint64_t now_ns = NS_PER_S;

  assert_int_equal(run_day(&c, 150 * MS, 120 * MS, &now_ns), 0);

  assert_int_equal(run_day(&learnt, 150 * MS, 120 * MS, &now_ns), 0);
}

TEST(what_is_fast_again_is_walked_as_ever) {
  struct read_cost c = {0};
  uint64_t now_ns = NS_PER_S;

  run_day(&c, 150 * MS, 50 * MS, &now_ns);
  assert_in_range(run_day(&c, MS, 50 * MS, &now_ns), 8640 - 361, 8640);
  assert_int_equal(run_day(&c, MS, 50 * MS, &now_ns), 8640);
  /* And it is forgotten that it was slow for long. */
  for (int i = 0; i < 10; i++)
    learn(&c, 150 * MS, 1000);
  assert_true(c.next_try_s > 60);
}

TEST(tests_are_an_hour_apart_at_most_whatever_max_age_is) {
  const struct policy rare = {.max_age_ns = 24 * 3600 * NS_PER_S,
                              .max_lock_hold_ns = 100 * MS};
  struct read_cost c = {0};

  for (int i = 0; i < 300; i++)
    read_cost_learn(&c, 150 * MS, 1000, 0, &rare, 0);
  assert_int_equal(c.next_try_s, 3600);
}
