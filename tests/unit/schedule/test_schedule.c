#include "test.h"

#include "estimate/group_track.h"
#include "match/group.h"
#include "sample/sampling.h"
#include "schedule/schedule.h"

#include <string.h>

#include "draw.h"

#define MANY 64

/* Candidates are named by a letter, so that an order is a string. */
static const char names[] = "abcdefghijklmnop";

static const void *name(char letter) { return &names[letter - 'a']; }

static struct candidate make(char letter, struct group *const *group,
                             uint64_t error_mib, uint64_t cost_ms) {
  const struct doubt error = {.common = (double)(error_mib * MIB)};

  doubt_add(&group[0]->track->error, error);
  return (struct candidate){.process = (void *)(uintptr_t)name(letter),
                            .groups = group,
                            .n_groups = 1,
                            .error = error,
                            .cost_ns = (uint32_t)(cost_ms * MS)};
}

static char letter_of(const struct candidate *c) {
  return *(const char *)c->process;
}

#define ENOUGH_NS (UINT64_C(3600) * 1000 * MS)

/* A budget of which nothing is saved. */
static struct read_time time_of(uint64_t ns) {
  return (struct read_time){.earned_ns = ns,
                            .spend_ns = ns,
                            .reach_ns = ns,
                            .capacity_ns = ENOUGH_NS,
                            .age_part = 0.5};
}

static void check_time(struct candidate *c, size_t n,
                       const struct read_time *time, const char *chosen,
                       const char *deferred) {
  int64_t credit_ns = 0;
  struct schedule s = schedule_choose(c, n, time, &credit_ns);
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

static void check(struct candidate *c, size_t n, uint64_t budget_ms,
                  const char *chosen, const char *deferred) {
  struct read_time time = time_of(budget_ms * MS);

  check_time(c, n, &time, chosen, deferred);
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
  assert_int_equal(doubt_of_sum(&g->track->error), 0);
}

TEST(the_budget_cuts) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 40, 10), make('b', &g, 30, 10),
                          make('c', &g, 20, 10), make('d', &g, 10, 10)};

  check(c, 4, 20, "ab", "cd");
  assert_int_equal(doubt_of_sum(&g->track->error), 30 * MIB);
}

/* It comes first itself once it is overdue. */
TEST(one_that_does_not_fit_lets_a_smaller_one_go_ahead) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 40, 10), make('b', &g, 30, 11),
                          make('c', &g, 1, 1)};

  check(c, 3, 20, "ac", "b");
}

/* The next sample leaves as much noise. */
TEST(samples_are_taken_in_turn) {
  struct group_track track = {.sampling_ns = 100 * (int64_t)MS};
  struct group of_g = {.track = &track}, *g = &of_g;
  struct candidate c[] = {make('a', &g, 10, 1), make('b', &g, 20, 1),
                          make('c', &g, 15, 1)};

  for (size_t i = 0; i < 3; i++)
    c[i].is_sample = true;
  c[0].intervals = 2.5;
  c[2].intervals = 0.9;
  check(c, 3, 50, "acb", "");
}

TEST(what_is_in_other_alone_is_read_last) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct group of_other = {.track = &(struct group_track){.last_pss = 0}},
               *other = &of_other;
  struct candidate c[] = {make('a', &other, 900, 10), make('b', &g, 1, 10),
                          make('c', &other, 900, 10), make('d', &g, 2, 10),
                          make('e', &other, 100, 10)};

  c[0].is_last = c[2].is_last = c[4].is_last = true;
  c[2].is_due = true;
  check(c, 5, 30, "dbc", "ae");
}

TEST(what_is_kept_is_not_for_other) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct group of_other = {.track = &(struct group_track){.last_pss = 0}},
               *other = &of_other;
  struct candidate c[] = {make('a', &other, 9, 10), make('b', &other, 8, 10),
                          make('c', &g, 1, 10), make('d', &other, 7, 10)};
  struct read_time time = time_of(40 * MS);

  time.kept_ns = 10 * MS;
  c[0].is_last = c[1].is_last = c[3].is_last = true;
  check_time(c, 4, &time, "cab", "d");
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
  assert_int_equal(doubt_of_sum(&calm->track->error), 30 * MIB);
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
  of_g.track->error = (struct doubt_sum){.common = 20 * MIB};
  check(c, 3, 50, "a", "");
  assert_int_equal(doubt_of_sum(&of_view.track->error), 50 * MIB);
  assert_int_equal(doubt_of_sum(&of_g.track->error), 0);
}

