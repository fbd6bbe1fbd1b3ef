/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "schedule/read_time.h"

/* The memory that is walked, in pages. */
struct basis {
  uint64_t resident, swapped, tables;
};

#define GIB_PAGES (UINT64_C(1) << 18)

static const struct policy policy = {.max_age_ns = 60 * NS_PER_S,
                                     .max_lock_hold_ns = 100 * MS};

static struct walk walk(uint64_t ns, uint64_t resident, uint64_t swapped) {
  return (struct walk){.ns = ns, .resident = resident, .swapped = swapped};
}

static struct read_time guess_of(const struct basis *b) {
  struct walk guess = walk(0, b->resident, b->swapped);
  struct read_time c = {0};

  guess.tables = b->tables;
  guess.ns = read_time_guess_ns(&guess, 0);
  read_time_apply_guess(&c, &guess, &policy, NS_PER_S);
  return c;
}

static void learn(struct read_time *c, uint64_t took_ns, uint64_t pages) {
  struct walk w = walk(took_ns, pages, 0);

  read_time_learn(c, &w, &policy, NS_PER_S);
}

static void refine(struct read_time *c, uint64_t ns, uint64_t resident,
                   uint64_t swapped) {
  read_time_refine(c, walk(ns, resident, swapped), &policy, NS_PER_S);
}

static uint32_t predict(const struct read_time *c, uint64_t pages) {
  struct walk now = walk(0, pages, 0);

  return read_time_predict(c, &now);
}

static uint32_t predict_shared(const struct read_time *c, uint64_t pages) {
  struct walk now = {.resident = pages, .relatives = 2};

  return read_time_predict(c, &now);
}

/* The times were measured on Linux 6.18; each guess has to be within a factor
 * of three. */
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
  struct read_time c = {.ns = 400 * MS, .pages = 40000};

  assert_in_range(predict(&c, 10), 10 * MS, 100 * MS);
  c.ns = 6000;
  assert_int_equal(predict(&c, 10), 5000);
}

TEST(the_price_stays_where_memory_goes_to_swap_and_comes_back) {
  struct read_time c = {.ns = 3 * MS, .pages = 1000};
  struct walk w = walk(3 * MS, 10, 990);

  read_time_learn(&c, &w, &policy, NS_PER_S);
  assert_int_equal(c.swapped, 990);
  assert_int_equal(predict(&c, 1000), 3 * MS);
}

/* A sample shows no page in swap, but a walk finds these pages. */
TEST(a_sample_leaves_pages_in_swap_their_price) {
  struct basis basis = {.resident = 100000, .swapped = 900000};
  struct read_time c = guess_of(&basis);

  refine(&c, MS, 100000, 900000);
  assert_in_range(predict(&c, 1000000), 10 * MS, 30 * MS);
  refine(&c, MS, 100000, 0);
  assert_int_equal(predict(&c, 100000), MS);
  refine(&c, UINT64_MAX - 1, UINT64_MAX, 1);
  assert_int_equal(c.ns, UINT32_MAX);
}

/* The limit is 100 ms. */
TEST(walk_near_the_limit_counts_in_full_and_others_only_slowly) {
  static const struct {
    uint64_t took_ns, ns;
  } cases[] = {
      {900 * MS, 900 * MS}, {13 * MS, 13 * MS}, {12 * MS, 4 * MS}, {MS, MS}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct read_time c = {.ns = 2 * MS, .pages = 1000};

    learn(&c, cases[i].took_ns, 1000);
    assert_int_equal(predict(&c, 1000), cases[i].ns);
  }
}

TEST(guess_goes_by_the_price_of_pages_on_this_host) {
  struct walk w = walk(0, GIB_PAGES, 0);

  assert_int_equal(read_time_guess_ns(&w, 100), 5000 + GIB_PAGES * 100);
  assert_int_equal(read_time_guess_ns(&w, 1), read_time_guess_ns(&w, 0));
}

/* --- relatives --- */

/* These are 40 GB of huge pages, and as many of small ones, as measured on
 * Linux 6.18: 2.1 to 4.8 us for each of the former, once they are shared. */
TEST(pages_become_dearer_by_a_fork_and_cheap_again_after_it) {
  struct walk w = walk(1300000, 40 * GIB_PAGES, 0);
  struct read_time c = {.ns = 1300000, .pages = 40 * GIB_PAGES};

  w.huge = w.resident;
  read_time_learn(&c, &w, &policy, NS_PER_S);
  assert_in_range(predict_shared(&c, w.resident), 43 * MS, 116 * MS);
  assert_in_range(predict_shared(&c, w.resident / 2), 21 * MS, 58 * MS);
  assert_int_equal(predict(&c, w.resident), 1300000);
  w = walk(20 * MS, 4 * GIB_PAGES, 0);
  read_time_learn(&c, &w, &policy, NS_PER_S);
  assert_int_equal(predict_shared(&c, w.resident), 30 * MS);
  assert_int_equal(predict(&c, w.resident), 20 * MS);
}

TEST(price_of_a_process_with_relatives_stays_the_same) {
  struct walk w = {.ns = 50 * MS,
                   .resident = 40 * GIB_PAGES,
                   .huge = 40 * GIB_PAGES,
                   .relatives = 2};
  struct read_time c = {0};

  read_time_learn(&c, &w, &policy, NS_PER_S);
  assert_int_equal(predict_shared(&c, w.resident), 50 * MS);
  assert_int_equal(predict(&c, w.resident), 50 * MS);
}

/* Their mappings cost as much as before. */
TEST(small_processes_do_not_become_dearer_by_a_fork) {
  struct read_time c = {.ns = 30000, .pages = 4000};

  assert_int_equal(predict_shared(&c, 4000), 30000);
}

