#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/plan.h>

#include <string.h>

#define MS UINT64_C(1000000)
#define MIB (UINT64_C(1) << 20)
#define MANY 64

/* Candidates are named by a letter, so that an order is a string. */
static const char names[] = "abcdefghijklmnop";

static const void *name(char letter) { return &names[letter - 'a']; }

static struct candidate make(char letter, struct plan_group *group,
                             uint64_t doubt_mib, uint64_t cost_ms) {
  group->doubt_bytes += doubt_mib * MIB;
  return (struct candidate){.process = (void *)(uintptr_t)name(letter),
                            .group = group,
                            .doubt_bytes = doubt_mib * MIB,
                            .cost_ns = (uint32_t)(cost_ms * MS)};
}

static char letter_of(const struct candidate *c) {
  return *(const char *)c->process;
}

static void check(struct candidate *c, size_t n, uint64_t budget_ms,
                  const char *chosen, const char *deferred) {
  struct plan plan = plan_choose(c, n, budget_ms * MS);
  char got[sizeof(names)] = {0};

  assert_in_range(plan.chosen + plan.deferred, 0, n);
  for (size_t i = 0; i < plan.chosen; i++)
    got[i] = letter_of(&c[i]);
  assert_string_equal(got, chosen);
  assert_int_equal(plan.deferred, strlen(deferred));
  for (size_t i = 0; i < plan.deferred; i++)
    assert_non_null(strchr(deferred, letter_of(&c[plan.chosen + i])));
  /* None is lost by the moving. */
  for (size_t l = 0; l < n; l++) {
    size_t times = 0;

    for (size_t i = 0; i < n; i++)
      times += letter_of(&c[i]) == names[l];
    assert_int_equal(times, 1);
  }
}

static void no_candidates_are_no_plan(void **state) {
  (void)state;
  check(NULL, 0, 50, "", "");
}

static void most_doubt_for_the_time_comes_first(void **state) {
  struct plan_group g = {0};
  struct candidate c[] = {
      make('a', &g, 10, 5), /* 2 MiB a millisecond */
      make('b', &g, 9, 1),  /* 9 */
      make('c', &g, 30, 5), /* 6 */
      make('d', &g, 1, 2),  /* a half */
  };

  (void)state;
  check(c, 4, 50, "bcad", "");
  assert_int_equal(g.doubt_bytes, 0);
}

static void the_budget_cuts(void **state) {
  struct plan_group g = {0};
  struct candidate c[] = {make('a', &g, 40, 10), make('b', &g, 30, 10),
                          make('c', &g, 20, 10), make('d', &g, 10, 10)};

  (void)state;
  check(c, 4, 20, "ab", "cd");
  assert_int_equal(g.doubt_bytes, 30 * MIB);
}

/* What comes behind one that did not fit would get ahead of it each time. */
static void a_smaller_one_does_not_slip_in(void **state) {
  struct plan_group g = {0};
  struct candidate c[] = {make('a', &g, 40, 10), make('b', &g, 30, 11),
                          make('c', &g, 1, 1)};

  (void)state;
  check(c, 3, 20, "a", "bc");
}

static void what_must_be_read_is_first_and_free(void **state) {
  struct plan_group g = {0};
  struct candidate c[] = {make('a', &g, 100, 10), make('b', &g, 0, 1000),
                          make('c', &g, 50, 10), make('d', &g, 1, 1000)};

  (void)state;
  c[1].is_must = c[3].is_must = true;
  check(c, 4, 20, "bdac", "");
}

static void without_a_budget_only_what_must_is_read(void **state) {
  struct plan_group g = {0};
  struct candidate c[] = {make('a', &g, 100, 1), make('b', &g, 0, 1000),
                          make('c', &g, 50, 0), make('d', &g, 5, 1)};

  (void)state;
  c[1].is_must = true;
  c[3].is_due = true;
  check(c, 4, 0, "b", "acd");
}

static void
one_larger_than_the_budget_is_chosen_when_it_is_first(void **state) {
  struct plan_group g = {0};
  struct candidate c[] = {make('a', &g, 1000, 500), make('b', &g, 1, 1)};
  struct candidate d[] = {make('a', &g, 1000, 500), make('b', &g, 100, 1)};

  (void)state;
  check(c, 2, 50, "a", "b");
  check(d, 2, 50, "b", "a");
}