TEST(a_group_is_read_until_it_is_within) {
  struct group of_g = {.track =
                           &(struct group_track){.tolerated_bytes = 15 * MIB}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 5, 1), make('b', &g, 10, 1),
                          make('c', &g, 30, 1), make('d', &g, 20, 1)};

  /* 65, less 30, less 20. */
  check(c, 4, 50, "cd", "");
  assert_int_equal(doubt_of_sum(&g->track->error), 15 * MIB);
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
                                 uint64_t deadline_s, uint64_t cost_ms) {
  struct candidate c = make(letter, group, 0, cost_ms);

  c.is_due = true;
  c.deadline_ns = deadline_s * 1000 * MS;
  return c;
}

TEST(whose_deadline_is_earliest_is_first) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make_due('a', &g, 3, 1), make_due('b', &g, 1, 20),
                          make('c', &g, 1000, 1), make_due('d', &g, 2, 1)};

  check(c, 4, 100, "bdac", "");
}

/* As all are when the first cycle begins. */
TEST(of_those_with_one_deadline_the_worthiest_is_first) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 2, 1), make('b', &g, 20, 20),
                          make('c', &g, 5, 1)};

  for (int i = 0; i < 3; i++)
    c[i].is_due = true;
  check(c, 3, 100, "cab", "");
}

TEST(half_of_the_budget_is_for_doubt) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make_due('a', &g, 1, 10), make_due('b', &g, 2, 10),
                          make_due('c', &g, 3, 10), make_due('d', &g, 4, 10),
                          make('e', &g, 20, 10),    make('f', &g, 10, 10),
                          make('g', &g, 5, 10)};

  check(c, 7, 40, "abef", "cdg");
}

TEST(those_that_are_due_get_the_part_that_they_need) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make_due('a', &g, 1, 10), make_due('b', &g, 2, 10),
                          make_due('c', &g, 3, 10), make_due('d', &g, 4, 10),
                          make('e', &g, 20, 10),    make('f', &g, 10, 10)};
  struct read_time time = time_of(40 * MS);

  time.age_part = 0.75;
  check_time(c, 6, &time, "abce", "df");
}

TEST(time_that_doubt_does_not_take_is_for_those_that_are_due) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make_due('a', &g, 1, 10), make_due('b', &g, 2, 10),
                          make_due('c', &g, 3, 10), make_due('d', &g, 4, 9)};

  check(c, 4, 40, "abdc", "");
}

/* It takes the time of those that are due in the cycles to come, but not that
 * of doubt. */
TEST(one_larger_than_its_half_is_paid_for_later) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct read_time time = time_of(40 * MS);
  int64_t credit_ns = 0;

  for (int round = 0; round < 3; round++) {
    for (int cycle = 0; cycle < 3; cycle++) {
      struct candidate c[] = {make_due('a', &g, 1, 60), make('b', &g, 9, 20)};
      struct schedule s = schedule_choose(c, 2, &time, &credit_ns);

      assert_int_equal(s.chosen, 1);
      assert_int_equal(letter_of(&c[0]), cycle == 0 ? 'a' : 'b');
    }
    assert_int_equal(credit_ns, 0);
  }
}

/* A database whose reading takes longer than the budget, beside newcomers. */
TEST(a_large_one_leaves_the_others_their_half_where_something_is_saved) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct read_time time = time_of(50 * MS);

  for (int is_saved = 0; is_saved < 2; is_saved++) {
    struct candidate c[9] = {make_due('a', &g, 1, 60)};
    int64_t credit_ns = 0;

    for (char i = 1; i < 9; i++)
      c[(int)i] = make((char)('a' + i), &g, 20, 3);
    time.reach_ns = is_saved ? 500 * MS : 50 * MS;
    assert_int_equal(schedule_choose(c, 9, &time, &credit_ns).chosen,
                     is_saved ? 9 : 1);
    assert_int_equal(credit_ns, -35 * (int64_t)MS);
  }
}

