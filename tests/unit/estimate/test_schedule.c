#include "test.h"

#include "estimate/schedule.h"
#include "estimate/track.h"
#include "match/group.h"

#include <string.h>

#define MANY 64

/* Candidates are named by a letter, so that an order is a string. */
static const char names[] = "abcdefghijklmnop";

static const void *name(char letter) { return &names[letter - 'a']; }

static struct candidate make(char letter, struct group *const *group,
                             uint64_t error_mib, uint64_t cost_ms) {
  group[0]->track->error_bytes += error_mib * MIB;
  return (struct candidate){.process = (void *)(uintptr_t)name(letter),
                            .groups = group,
                            .n_groups = 1,
                            .error_bytes = error_mib * MIB,
                            .cost_ns = (uint32_t)(cost_ms * MS)};
}

static char letter_of(const struct candidate *c) {
  return *(const char *)c->process;
}

static void check(struct candidate *c, size_t n, uint64_t budget_ms,
                  const char *chosen, const char *deferred) {
  uint64_t owed_ns = 0;
  struct schedule s = schedule_choose(c, n, budget_ms * MS, &owed_ns);
  char got[sizeof(names)] = {0};

  assert_in_range(s.chosen + s.deferred, 0, n);
  for (size_t i = 0; i < s.chosen; i++)
    got[i] = letter_of(&c[i]);
  assert_string_equal(got, chosen);
  assert_int_equal(s.deferred, strlen(deferred));
  for (size_t i = 0; i < s.deferred; i++)
    assert_non_null(strchr(deferred, letter_of(&c[s.chosen + i])));
  /* None is lost by the moving. */
  for (size_t l = 0; l < n; l++) {
    size_t times = 0;

    for (size_t i = 0; i < n; i++)
      times += letter_of(&c[i]) == names[l];
    assert_int_equal(times, 1);
  }
}

TEST(no_candidates_are_no_plan) { check(NULL, 0, 50, "", ""); }

TEST(most_doubt_for_the_time_comes_first) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {
      make('a', &g, 10, 5), /* 2 MiB a millisecond */
      make('b', &g, 9, 1),  /* 9 */
      make('c', &g, 30, 5), /* 6 */
      make('d', &g, 1, 2),  /* a half */
  };

  check(c, 4, 50, "bcad", "");
  assert_int_equal(g->track->error_bytes, 0);
}

TEST(the_budget_cuts) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 40, 10), make('b', &g, 30, 10),
                          make('c', &g, 20, 10), make('d', &g, 10, 10)};

  check(c, 4, 20, "ab", "cd");
  assert_int_equal(g->track->error_bytes, 30 * MIB);
}

/* It comes first itself once it is overdue. */
TEST(one_that_does_not_fit_lets_a_smaller_one_go_ahead) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 40, 10), make('b', &g, 30, 11),
                          make('c', &g, 1, 1)};

  check(c, 3, 20, "ac", "b");
}

TEST(what_must_be_read_is_first_and_free) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 100, 10), make('b', &g, 0, 1000),
                          make('c', &g, 50, 10), make('d', &g, 1, 1000)};

  c[1].is_must = c[3].is_must = true;
  check(c, 4, 20, "bdac", "");
}

TEST(without_a_budget_only_what_must_is_read) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 100, 1), make('b', &g, 0, 1000),
                          make('c', &g, 50, 0), make('d', &g, 5, 1)};

  c[1].is_must = true;
  c[3].is_due = true;
  check(c, 4, 0, "b", "acd");
}

TEST(one_larger_than_the_budget_is_chosen_when_it_is_first) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 1000, 500), make('b', &g, 1, 1)};
  struct candidate d[] = {make('a', &g, 1000, 500), make('b', &g, 100, 1)};

  check(c, 2, 50, "a", "b");
  check(d, 2, 50, "b", "a");
}

TEST(a_group_within_what_it_tolerates_is_not_read) {
  struct group of_calm = {.track = &(struct group_track){.tolerated_bytes =
                                                             30 * MIB}},
               *calm = &of_calm;
  struct group of_other = {.track = &(struct group_track){.last_pss = 0}},
               *other = &of_other;
  struct candidate c[] = {make('a', &calm, 20, 1), make('b', &calm, 10, 1),
                          make('c', &other, 1, 1)};

  check(c, 3, 50, "c", "");
  assert_int_equal(calm->track->error_bytes, 30 * MIB);
}

