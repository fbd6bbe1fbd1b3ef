/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "match/group.h"
#include "member/member.h"
#include "schedule/sampling.h"
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"

#define MANY 64

/* Candidates are named by a letter, so that an order is a string. */
static const char names[] = "abcdefghijklmnop";
static struct process processes[sizeof(names)]; /* one for each name */

/* A group that tolerates no error unless a test says so, and another one. */
static struct group_track track, other_track;
static struct group of_g = {.track = &track},
                    of_other = {.track = &other_track};
static struct group *const g = &of_g, *const other = &of_other;

static int begin(void **state) {
  (void)state;
  track = other_track = (struct group_track){.tolerated_bytes = 0};
  return 0;
}

#define PLAN_TEST(name) TEST_WITH(name, begin, NULL, void *none)

static struct candidate make_in(struct group *const *group, char letter,
                                uint64_t error_mib, uint64_t cost_ms) {
  const struct error error = {.common = (double)(error_mib * MIB)};

  error_add(&group[0]->track->error, error);
  return (struct candidate){.process = &processes[letter - 'a'],
                            .groups = group,
                            .n_groups = 1,
                            .error = error,
                            .time_ns = (uint32_t)(cost_ms * MS)};
}

static struct candidate make(char letter, uint64_t error_mib,
                             uint64_t cost_ms) {
  return make_in(&g, letter, error_mib, cost_ms);
}

static struct candidate make_due(char letter, uint64_t deadline_s,
                                 uint64_t cost_ms) {
  struct candidate c = make(letter, 0, cost_ms);

  c.is_due = true;
  c.deadline_ns = deadline_s * 1000 * MS;
  return c;
}

static char letter_of(const struct candidate *c) {
  return names[c->process - processes];
}

#define ENOUGH_NS (INT64_C(3600) * 1000 * (int64_t)MS)

/* A budget of which nothing is saved. */
static struct read_budget budget_of(uint64_t ns) {
  return (struct read_budget){.earned_ns = ns,
                              .spend_ns = ns,
                              .saved_ns = (int64_t)ns,
                              .capacity_ns = ENOUGH_NS,
                              .due_part = 0.5};
}

static void check_budget(const char *name, struct candidate *c, size_t n,
                         struct read_budget *b, const char *chosen,
                         const char *deferred) {
  struct schedule s = schedule_choose(c, n, b);
  char got[sizeof(names)] = {0};

  assert_in_range(s.chosen + s.deferred, 0, n);
  for (size_t i = 0; i < s.chosen; i++)
    got[i] = letter_of(&c[i]);
  if (strcmp(got, chosen) != 0 || s.deferred != strlen(deferred))
    fail_msg("%s: chosen are \"%s\", %zu deferred", name, got, s.deferred);
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
  struct read_budget b = budget_of(budget_ms * MS);

  check_budget("plan", c, n, &b, chosen, deferred);
}

/* --- one plan --------------------------------------------------------------
 */

/* Candidates a, b, c and so on are written "error:cost", in MiB and ms, with
 * letters behind: d is due (d3 by second 3), m must be read, s is a sample, o
 * is in the other group, and l is in Other, which that is then. */
struct plan {
  const char *name, *candidates;
  uint64_t budget_ms;
  const char *chosen, *deferred; /* deferred: NULL for none */
  uint64_t tolerated_mib, kept_ms, reach_ms;
  double due_part;
  int64_t sampling_ms, sampling_left_ms; /* time of the group for samples */
};