/* And then is not passed over for all that fits. */
TEST(one_larger_than_the_rest_is_chosen_if_it_is_saved_or_worth_most) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 40, 10), make('b', &g, 60, 30),
                          make('c', &g, 1, 5)};
  struct candidate d[] = {make_due('a', &g, 1, 10), make('b', &g, 6000, 30),
                          make('c', &g, 1, 5)};
  struct read_time time = time_of(20 * MS);

  time.reach_ns = 40 * MS;
  check_time(c, 3, &time, "ab", "c");
  check(d, 3, 20, "ab", "c");
}

/* They wait while the budget pays for a large one; then all is theirs until
 * they have had their part. */
TEST(those_that_are_due_get_what_a_debt_has_kept_from_them) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct read_time paying = time_of(20 * MS), paid = time_of(20 * MS);
  int64_t credit_ns = 0;

  paying.spend_ns = paying.reach_ns = 0;
  for (int i = 0; i < 3; i++) {
    struct candidate c[] = {make_due('a', &g, 1, 10), make('b', &g, 9, 10)};
    struct schedule s =
        schedule_choose(c, 2, i < 2 ? &paying : &paid, &credit_ns);

    assert_int_equal(s.chosen, i < 2 ? 0 : 2);
  }
  assert_int_equal(credit_ns, 0); /* none waits any more */
  for (int i = 0; i < 3; i++) {
    struct candidate c[] = {make_due('a', &g, 1, 20), make_due('c', &g, 2, 20),
                            make('b', &g, 9, 10)};
    struct schedule s =
        schedule_choose(c, 3, i < 2 ? &paying : &paid, &credit_ns);

    assert_int_equal(s.chosen, i < 2 ? 0 : 1);
    assert_int_equal(letter_of(&c[0]), i < 2 ? letter_of(&c[0]) : 'a');
  }
  assert_int_equal(credit_ns, 10 * MS);
}

/* It is forgotten once none is due any more. */
TEST(what_is_owed_is_no_more_than_one_reading) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct read_time time = time_of(MS);
  int64_t credit_ns = 0;

  for (int i = 0; i < 10000; i++) {
    struct candidate c[] = {make_due('a', &g, 1, 4000),
                            make_due('b', &g, 1, 4000)};

    schedule_choose(c, 2, &time, &credit_ns);
    assert_true(credit_ns >= -4000 * (int64_t)MS);
  }
  for (int i = 0; i < 8000; i++)
    schedule_choose(NULL, 0, &time, &credit_ns);
  assert_int_equal(credit_ns, 0);
}

TEST(no_doubt_and_no_cost_are_no_trouble) {
  struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
               *g = &of_g;
  struct candidate c[] = {make('a', &g, 0, 0), make('b', &g, 0, 0),
                          make('c', &g, 0, 10)};

  for (int i = 0; i < 3; i++)
    c[i].is_due = true;
  c[0].error.common = 1;
  check(c, 3, 10, "abc", "");
}