/* A view of all, which bears with what is in doubt of one group in it. */
TEST(one_in_two_groups_is_held_to_each_of_them) {
  struct group of_view = {.track = &(struct group_track){.tolerated_bytes =
                                                             100 * MIB}},
               *view = &of_view;
  struct group of_g = {.track =
                           &(struct group_track){.tolerated_bytes = 5 * MIB}};
  struct group *both[] = {view, &of_g}, *reversed[] = {&of_g, view};
  struct candidate c[] = {make('a', both, 20, 1), make('b', &view, 50, 1),
                          make('c', reversed, 0, 1)};

  c[0].n_groups = c[2].n_groups = 2;
  of_g.track->error_bytes = 20 * MIB;
  check(c, 3, 50, "a", "");
  assert_int_equal(of_view.track->error_bytes, 50 * MIB);
  assert_int_equal(of_g.track->error_bytes, 0);
}

TEST(a_group_is_read_until_it_is_within) {
  struct group of_g = {.track =
                           &(struct group_track){.tolerated_bytes = 15 * MIB}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 5, 1), make('b', &g, 10, 1),
                          make('c', &g, 30, 1), make('d', &g, 20, 1)};

  /* 65, less 30, less 20. */
  check(c, 4, 50, "cd", "");
  assert_int_equal(g->track->error_bytes, 15 * MIB);
}

TEST(one_that_is_due_is_read_in_a_calm_group) {
  struct group of_g = {.track =
                           &(struct group_track){.tolerated_bytes = 100 * MIB}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 20, 1), make('b', &g, 0, 1),
                          make('c', &g, 10, 1)};

  c[1].is_due = true;
  check(c, 3, 50, "b", "");
}

/* It is not as if there were no time for it. */
TEST(only_what_was_wanted_is_deferred) {
  struct group of_calm = {.track = &(struct group_track){.tolerated_bytes =
                                                             100 * MIB}},
               *calm = &of_calm;
  struct group of_busy = {.track = &(struct group_track){.last_pss = 0}},
               *busy = &of_busy;
  struct candidate c[] = {make('a', &calm, 50, 1), make('b', &busy, 30, 40),
                          make('c', &calm, 40, 1), make('d', &busy, 20, 40),
                          make('e', &calm, 0, 40)};

  c[4].is_due = true;
  check(c, 5, 40, "e", "bd");
}

/* The reading of what must be read may be enough for its group. */
TEST(what_must_be_read_calms_its_group) {
  struct group of_g = {.track =
                           &(struct group_track){.tolerated_bytes = 10 * MIB}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 10, 1), make('b', &g, 90, 1)};

  c[1].is_must = true;
  check(c, 2, 50, "b", "");
}

static struct candidate make_due(char letter, struct group *const *group,
                                 uint64_t overdue_s, uint64_t cost_ms) {
  struct candidate c = make(letter, group, 0, cost_ms);

  c.is_due = true;
  c.overdue_ns = overdue_s * 1000 * MS;
  return c;
}

TEST(who_is_longest_overdue_is_first) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make_due('a', &g, 1, 1), make_due('b', &g, 3, 20),
                          make('c', &g, 1000, 1), make_due('d', &g, 2, 1)};

  check(c, 4, 100, "bdac", "");
}

TEST(half_of_the_budget_is_for_doubt) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make_due('a', &g, 9, 10), make_due('b', &g, 8, 10),
                          make_due('c', &g, 7, 10), make_due('d', &g, 6, 10),
                          make('e', &g, 20, 10),    make('f', &g, 10, 10),
                          make('g', &g, 5, 10)};

  check(c, 7, 40, "abef", "cdg");
}

TEST(time_that_doubt_does_not_take_is_for_the_overdue) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make_due('a', &g, 9, 10), make_due('b', &g, 8, 10),
                          make_due('c', &g, 7, 10), make_due('d', &g, 6, 9)};

  check(c, 4, 40, "abdc", "");
}

/* It takes the time of the intervals to come, but that of doubt. */
TEST(one_larger_than_its_half_is_paid_for_later) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  uint64_t owed_ns = 0;

  for (int round = 0; round < 3; round++) {
    for (int interval = 0; interval < 3; interval++) {
      struct candidate c[] = {make_due('a', &g, 9, 60), make('b', &g, 9, 20)};
      struct schedule s = schedule_choose(c, 2, 40 * MS, &owed_ns);

      assert_int_equal(s.chosen, interval == 0 ? 2 : 1);
      assert_int_equal(letter_of(&c[0]), interval == 0 ? 'a' : 'b');
    }
    assert_int_equal(owed_ns, 0);
  }
}

/* A database whose reading takes longer than the budget, beside newcomers. */
TEST(a_large_one_that_is_overdue_leaves_the_others_their_half) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[9] = {make_due('a', &g, 0, 60)};
  uint64_t owed_ns = 0;

  for (char i = 1; i < 9; i++)
    c[(int)i] = make((char)('a' + i), &g, 20, 3);
  assert_int_equal(schedule_choose(c, 9, 50 * MS, &owed_ns).chosen, 9);
  assert_int_equal(owed_ns, 35 * MS);
}