TEST(no_price_is_too_large_for_relatives) {
  struct walk w = walk(UINT64_MAX, UINT64_MAX, UINT64_MAX);
  struct read_time c = {0};

  w.huge = UINT64_MAX;
  read_time_learn(&c, &w, &policy, NS_PER_S);
  assert_int_equal(predict_shared(&c, UINT64_MAX), UINT32_MAX);
}

TEST(no_number_is_too_large) {
  struct read_time c = guess_of(&(struct basis){
      .resident = UINT64_MAX, .swapped = UINT64_MAX, .tables = UINT64_MAX});

  assert_int_equal(c.ns, UINT32_MAX);
  assert_int_equal(c.pages, UINT32_MAX);
  assert_true(predict(&c, UINT64_MAX) >= c.ns);
  learn(&c, UINT64_MAX, UINT64_MAX);
  assert_int_equal(c.ns, UINT32_MAX);
}

/* A walk that found nothing does not show what a page costs. */
TEST(price_without_pages_stays_the_same) {
  struct read_time c = {.ns = 2 * MS};

  assert_int_equal(predict(&c, 0), 2 * MS);
  assert_int_equal(predict(&c, 1000), 2 * MS);
}

/* By a clock that is coarse. */
TEST(a_walk_that_took_no_time_has_a_price) {
  struct read_time c = {0};

  learn(&c, 0, 1000);
  assert_true(c.ns > 0);
  assert_in_range(predict(&c, 1000), 1, 10000);
}

/* --- prices above MaxLockHold --- */

static void learn_at(struct read_time *c, uint64_t walk_ns, uint64_t now_ns) {
  struct walk w = walk(walk_ns, 1000, 0);

  read_time_learn(c, &w, &policy, now_ns);
}

/* Runs a day of intervals of 10 s, without samples. Each walk takes so long;
 * guessed is what a look at it says. Returns how often it was walked. */
static unsigned run_day(struct read_time *c, uint64_t walk_ns,
                        uint32_t guess_ns, uint64_t *now_ns) {
  const struct walk guess = walk(guess_ns, 1000, 0);
  unsigned walks = 0;

  for (unsigned i = 0; i < 8640; i++) {
    *now_ns += 10 * NS_PER_S;
    if ((c->ns == 0 || predict(c, 1000) > policy.max_lock_hold_ns) &&
        (*now_ns < c->next_try_s * NS_PER_S ||
         !read_time_apply_guess(c, &guess, &policy, *now_ns)))
      continue;
    learn_at(c, walk_ns, *now_ns);
    walks++;
  }
  return walks;
}

/* The process is walked at once, then after 2, 4 … minutes, then each hour. */
TEST(slow_process_is_tried_once_an_hour_in_the_long_run) {
  struct read_time c = {0};
  uint64_t now_ns = NS_PER_S;

  assert_in_range(run_day(&c, 150 * MS, 50 * MS, &now_ns), 24, 32);
  for (int day = 0; day < 400; day++)
    assert_in_range(run_day(&c, 150 * MS, 50 * MS, &now_ns), 23, 24);
}

TEST(process_that_is_slow_by_its_size_is_not_tried) {
  struct read_time c = {0};
  struct read_time learnt = {.ns = 150 * MS, .pages = 1000, .is_learnt = true};
  uint64_t now_ns = NS_PER_S;

  assert_int_equal(run_day(&c, 150 * MS, 120 * MS, &now_ns), 0);

  assert_int_equal(run_day(&learnt, 150 * MS, 120 * MS, &now_ns), 0);
}

TEST(process_that_is_fast_again_is_walked_as_before) {
  struct read_time c = {0};
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
  struct walk w = walk(150 * MS, 1000, 0);
  struct read_time c = {0};

  for (int i = 0; i < 300; i++)
    read_time_learn(&c, &w, &rare, 0);
  assert_int_equal(c.next_try_s, 3600);
}

/* A walk of the same pages takes a quarter more now and then. */
TEST(price_near_the_limit_does_not_fit) {
  const struct policy p = {.max_lock_hold_ns = 5 * MS};

  assert_true(walk_time_fits(0, &p));
  assert_true(walk_time_fits(4 * MS, &p));
  assert_false(walk_time_fits(4 * MS + 1000, &p));
  assert_false(walk_time_fits(5 * MS, &p));
}

/* --- what samples show --- */

TEST(a_sample_shows_that_a_walk_is_cheap_again_with_a_margin) {
  static const struct {
    unsigned too_long;
    uint64_t probe_ns;
    bool is_cheap;
  } cases[] = {
      {1, 53 * MS, true},  {1, 54 * MS, false}, {2, 39 * MS, true},
      {2, 41 * MS, false}, {50, MS, true},      {50, 10 * MS, false},
      {0, 79 * MS, true},  {0, 81 * MS, false},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct read_time c = {.ns = 150 * MS, .pages = 1000, .is_learnt = true};

    c.too_long = (uint8_t)cases[i].too_long;
    refine(&c, cases[i].probe_ns, 1000, 0);
    assert_int_equal(predict(&c, 1000) <= 100 * MS, cases[i].is_cheap);
    if (!cases[i].is_cheap)
      assert_int_equal(c.ns, 150 * MS);
  }
}

/* It is the mappings that make it dear, whatever pages cost. */
TEST(sample_does_not_show_the_price_of_mappings) {
  struct read_time c = {.ns = MS, .pages = 1000};

  read_time_refuse(&c, &policy, NS_PER_S);
  refine(&c, MS, 1000, 0);
  assert_true(predict(&c, 1000) > 100 * MS);
}