/* However they are: as much as fits is spent, and never more, but by one. */
TEST(any_plan_keeps_to_the_budget) {
  draw_begin(1871);
  for (int round = 0; round < 5000; round++) {
    size_t n = (size_t)draw(MANY + 1), musts = 0, wanted = 0;
    struct read_time time = time_of(draw(4) ? draw(100 * MS) : 0);
    int64_t credit_ns =
        draw(4) ? 0 : (int64_t)draw(200 * MS) - 100 * (int64_t)MS;
    uint64_t spent = 0, largest = 0;
    struct group_track tracks[3] = {{.last_pss = 0}};
    struct group of_g[3] = {
        {.track = &tracks[0]}, {.track = &tracks[1]}, {.track = &tracks[2]}};
    struct group *g[4] = {&of_g[0], &of_g[1], &of_g[2], &of_g[0]};
    struct candidate c[MANY];
    struct schedule made;

    if (time.spend_ns > 0 && draw(2))
      time.reach_ns += draw(100 * MS);
    for (size_t i = 0; i < 3; i++)
      of_g[i].track->tolerated_bytes = draw(2) ? draw(500 * MIB) : 0;
    for (size_t i = 0; i < n; i++) {
      c[i] = (struct candidate){.groups = &g[draw(3)],
                                .n_groups = 1 + (size_t)draw(2),
                                .error = {.common = (double)draw(50 * MIB)},
                                .cost_ns = (uint32_t)draw(10 * MS),
                                .deadline_ns = draw(100),
                                .is_due = draw(10) == 0,
                                .is_must = draw(10) == 0};
      for (size_t k = 0; k < c[i].n_groups; k++)
        doubt_add(&c[i].groups[k]->track->error, c[i].error);
      musts += c[i].is_must;
    }
    made = schedule_choose(c, n, &time, &credit_ns);
    assert_true(made.chosen >= musts && made.chosen + made.deferred <= n);
    for (size_t i = 0; i < n; i++) {
      bool is_wanted = c[i].is_due || c[i].is_must;

      for (size_t k = 0; k < c[i].n_groups; k++)
        is_wanted |= doubt_of_sum(&c[i].groups[k]->track->error) >
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
    assert_true(spent <= time.reach_ns || spent - largest <= time.spend_ns);
    if (time.spend_ns == 0)
      assert_int_equal(made.chosen, musts);
  }
}

/* A process that is passed over was worth less, or did not fit. */
TEST(any_plan_prefers_the_most_doubt_for_the_time) {
  draw_begin(1905);
  for (int round = 0; round < 5000; round++) {
    struct group of_g = {.track = &(struct group_track){.last_pss = 0}},
                 *g = &of_g;
    struct read_time time = time_of(1 + draw(100 * MS));
    size_t n = 1 + (size_t)draw(MANY);
    struct candidate c[MANY];
    int64_t credit_ns = 0;
    uint64_t spent_ns = 0;
    struct schedule made;

    for (size_t i = 0; i < n; i++) {
      c[i] = (struct candidate){
          .groups = &g,
          .n_groups = 1,
          .error = {.common =
                        (double)(1 + draw(UINT64_C(1) << (1 + draw(30))))},
          .cost_ns = 3000U * (uint32_t)(1 + draw(1U << draw(14)))};
      doubt_add(&g->track->error, c[i].error);
    }
    made = schedule_choose(c, n, &time, &credit_ns);
    assert_int_equal(made.chosen + made.deferred, n);
    assert_true(made.chosen > 0);
    for (size_t i = 0; i < made.chosen; i++) {
      for (size_t k = i + 1; k < n; k++)
        assert_true(c[k].worth <= c[i].worth ||
                    (i > 0 && spent_ns + c[k].cost_ns > time.reach_ns));
      spent_ns += c[i].cost_ns;
    }
  }
}

/* --- samples --- */

static struct candidate sample_of(char letter, struct group *const *group,
                                  uint64_t error_mib, uint64_t cost_ms) {
  struct candidate c = make(letter, group, error_mib, cost_ms);

  c.is_sample = true;
  return c;
}

/* What is left over is not deferred either: nobody waits for it. */
TEST(samples_for_error_end_with_their_time) {
  struct group_track track = {.sampling_ns = 5 * MS};
  struct group of_g = {.track = &track}, *g = &of_g;
  struct candidate c[] = {sample_of('a', &g, 40, 4), sample_of('b', &g, 30, 4),
                          sample_of('c', &g, 20, 4), make('d', &g, 1, 4)};

  check(c, 4, 50, "abd", "");
  assert_int_equal(track.sampling_ns, -3 * (int64_t)MS);
}

TEST(group_that_owes_time_takes_no_samples) {
  struct group_track track = {.sampling_ns = -1};
  struct group of_g = {.track = &track}, *g = &of_g;
  struct candidate c[] = {sample_of('a', &g, 40, 4), make('b', &g, 30, 4)};

  check(c, 2, 50, "b", "");
  assert_int_equal(track.sampling_ns, -1);
}

TEST(sample_that_is_due_is_taken_and_costs_its_group_nothing) {
  struct group_track track = {.sampling_ns = 0};
  struct group of_g = {.track = &track}, *g = &of_g;
  struct candidate c[] = {sample_of('a', &g, 40, 4), sample_of('b', &g, 30, 4)};

  c[1].is_due = true;
  check(c, 2, 50, "b", "");
  assert_int_equal(track.sampling_ns, 0);
}

/* One of them has time, and both have it known. */
TEST(sample_for_two_groups_counts_in_both) {
  struct group_track all_track = {.sampling_ns = -(int64_t)MS};
  struct group_track own_track = {.sampling_ns = MS};
  struct group of_all = {.track = &all_track}, of_own = {.track = &own_track};
  struct group *both[] = {&of_all, &of_own};
  struct candidate c[] = {sample_of('a', both, 40, 4)};

  c[0].n_groups = 2;
  doubt_add(&own_track.error, c[0].error);
  check(c, 1, 50, "a", "");
  assert_int_equal(all_track.sampling_ns, -5 * (int64_t)MS);
  assert_int_equal(own_track.sampling_ns, -3 * (int64_t)MS);
}

/* To the next, since a part of a nanosecond may be left out. */
static int64_t allowed_us(struct group_track track, uint64_t interval_ns) {
  sampling_allow(&track, interval_ns);
  return (track.sampling_ns + (track.sampling_ns > 0 ? 500 : -500)) / 1000;
}

TEST(time_for_samples_is_owed_and_not_saved) {
  const struct group_track one = {.giants = 1}, before = {.giants_before = 1};
  const struct group_track three = {.giants = 3}, many = {.giants = 20};
  const struct group_track none = {.giants = 0};
  struct group_track left = one, owes = one;

  left.sampling_ns = 900 * 1000;
  owes.sampling_ns = -2000 * 1000;
  assert_int_equal(allowed_us(none, NS), 0);
  assert_int_equal(allowed_us(one, NS), 1200);
  assert_int_equal(allowed_us(before, NS), 1200);
  assert_int_equal(allowed_us(three, NS), 3600);
  assert_int_equal(allowed_us(many, NS), 4000);
  assert_int_equal(allowed_us(many, 10 * NS), 40000);
  assert_int_equal(allowed_us(left, NS), 1200);
  assert_int_equal(allowed_us(owes, NS), -800);
}

/* The tolerated error is no reason to leave time unused that costs little. */
TEST(cheap_walks_are_made_oldest_first_and_other_last) {
  struct group_track track = {.tolerated_bytes = 1000 * MIB,
                              .sampling_ns = INT64_MAX};
  struct group of_g = {.track = &track};
  struct group *g = &of_g;
  struct read_time time = time_of(50 * MS);

  for (int has_time = 0; has_time < 3; has_time++) {
    struct candidate c[] = {make('a', &g, 1, 2), make('b', &g, 1, 2),
                            make('c', &g, 1, 9), make('d', &g, 1, 2),
                            make('e', &g, 1, 1), make('f', &g, 1, 1)};

    for (size_t i = 0; i < LENGTH(c); i++)
      c[i].intervals = (double)(i * 7 % 5);
    c[4].is_sample = true;
    c[5].is_last = true;
    c[5].intervals = 100;
    time.cheap_ns = 20 * MS;
    time.spend_ns = has_time ? 50 * MS : 0;
    time.kept_ns = has_time == 2 ? 40 * MS : 0;
    check_time(c, LENGTH(c), &time,
               has_time == 0   ? ""
               : has_time == 1 ? "bdaf"
                               : "bda",
               "");
  }
}

/* What had to be read counts as well. */
TEST(cheap_walks_leave_off_where_others_have_spent_as_much) {
  struct group_track track = {.tolerated_bytes = 10 * MIB};
  struct group of_g = {.track = &track};
  struct group *g = &of_g;
  struct candidate c[] = {make('a', &g, 20, 19), make('b', &g, 1, 2)};
  struct read_time time = time_of(50 * MS);

  time.cheap_ns = 20 * MS;
  check_time(c, LENGTH(c), &time, "a", "");
}