/* Where nothing is overdue any more it is forgotten. */
TEST(what_is_owed_is_no_more_than_one_reading) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  uint64_t owed_ns = 0;

  for (int i = 0; i < 10000; i++) {
    struct candidate c[] = {make_due('a', &g, 9, 4000),
                            make_due('b', &g, 9, 4000)};

    schedule_choose(c, 2, MS, &owed_ns);
    assert_true(owed_ns <= 4000 * MS);
  }
  for (int i = 0; i < 8000; i++)
    schedule_choose(NULL, 0, MS, &owed_ns);
  assert_int_equal(owed_ns, 0);
}

TEST(no_doubt_and_no_cost_are_no_trouble) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 0, 0), make('b', &g, 0, 0),
                          make('c', &g, 0, 10)};

  for (int i = 0; i < 3; i++)
    c[i].is_due = true;
  c[0].error_bytes = 1;
  check(c, 3, 10, "abc", "");
}

static uint64_t seed;

static uint64_t draw(uint64_t below) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed % below;
}

/* --- over many intervals, as the collector has them --- */

#define INTERVAL_NS (10000 * MS)
#define MAX_AGE_NS (60000 * MS)
#define BUDGET_NS (50 * MS)
#define CROWD 600

struct waiting {
  uint64_t error_bytes; /* that it makes in each interval */
  uint32_t cost_ns;
  uint64_t read_ns, longest_ns;
};

struct crowd {
  struct waiting w[CROWD];
  size_t n;
  uint64_t now_ns, owed_ns, spent_on_doubt_ns;
};

/* How long it takes at worst to read all that can be overdue with it, in the
 * half of the budget that they have, and a few intervals to begin and to end.
 */
static uint64_t bearable_ns(const struct crowd *s) {
  uint64_t backlog_ns = 0;

  for (size_t i = 0; i < s->n; i++)
    backlog_ns += s->w[i].cost_ns;
  return MAX_AGE_NS + (backlog_ns / (BUDGET_NS / 2) + 3) * INTERVAL_NS;
}

static void run_interval(struct crowd *s) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[CROWD];
  struct schedule made;

  s->now_ns += INTERVAL_NS;
  for (size_t i = 0; i < s->n; i++) {
    uint64_t age_ns = s->now_ns - s->w[i].read_ns;

    c[i] = (struct candidate){
        .process = &s->w[i],
        .groups = &g,
        .n_groups = 1,
        .error_bytes = s->w[i].error_bytes,
        .cost_ns = s->w[i].cost_ns,
        .is_due = age_ns >= MAX_AGE_NS,
        .overdue_ns = age_ns >= MAX_AGE_NS ? age_ns - MAX_AGE_NS : 0};
    g->track->error_bytes += c[i].error_bytes;
  }
  made = schedule_choose(c, s->n, BUDGET_NS, &s->owed_ns);
  for (size_t i = 0; i < made.chosen; i++) {
    struct waiting *p = c[i].process;

    if (p->error_bytes > 0)
      s->spent_on_doubt_ns += p->cost_ns;
    if (s->now_ns - p->read_ns > p->longest_ns)
      p->longest_ns = s->now_ns - p->read_ns;
    p->read_ns = s->now_ns;
  }
}

/* Returns the longest that any has waited. */
static uint64_t run_crowd(struct crowd *s, unsigned intervals) {
  uint64_t longest_ns = 0;

  for (unsigned i = 0; i < intervals; i++)
    run_interval(s);
  for (size_t i = 0; i < s->n; i++) {
    uint64_t waits_ns = s->now_ns - s->w[i].read_ns;

    if (waits_ns > longest_ns)
      longest_ns = waits_ns;
    if (s->w[i].longest_ns > longest_ns)
      longest_ns = s->w[i].longest_ns;
  }
  return longest_ns;
}

/* Each makes the same doubt again in every interval, and together they need
 * many times the budget. */
TEST(nothing_starves) {
  seed = 1848;
  for (int round = 0; round < 20; round++) {
    struct crowd s = {.n = MANY};
    uint64_t longest_ns;

    for (size_t i = 0; i < MANY; i++) {
      s.w[i].error_bytes = draw(UINT64_C(1) << (10 + draw(20)));
      s.w[i].cost_ns = (uint32_t)(1 + draw(20 * MS));
    }
    s.w[0].error_bytes = 0;   /* least worth */
    s.w[0].cost_ns = 90 * MS; /* and larger than the budget */
    longest_ns = run_crowd(&s, 20000);
    if (longest_ns > bearable_ns(&s))
      fail_msg("round %d: one waits for %ju s", round,
               (uintmax_t)(longest_ns / 1000 / MS));
  }
}