static void a_group_within_what_it_tolerates_is_not_read(void **state) {
  struct plan_group calm = {.tolerated_bytes = 30 * MIB}, other = {0};
  struct candidate c[] = {make('a', &calm, 20, 1), make('b', &calm, 10, 1),
                          make('c', &other, 1, 1)};

  (void)state;
  check(c, 3, 50, "c", "");
  assert_int_equal(calm.doubt_bytes, 30 * MIB);
}

static void a_group_is_read_until_it_is_within(void **state) {
  struct plan_group g = {.tolerated_bytes = 15 * MIB};
  struct candidate c[] = {make('a', &g, 5, 1), make('b', &g, 10, 1),
                          make('c', &g, 30, 1), make('d', &g, 20, 1)};

  (void)state;
  /* 65, less 30, less 20. */
  check(c, 4, 50, "cd", "");
  assert_int_equal(g.doubt_bytes, 15 * MIB);
}

static void one_that_is_due_is_read_in_a_calm_group(void **state) {
  struct plan_group g = {.tolerated_bytes = 100 * MIB};
  struct candidate c[] = {make('a', &g, 20, 1), make('b', &g, 0, 1),
                          make('c', &g, 10, 1)};

  (void)state;
  c[1].is_due = true;
  check(c, 3, 50, "b", "");
}

/* It is not as if there were no time for it. */
static void only_what_was_wanted_is_deferred(void **state) {
  struct plan_group calm = {.tolerated_bytes = 100 * MIB}, busy = {0};
  struct candidate c[] = {make('a', &calm, 50, 1), make('b', &busy, 30, 40),
                          make('c', &calm, 40, 1), make('d', &busy, 20, 40),
                          make('e', &calm, 0, 40)};

  (void)state;
  c[4].is_due = true;
  check(c, 5, 40, "e", "bd");
}

/* The reading of what must be read may be enough for its group. */
static void what_must_be_read_calms_its_group(void **state) {
  struct plan_group g = {.tolerated_bytes = 10 * MIB};
  struct candidate c[] = {make('a', &g, 10, 1), make('b', &g, 90, 1)};

  (void)state;
  c[1].is_must = true;
  check(c, 2, 50, "b", "");
}

static void who_was_deferred_gets_ahead(void **state) {
  struct plan_group g = {0};
  struct candidate c[] = {make('a', &g, 30, 10), make('b', &g, 10, 10)};

  (void)state;
  c[1].deferrals = 1;
  check(c, 2, 10, "a", "b");
  g.doubt_bytes = 40 * MIB;
  for (int i = 0; i < 2; i++)
    if (letter_of(&c[i]) == 'b')
      c[i].deferrals = 3;
  check(c, 2, 10, "b", "a");
}

static void no_doubt_and_no_cost_are_no_trouble(void **state) {
  struct plan_group g = {0};
  struct candidate c[] = {make('a', &g, 0, 0), make('b', &g, 0, 0),
                          make('c', &g, 0, 10)};

  (void)state;
  for (int i = 0; i < 3; i++)
    c[i].is_due = true;
  c[0].doubt_bytes = 1;
  check(c, 3, 10, "abc", "");
}

static uint64_t seed;

static uint64_t draw(uint64_t below) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed % below;
}

/* As the collector does: counts the intervals since each was read. */
struct waiting {
  uint64_t doubt_bytes, cost_ns;
  uint32_t deferrals, waited, longest;
};

static void run_interval(struct waiting *w, size_t n, uint64_t budget_ns,
                         uint32_t due_after) {
  struct plan_group g = {0};
  struct candidate c[MANY];
  struct plan plan;

  for (size_t i = 0; i < n; i++) {
    c[i] = (struct candidate){.process = &w[i],
                              .group = &g,
                              .doubt_bytes = w[i].doubt_bytes,
                              .cost_ns = (uint32_t)w[i].cost_ns,
                              .deferrals = (uint16_t)w[i].deferrals,
                              .is_due = w[i].waited >= due_after};
    g.doubt_bytes += w[i].doubt_bytes;
  }
  plan = plan_choose(c, n, budget_ns);
  assert_true(plan.chosen > 0);
  for (size_t i = 0; i < n; i++) {
    struct waiting *p = c[i].process;
    bool is_chosen = i < plan.chosen;

    p->deferrals =
        is_chosen ? 0 : p->deferrals + (i < plan.chosen + plan.deferred);
    p->waited = is_chosen ? 0 : p->waited + 1;
    if (p->waited > p->longest)
      p->longest = p->waited;
  }
}