static const struct plan plans[] = {
    {"no candidates are no plan", "", 50, .chosen = ""},
    {"most doubt for the time comes first", "10:5 9:1 30:5 1:2", 50,
     .chosen = "bcad"},
    {"the budget cuts", "40:10 30:10 20:10 10:10", 20, .chosen = "ab",
     .deferred = "cd"},
    /* It comes first itself once it is overdue. */
    {"one that does not fit lets a smaller one go ahead", "40:10 30:11 1:1", 20,
     .chosen = "ac", .deferred = "b"},
    {"what is in Other alone is read last",
     "900:10l 1:10 950:10ld 2:10 100:10l", 30, .chosen = "dbc",
     .deferred = "ae"},
    {"what is kept is not for Other", "9:10l 8:10l 1:10 7:10l", 40,
     .chosen = "cab", .deferred = "d", .kept_ms = 10},
    {"what must be read is first and free", "100:10 0:1000m 50:10 1:1000m", 20,
     .chosen = "bdac"},
    {"without a budget only what must is read", "100:1 0:1000m 50:0 5:1d", 0,
     .chosen = "b", .deferred = "acd"},
    {"one larger than the budget is chosen when it is first", "1000:500 1:1",
     50, .chosen = "a", .deferred = "b"},
    {"one larger than the budget is not chosen behind another",
     "1000:500 100:1", 50, .chosen = "b", .deferred = "a"},
    {"a group within what it tolerates is not read", "20:1 10:1 1:1o", 50,
     .chosen = "c", .tolerated_mib = 30},
    {"a group is read until it is within", "5:1 10:1 30:1 20:1", 50,
     .chosen = "cd", .tolerated_mib = 15},
    {"one that is due is read in a calm group", "20:1 0:1d 10:1", 50,
     .chosen = "b", .tolerated_mib = 100},
    /* It is not as if there were no time for it. */
    {"only what was wanted is deferred", "50:1 30:40o 40:1 20:40o 0:40d", 40,
     .chosen = "e", .deferred = "bd", .tolerated_mib = 100},
    {"what must be read calms its group", "10:1 90:1m", 50, .chosen = "b",
     .tolerated_mib = 10},
    {"whose deadline is earliest is first", "0:1d3 0:20d1 1000:1 0:1d2", 100,
     .chosen = "bdac"},
    /* As all are when the first cycle begins. */
    {"of those with one deadline the worthiest is first", "2:1d 20:20d 5:1d",
     100, .chosen = "cab"},
    {"half of the budget is for doubt",
     "0:10d1 0:10d2 0:10d3 0:10d4 20:10 10:10 5:10", 40, .chosen = "abef",
     .deferred = "cdg"},
    {"those that are due get the part that they need",
     "0:10d1 0:10d2 0:10d3 0:10d4 20:10 10:10", 40, .chosen = "abce",
     .deferred = "df", .due_part = 0.75},
    {"time that doubt does not take is for those that are due",
     "0:10d1 0:10d2 0:10d3 0:9d4", 40, .chosen = "abdc"},
    /* And then is not passed over for all that fits. */
    {"one larger than the rest is chosen if it is saved", "40:10 60:30 1:5", 20,
     .chosen = "ab", .deferred = "c", .reach_ms = 40},
    {"one larger than the rest is chosen if it is worth most",
     "0:10d1 6000:30 1:5", 20, .chosen = "ab", .deferred = "c"},
    {"no doubt and no cost are no trouble", "1:0d 0:0d 0:10d", 10,
     .chosen = "abc"},
    /* Samples for which no time is left are not deferred: nobody waits for
     * them. */
    {"samples for error end with their time", "40:4s 30:4s 20:4s 1:4", 50,
     .chosen = "abd", .sampling_ms = 5, .sampling_left_ms = -3},
    {"a group that owes time takes no samples", "40:4s 30:4", 50, .chosen = "b",
     .sampling_ms = -1, .sampling_left_ms = -1},
    {"a sample that is due is taken and costs its group nothing",
     "40:4s 30:4sd", 50, .chosen = "b"},
};

static size_t make_all(const char *text, struct candidate *c) {
  unsigned error_mib, cost_ms;
  size_t n = 0;
  int len;

  for (; sscanf(text, " %u:%u%n", &error_mib, &cost_ms, &len) == 2; n++) {
    size_t letters = strcspn(text += len, " ");
    const char *due = memchr(text, 'd', letters);
    bool is_last = memchr(text, 'l', letters);

    c[n] = make_in(is_last || memchr(text, 'o', letters) ? &other : &g,
                   names[n], error_mib, cost_ms);
    c[n].is_last = is_last;
    c[n].is_must = memchr(text, 'm', letters);
    c[n].is_sample = memchr(text, 's', letters);
    c[n].is_due = due;
    if (due && due + 1 < text + letters)
      c[n].deadline_ns = strtoull(due + 1, NULL, 10) * 1000 * MS;
    text += letters;
  }
  return n;
}