/* One process of 20 GB and n small ones, all of them with doubt anew. */
static void check_large_among_small(size_t n, uint32_t small_ns) {
  struct crowd s = {.n = n + 1};

  for (size_t i = 1; i <= n; i++)
    s.w[i] = (struct waiting){.error_bytes = MIB, .cost_ns = small_ns};
  s.w[0] = (struct waiting){.error_bytes = 4096, .cost_ns = 60 * MS};
  assert_in_range(run_crowd(&s, 3000), MAX_AGE_NS,
                  MAX_AGE_NS + 5 * INTERVAL_NS);
}

TEST(large_one_does_not_starve_among_small_ones) {
  check_large_among_small(500, 11000);
  check_large_among_small(20, 1000000);
}

/* Of which one would be worth all readings, and twenty take the whole budget
 * for their age alone. */
TEST(small_ones_do_not_starve_among_large_ones) {
  static const size_t larges[] = {1, 20};

  for (size_t k = 0; k < 2; k++) {
    struct crowd s = {.n = larges[k] + 500};

    for (size_t i = 0; i < s.n; i++)
      s.w[i] =
          i < larges[k]
              ? (struct waiting){.error_bytes = 10000 * MIB, .cost_ns = 60 * MS}
              : (struct waiting){.error_bytes = 4096, .cost_ns = 11000};
    assert_in_range(run_crowd(&s, 3000), MAX_AGE_NS,
                    k == 0 ? MAX_AGE_NS + 5 * INTERVAL_NS : bearable_ns(&s));
  }
}

/* A part of them is worth a reading in each interval; the others are read for
 * their age, which would take more than there is. */
TEST(doubt_has_its_half_whatever_is_overdue) {
  static const uint32_t costs_ns[] = {MS, 9 * MS, 30 * MS, 60 * MS, 90 * MS};

  for (size_t k = 0; k < LENGTH(costs_ns); k++) {
    struct crowd s = {.n = CROWD};

    for (size_t i = 0; i < s.n; i++)
      s.w[i] = i < 100
                   ? (struct waiting){.error_bytes = 100 * MIB, .cost_ns = MS}
                   : (struct waiting){.cost_ns = costs_ns[k]};
    run_crowd(&s, 3000);
    assert_in_range(s.spent_on_doubt_ns / 3000, 24 * MS, 50 * MS);
  }
}

/* However they are: as much as fits is spent, and never more, but by one. */
TEST(any_plan_keeps_to_the_budget) {
  seed = 1871;
  for (int round = 0; round < 5000; round++) {
    size_t n = (size_t)draw(MANY + 1), musts = 0, wanted = 0;
    uint64_t budget = draw(4) ? draw(100 * MS) : 0, spent = 0;
    uint64_t owed_ns = draw(4) ? 0 : draw(100 * MS), largest = 0;
    struct group_track tracks[3] = {{.last_pss = 0}};
    struct group of_g[3] = {
        {.track = &tracks[0]}, {.track = &tracks[1]}, {.track = &tracks[2]}};
    struct group *g[4] = {&of_g[0], &of_g[1], &of_g[2], &of_g[0]};
    struct candidate c[MANY];
    struct schedule made;

    for (size_t i = 0; i < 3; i++)
      of_g[i].track->tolerated_bytes = draw(2) ? draw(500 * MIB) : 0;
    for (size_t i = 0; i < n; i++) {
      c[i] = (struct candidate){.groups = &g[draw(3)],
                                .n_groups = 1 + (size_t)draw(2),
                                .error_bytes = draw(50 * MIB),
                                .cost_ns = (uint32_t)draw(10 * MS),
                                .overdue_ns = draw(100),
                                .is_due = draw(10) == 0,
                                .is_must = draw(10) == 0};
      for (size_t k = 0; k < c[i].n_groups; k++)
        c[i].groups[k]->track->error_bytes += c[i].error_bytes;
      musts += c[i].is_must;
    }
    made = schedule_choose(c, n, budget, &owed_ns);
    assert_true(made.chosen >= musts && made.chosen + made.deferred <= n);
    for (size_t i = 0; i < n; i++) {
      bool is_wanted = c[i].is_due || c[i].is_must;

      for (size_t k = 0; k < c[i].n_groups; k++)
        is_wanted |= c[i].groups[k]->track->error_bytes >
                     c[i].groups[k]->track->tolerated_bytes;

      assert_true(c[i].is_must == (i < musts));
      if (i >= musts && i < made.chosen) {
        spent += c[i].cost_ns;
        largest = c[i].cost_ns > largest ? c[i].cost_ns : largest;
      }
      if (i >= made.chosen) {
        wanted += is_wanted;
        assert_true(is_wanted == (i < made.chosen + made.deferred));
      }
    }
    assert_int_equal(wanted, made.deferred);
    assert_true(spent <= budget || spent - largest <= budget);
    if (budget == 0)
      assert_int_equal(made.chosen, musts);
  }
}