/* Each makes the same doubt again in every interval, and together they need
 * many times the budget. */
static void nothing_starves(void **state) {
  (void)state;
  seed = 1848;
  for (int round = 0; round < 20; round++) {
    struct waiting w[MANY] = {{0}};

    for (size_t i = 0; i < MANY; i++) {
      w[i].doubt_bytes = draw(UINT64_C(1) << (10 + draw(20)));
      w[i].cost_ns = 1 + draw(20 * MS);
    }
    w[0].doubt_bytes = 0;   /* least worth */
    w[0].cost_ns = 90 * MS; /* and larger than the budget */
    for (int interval = 0; interval < 20000; interval++)
      run_interval(w, MANY, 50 * MS, 60);
    for (size_t i = 0; i < MANY; i++)
      if (w[i].longest > 2000)
        fail_msg("round %d: one waits for %u intervals", round, w[i].longest);
  }
}

/* However they are: as much as fits is spent, and never more, but by one. */
static void any_plan_keeps_to_the_budget(void **state) {
  (void)state;
  seed = 1871;
  for (int round = 0; round < 5000; round++) {
    size_t n = (size_t)draw(MANY + 1), musts = 0, wanted = 0;
    uint64_t budget = draw(4) ? draw(100 * MS) : 0, spent = 0;
    struct plan_group g[3] = {{0}};
    struct candidate c[MANY];
    struct plan plan;

    for (size_t i = 0; i < 3; i++)
      g[i].tolerated_bytes = draw(2) ? draw(500 * MIB) : 0;
    for (size_t i = 0; i < n; i++) {
      c[i] = (struct candidate){.group = &g[draw(3)],
                                .doubt_bytes = draw(50 * MIB),
                                .cost_ns = (uint32_t)draw(10 * MS),
                                .deferrals = (uint16_t)draw(5),
                                .is_due = draw(10) == 0,
                                .is_must = draw(10) == 0};
      c[i].group->doubt_bytes += c[i].doubt_bytes;
      musts += c[i].is_must;
    }
    plan = plan_choose(c, n, budget);
    assert_true(plan.chosen >= musts && plan.chosen + plan.deferred <= n);
    for (size_t i = 0; i < n; i++) {
      bool is_wanted = c[i].is_due || c[i].is_must ||
                       c[i].group->doubt_bytes > c[i].group->tolerated_bytes;

      assert_true(c[i].is_must == (i < musts));
      if (i >= musts && i < plan.chosen)
        spent += c[i].cost_ns;
      if (i >= plan.chosen) {
        wanted += is_wanted;
        assert_true(is_wanted == (i < plan.chosen + plan.deferred));
      }
    }
    assert_int_equal(wanted, plan.deferred);
    if (plan.chosen > musts + 1)
      assert_true(spent <= budget);
    if (budget == 0)
      assert_int_equal(plan.chosen, musts);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_candidates_are_no_plan),
      cmocka_unit_test(most_doubt_for_the_time_comes_first),
      cmocka_unit_test(the_budget_cuts),
      cmocka_unit_test(a_smaller_one_does_not_slip_in),
      cmocka_unit_test(what_must_be_read_is_first_and_free),
      cmocka_unit_test(without_a_budget_only_what_must_is_read),
      cmocka_unit_test(one_larger_than_the_budget_is_chosen_when_it_is_first),
      cmocka_unit_test(a_group_within_what_it_tolerates_is_not_read),
      cmocka_unit_test(a_group_is_read_until_it_is_within),
      cmocka_unit_test(one_that_is_due_is_read_in_a_calm_group),
      cmocka_unit_test(only_what_was_wanted_is_deferred),
      cmocka_unit_test(what_must_be_read_calms_its_group),
      cmocka_unit_test(who_was_deferred_gets_ahead),
      cmocka_unit_test(no_doubt_and_no_cost_are_no_trouble),
      cmocka_unit_test(nothing_starves),
      cmocka_unit_test(any_plan_keeps_to_the_budget),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