/* What the first of them had in doubt is taken from their groups. */
static void assert_left(const char *name, const struct candidate *c, size_t n,
                        size_t chosen) {
  double left[2] = {0};

  for (size_t i = chosen; i < n; i++)
    left[c[i].groups[0] == other] += c[i].error.common;
  if (error_of_sum(&track.error) != (uint64_t)left[0] ||
      error_of_sum(&other_track.error) != (uint64_t)left[1])
    fail_msg("%s: another doubt is left", name);
}

TEST(a_plan_is_made_by_doubt_time_and_deadlines) {
  for (size_t i = 0; i < LENGTH(plans); i++) {
    const struct plan *p = &plans[i];
    struct read_budget b = budget_of(p->budget_ms * MS);
    struct candidate c[8];
    size_t n;

    begin(NULL);
    track.tolerated_bytes = p->tolerated_mib * MIB;
    n = make_all(p->candidates, c);
    track.sampling_ns = p->sampling_ms * (int64_t)MS;
    b.kept_ns = (int64_t)(p->kept_ms * MS);
    if (p->reach_ms)
      b.saved_ns = (int64_t)(p->reach_ms * MS);
    b.due_part = p->due_part > 0 ? p->due_part : b.due_part;
    check_budget(p->name, c, n, &b, p->chosen, p->deferred ? p->deferred : "");
    assert_int_equal(track.sampling_ns, p->sampling_left_ms * (int64_t)MS);
    assert_left(p->name, c, n, strlen(p->chosen));
  }
}

/* The next sample leaves as much noise. */
PLAN_TEST(samples_are_taken_in_turn) {
  struct candidate c[] = {make('a', 10, 1), make('b', 20, 1), make('c', 15, 1)};

  track.sampling_ns = 100 * (int64_t)MS;
  for (size_t i = 0; i < 3; i++)
    c[i].is_sample = true;
  c[0].intervals = 2.5;
  c[2].intervals = 0.9;
  check(c, 3, 50, "acb", "");
}

/* A view of all processes tolerates an error that one group in it does not
 * tolerate. */
PLAN_TEST(process_in_two_groups_has_to_keep_the_tolerance_of_both) {
  struct group *const both[] = {other, g}, *const reversed[] = {g, other};
  struct candidate c[] = {make_in(both, 'a', 20, 1),
                          make_in(&other, 'b', 50, 1),
                          make_in(reversed, 'c', 0, 1)};

  other_track.tolerated_bytes = 100 * MIB;
  track.tolerated_bytes = 5 * MIB;
  c[0].n_groups = c[2].n_groups = 2;
  track.error = (struct error_sum){.common = 20 * MIB};
  check(c, 3, 50, "a", "");
  assert_int_equal(error_of_sum(&other_track.error), 50 * MIB);
  assert_int_equal(error_of_sum(&track.error), 0);
}

/* A database whose reading takes longer than the budget, beside newcomers. */
PLAN_TEST(large_process_leaves_others_their_half_of_the_savings) {
  struct read_budget b = budget_of(50 * MS);

  for (int is_saved = 0; is_saved < 2; is_saved++) {
    struct candidate c[9] = {make_due('a', 1, 60)};

    for (char i = 1; i < 9; i++)
      c[(int)i] = make((char)('a' + i), 20, 3);
    b.credit_ns = 0;
    b.saved_ns = (int64_t)(is_saved ? 500 * MS : 50 * MS);
    assert_int_equal(schedule_choose(c, 9, &b).chosen, is_saved ? 9 : 1);
    assert_int_equal(b.credit_ns, -35 * (int64_t)MS);
  }
}

/* It is forgotten once none is due any more. */
PLAN_TEST(debt_is_limited_to_one_reading) {
  struct read_budget b = budget_of(MS);

  for (int i = 0; i < 10000; i++) {
    struct candidate c[] = {make_due('a', 1, 4000), make_due('b', 1, 4000)};

    schedule_choose(c, 2, &b);
    assert_true(b.credit_ns >= -4000 * (int64_t)MS);
  }
  for (int i = 0; i < 8000; i++)
    schedule_choose(NULL, 0, &b);
  assert_int_equal(b.credit_ns, 0);
}

/* However they are: as much as fits is spent, and never more, but by one. */
PLAN_TEST(any_plan_keeps_to_the_budget) {
  draw_begin(1871);
  for (int round = 0; round < 5000; round++) {
    size_t n = (size_t)draw(MANY + 1), musts = 0, wanted = 0;
    struct read_budget b = budget_of(draw(4) ? draw(100 * MS) : 0);
    uint64_t spent = 0, largest = 0;
    struct group_track tracks[3] = {{.tolerated_bytes = 0}};
    struct group groups[3] = {
        {.track = &tracks[0]}, {.track = &tracks[1]}, {.track = &tracks[2]}};
    struct group *all[4] = {&groups[0], &groups[1], &groups[2], &groups[0]};
    struct candidate c[MANY];
    struct schedule made;

    if (draw(4) == 0)
      b.credit_ns = (int64_t)draw(200 * MS) - 100 * (int64_t)MS;
    if (b.spend_ns > 0 && draw(2))
      b.saved_ns += (int64_t)draw(100 * MS);
    for (size_t i = 0; i < 3; i++)
      tracks[i].tolerated_bytes = draw(2) ? draw(500 * MIB) : 0;
    for (size_t i = 0; i < n; i++) {
      c[i] = (struct candidate){.groups = &all[draw(3)],
                                .n_groups = 1 + (size_t)draw(2),
                                .error = {.common = (double)draw(50 * MIB)},
                                .time_ns = (uint32_t)draw(10 * MS),
                                .deadline_ns = draw(100),
                                .is_due = draw(10) == 0,
                                .is_must = draw(10) == 0};
      for (size_t k = 0; k < c[i].n_groups; k++)
        error_add(&c[i].groups[k]->track->error, c[i].error);
      musts += c[i].is_must;
    }
    made = schedule_choose(c, n, &b);
    assert_true(made.chosen >= musts && made.chosen + made.deferred <= n);
    for (size_t i = 0; i < n; i++) {
      bool is_wanted = c[i].is_due || c[i].is_must;

      for (size_t k = 0; k < c[i].n_groups; k++)
        is_wanted |= error_of_sum(&c[i].groups[k]->track->error) >
                     c[i].groups[k]->track->tolerated_bytes;

      assert_true(c[i].is_must == (i < musts));
      if (i >= musts && i < made.chosen) {
        spent += c[i].time_ns;
        largest = c[i].time_ns > largest ? c[i].time_ns : largest;
      }
      if (i >= made.chosen) {
        wanted += is_wanted;
        assert_true(is_wanted == (i < made.chosen + made.deferred));
      }
    }
    assert_int_equal(wanted, made.deferred);
    assert_true((int64_t)spent <= b.saved_ns || spent - largest <= b.spend_ns);
    if (b.spend_ns == 0)
      assert_int_equal(made.chosen, musts);
  }
}

/* --- samples --- */

/* To the next, since a part of a nanosecond may be left out. */
static int64_t allowed_us(struct group_track of, uint64_t interval_ns) {
  sampling_allow(&of, interval_ns);
  return (of.sampling_ns + (of.sampling_ns > 0 ? 500 : -500)) / 1000;
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

/* Time that costs little is used even if the error is tolerated. What does not
 * fit into it is not read. */
PLAN_TEST(cheap_walks_are_made_oldest_first_and_other_last) {
  struct read_budget b = budget_of(50 * MS);

  track.tolerated_bytes = 1000 * MIB;
  track.sampling_ns = INT64_MAX;
  for (int has_time = 0; has_time < 3; has_time++) {
    struct candidate c[] = {make('a', 1, 2), make('b', 1, 2), make('c', 1, 21),
                            make('d', 1, 2), make('e', 1, 1), make('f', 1, 1)};

    for (size_t i = 0; i < LENGTH(c); i++)
      c[i].intervals = (double)(i * 7 % 5);
    c[4].is_sample = true;
    c[5].is_last = true;
    c[5].intervals = 100;
    b.cheap_ns = 20 * MS;
    b.spend_ns = has_time ? 50 * MS : 0;
    b.kept_ns = has_time == 2 ? 44 * (int64_t)MS : 0;
    check_budget("cheap", c, LENGTH(c), &b,
                 has_time == 0   ? ""
                 : has_time == 1 ? "bdaf"
                                 : "bda",
                 "");
  }
}

/* And what other readings cost does not matter: otherwise a set that is always
 * in doubt would leave nothing for the others before their MaxAge. */
PLAN_TEST(cheap_walks_are_made_beside_those_for_an_error) {
  for (uint64_t cheap_ms = 0; cheap_ms <= 6; cheap_ms += 2) {
    struct read_budget b = budget_of(50 * MS);
    struct candidate c[3];

    track = (struct group_track){.tolerated_bytes = 10 * MIB};
    c[0] = make('a', 20, 30);
    c[1] = make('b', 1, 3);
    c[2] = make('c', 1, 3);
    b.cheap_ns = cheap_ms * MS;
    c[1].intervals = 2;
    c[2].intervals = 1;
    check_budget("beside", c, LENGTH(c), &b,
                 cheap_ms < 3   ? "a"
                 : cheap_ms < 6 ? "ba"
                                : "bca",
                 "");
  }
}

/* An error that would take all the time does not keep others from being
 * renewed: their memory can have changed without a sign. */
PLAN_TEST(cheap_walks_come_before_those_for_an_error) {
  struct candidate c[2];
  struct read_budget b = budget_of(20 * MS);

  track = (struct group_track){.tolerated_bytes = 10 * MIB};
  c[0] = make('a', 20, 30);
  c[1] = make('b', 1, 3);
  b.cheap_ns = 4 * MS;
  check_budget("before", c, LENGTH(c), &b, "ba", "");
}

/* In short intervals only what has not been read for long is read. */
PLAN_TEST(cheap_walks_wait_for_their_age_in_short_intervals) {
  struct candidate c[] = {make('a', 1, 3), make('b', 1, 3)};
  struct read_budget b = budget_of(50 * MS);

  track.tolerated_bytes = 1000 * MIB;
  b.cheap_ns = 4 * MS;
  b.cheap_intervals = 60;
  c[0].intervals = 59.5;
  c[1].intervals = 60;
  check_budget("short", c, LENGTH(c), &b, "b", "");
}

/* It is read where that is cheap, behind those whose error is not slight. */
PLAN_TEST(slight_error_does_not_cause_an_expensive_walk) {
  for (int is_cheap = 0; is_cheap < 2; is_cheap++) {
    struct candidate c[] = {make('a', 20, 2), make('b', 20, 2),
                            make('c', 1, 2)};
    struct read_budget b = budget_of(50 * MS);

    track.tolerated_bytes = is_cheap ? 1000 * MIB : 0;
    b.cheap_ns = is_cheap ? 20 * MS : 0;
    c[0].is_slight = c[1].is_slight = true;
    c[0].intervals = 8;
    c[1].intervals = 9;
    check_budget("slight", c, LENGTH(c), &b, is_cheap ? "cba" : "c", "");
  }
}

/* Processes that are forked again and again are due in Other, and could take
 * all time of long intervals. */
PLAN_TEST(other_does_not_spend_the_time_for_cheap_walks_of_groups) {
  for (uint64_t cheap_ms = 3; cheap_ms <= 4; cheap_ms++) {
    struct candidate c[] = {make_due('a', 1, 19), make('b', 1, 2),
                            make('c', 1, 2)};
    struct read_budget b = budget_of(50 * MS);

    track = (struct group_track){.tolerated_bytes = 10 * MIB};
    b.cheap_ns = cheap_ms * MS;
    c[0].is_last = c[2].is_last = true;
    check_budget("cheap", c, LENGTH(c), &b, cheap_ms > 3 ? "bca" : "ba", "");
  }
}
