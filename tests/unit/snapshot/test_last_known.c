/* SPDX-License-Identifier: MIT */
/* Tests captures of groups that have ended, and the summary of a capture. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "snapshot/last_known.h"

#include "capturing.h"

/* --- of a group that has ended -------------------------------------------- */

/* Nothing is kept of the first cycle. */
static void begin(struct world *w) {
  capturing_cycle(w);
  capturing_cycle(w);
}

/* The alarm comes a cycle later, and the capture is made in the next. */
static parsed capture_ended(struct world *w, const char *name, uint32_t from,
                            uint32_t n) {
  begin(w);
  for (uint32_t i = 0; i < n; i++)
    proctree_end(&w->tree, from + i);
  return capturing_run(w, name);
}

CAPTURING_TEST(a_group_that_has_ended_has_what_was_last_known) {
  const struct summary *s;
  parsed d, p;

  capturing_put(w, 30, "other", 9000);
  capturing_put_many(w, 3);
  d = capture_ended(w, "g", 10, 3);
  capturing_assert_members(d, "12 11 10", 0);
  assert_true(parsed_decimal(d, "time") ==
              parsed_decimal(d, "groups.0.last_known") + 20);
  parsed_assert(d, "groups.0.name=g groups.0.processes=3 "
                   "groups.0.usage.pss=3300k groups.0.usage.uss=3300k");
  assert_int_equal(parsed_count(d, "mappings"), 0);
  p = parsed_get(d, "processes.0");
  parsed_assert(p, "source=ended comm=g groups.0=g rule=0 usage.pss=1200k "
                   "usage.uss=1200k usage.swap=0 pss_error=0");
  assert_null(parsed_get(p, "mappings"));
  s = &world_written(0)->summary;
  assert_true(s->has_ended && s->has_pss);
  assert_int_equal(s->ended_ns / NS_PER_S, 20);
  assert_int_equal(s->pss_bytes, 3300 * KIB);
  assert_int_equal(s->n, 3);
  assert_int_equal(s->largest[0].pid, 12);
  assert_int_equal(s->largest[0].bytes, 1200 * KIB);
  assert_string_equal(s->largest[0].comm, "g");
}

CAPTURING_TEST(a_process_that_ended_in_a_view_was_not_taken_by_its_rule) {
  parsed p;

  capturing_put(w, 30, "other", 100);
  capturing_put(w, 10, "g", 100);
  capturing_group(w, "other");
  world_group(w, "view", "Comm", "g", NULL, NULL)->is_view = true;
  p = parsed_get(capture_ended(w, "view", 10, 1), "processes.0");
  parsed_assert(p, "groups.0=view also.0=1");
  assert_null(parsed_get(p, "rule"));
}

CAPTURING_TEST(the_last_known_members_are_the_largest) {
  parsed d;

  capturing_put(w, 50, "other", 100);
  capturing_put_many(w, 20);
  begin(w);
  capturing_put(w, 13, "g", 8000);
  d = capture_ended(w, "g", 10, 20);
  capturing_assert_members(d, "13 29 28 27 26 25 24 23", 12);
  assert_int_equal(parsed_integer(d, "groups.0.processes"), 20);
}

CAPTURING_TEST(the_number_of_last_known_members_is_limited) {
  w->settings.capture.top_processes = 2;
  capturing_put(w, 50, "other", 100);
  capturing_put_many(w, 4);
  capturing_assert_members(capture_ended(w, "g", 10, 4), "13 12", 2);
}

/* The group is not there any more. */
CAPTURING_TEST(a_group_of_a_template_that_has_ended_has_a_capture) {
  parsed d;

  capturing_put(w, 10, "a", 100);
  capturing_put(w, 11, "b", 200);
  capturing_put(w, 12, "c", 300);
  world_group(w, "t-%{comm}", "Comm", "*", NULL, NULL);
  d = capture_ended(w, "t-b", 11, 1);
  capturing_assert_members(d, "11", 0);
  parsed_assert(d, "groups.0.name=t-a groups.1.name=t-b groups.2.name=t-c "
                   "groups.1.usage.pss=200k processes.0.groups.0=t-b");
  assert_null(parsed_get(d, "groups.2.last_known"));
}

CAPTURING_TEST(the_last_group_by_name_has_its_place_too) {
  parsed d;

  capturing_put(w, 10, "a", 100);
  capturing_put(w, 11, "b", 200);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  d = capture_ended(w, "b", 11, 1);
  assert_int_equal(parsed_count(d, "groups"), 2);
  parsed_assert(d, "groups.0.name=a groups.1.name=b");
}

/* "-12" ends a process, "z12" leaves its zombie, and "+20=70" starts one of 70
 * kB. '.' is a cycle, and "~60" one after a minute. '!' is an alarm, 'k' one
 * about a kill. */
static void play(struct world *w, const char *script) {
  unsigned n, kb;
  int len;

  for (; *script; script += len) {
    len = 1;
    if (sscanf(script, "-%u%n", &n, &len) == 1)
      proctree_end(&w->tree, n);
    else if (sscanf(script, "z%u%n", &n, &len) == 1)
      world_put(w,
                (struct fake){
                    .pid = n, .comm = "g", .state = 'Z', .starttime = 100 + n});
    else if (sscanf(script, "+%u=%u%n", &n, &kb, &len) == 2)
      capturing_put(w, n, "g", kb);
    else if (sscanf(script, "~%u%n", &n, &len) == 1)
      world_run(w, n);
    else if (*script == '.')
      capturing_cycle(w);
    else if (*script != ' ')
      world_raise_as(w, "g", *script == 'k' ? "oom_kill" : "pss",
                     SEVERITY_WARNING);
  }
}

/* LAST_KNOWN_INTERVALS of them. */
#define TEN_CYCLES ".........."
/* A service manager starts it again at once. */
#define RESTART "-10 -11 +20=70 "

/* A capture for a kill has the processes that were killed, and any other has
 * the present ones. Of what ended, the largest count: the service manager stops
 * the others, which takes a moment. */
TEST(last_known_values_belong_to_the_life_that_has_ended) {
  static const struct {
    const char *name;
    uint32_t n; /* from 10 on, of 1000 kB, 1100 kB … */
    const char *script, *members;
    unsigned age_s; /* of what was last known; 0: nothing */
  } cases[] = {
      {"a zombie, whose parent has not asked yet", 1, "z10 .!", "10", 20},
      {"almost an hour ago", 1, "-10 ~3570 .!", "10", 3590},
      {"an hour ago", 1, "-10 ~3600 .!", "", 0},
      {"the largest first", 3, "-12 . -11 . -10 .!", "12 11 10", 40},
      {"one long before", 3, "-12" TEN_CYCLES ".. -11 -10 .!", "11 10", 20},
      {"a helper first, beside which others grow", 2, "-11 +10=5000 . -10 .!",
       "10", 20},
      {"a kill of a part", 2, "-11 .k", "10", 0},
      {"a kill before a restart", 2, RESTART ".k", "11 10", 20},
      {"that has failed meanwhile", 2, RESTART ".k -20", "11 10", 20},
      {"a kill long before", 2, RESTART TEN_CYCLES "k", "20", 0},
      {"a restart", 2, RESTART ".!", "20", 0},
      {"a restart that has ended", 2, RESTART ". -20 .!", "20", 20},
      {"after the end of the largest", 2, "-11 . -10 . +20=70 . -20 .!", "20",
       20},
      {"the last of a restart", 2, RESTART "+21=60 . -20 . -21 .!", "21", 20},
      {"a larger life", 2, RESTART "+21=5000 . -21 . -20 .!", "21 20", 30},
  };

  assert_int_equal(LAST_KNOWN_INTERVALS, strlen(TEN_CYCLES));
  for (size_t i = 0; i < LENGTH(cases); i++) {
    void *state;
    struct world *w;
    parsed d;

    print_message("%s\n", cases[i].name);
    capturing_setup(&state);
    w = state;
    capturing_put(w, 50, "other", 100);
    capturing_put_many(w, cases[i].n);
    begin(w);
    play(w, cases[i].script);
    capturing_cycle(w);
    d = capturing_read();
    capturing_assert_members(d, cases[i].members, 0);
    assert_int_equal(world_written(0)->summary.has_ended, cases[i].age_s > 0);
    if (cases[i].age_s == 0)
      assert_null(parsed_get(d, "groups.0.last_known"));
    else
      assert_true(parsed_decimal(d, "time") ==
                  parsed_decimal(d, "groups.0.last_known") + cases[i].age_s);
    capturing_teardown(&state);
  }
}

CAPTURING_TEST(a_member_that_has_ended_keeps_its_command_line_to_itself_too) {
  struct fake f = fake_process(10, "g");

  f.private_kb = 100;
  f.cmdline = "g --password=1234";
  w->settings.capture.command_lines = CHOICE_NO;
  world_put_mapped(w, f, NULL);
  world_put(w, fake_process(50, "other"));
  world_group(w, "g", "CommandLine", "g *", NULL, NULL);
  parsed_assert(capture_ended(w, "g", 10, 1), "processes.0.source=ended");
  assert_null(parsed_get(capturing_document, "processes.0.command_line"));
}

/* --- its summary ---------------------------------------------------------- */

static const struct summary *summary_of(struct world *w, const char *name) {
  capturing_run(w, name);
  return &world_written(0)->summary;
}

/* Not from what lies between. */
CAPTURING_TEST(a_summary_has_the_change_since_the_oldest_point_of_growth) {
  const struct summary *s;

  capturing_put(w, 10, "g", 1000);
  capturing_group(w, "g");
  for (int i = 0; i < 8; i++)
    capturing_cycle(w);
  capturing_put(w, 10, "g", 5000);
  capturing_cycle(w);
  capturing_put(w, 10, "g", 400);
  s = summary_of(w, "g");
  assert_int_equal(s->change.bytes, -600 * (int64_t)KIB);
  assert_int_equal(s->change.age_ns / NS_PER_S, 100);
}

CAPTURING_TEST(before_a_point_the_change_is_that_since_the_lowest_amount) {
  struct fake f = fake_process(10, "g");
  const struct summary *s;

  capturing_put(w, 10, "g", 1000);
  capturing_group(w, "g");
  capturing_cycle(w);
  capturing_cycle(w);
  f.private_kb = 5000;
  f.swap_kb = 300;
  world_put_mapped(w, f, "g");
  s = summary_of(w, "g");
  assert_int_equal(s->change.bytes, 4300 * (int64_t)KIB);
  assert_int_equal(s->change.age_ns / NS_PER_S, 30);
}

CAPTURING_TEST(without_an_amount_a_change_is_unknown) {
  w->settings.policy.refresh = REFRESH_NEVER;
  capturing_put(w, 10, "g", 1000);
  capturing_group(w, "g");
  assert_int_equal(summary_of(w, "g")->change.age_ns, 0);
}

/* Without members it is 0, and known, if there are none for sure. */
TEST(the_pss_of_a_group_without_members_may_be_unknown) {
  struct cycle now = {.kernel_fields = 1U << ROLLUP_PSS};
  const struct scene scene = {.cycle = &now};
  struct group g = {.usage = {.is_unseen = true}};

  assert_false(last_known_sum_up(&g, &scene).has_pss);
  g.usage.is_unseen = false;
  assert_true(last_known_sum_up(&g, &scene).has_pss);
  g.usage.unreadable = 1;
  assert_false(last_known_sum_up(&g, &scene).has_pss);
  g.usage.unreadable = 0;
  now.kernel_fields = 0;
  assert_false(last_known_sum_up(&g, &scene).has_pss);
}

CAPTURING_TEST(names_in_a_summary_are_escaped) {
  const struct summary *s;

  /* A name with blanks could pass for two processes. */
  capturing_put(w, 10, "\n\"g\x1b\xff", 2000);
  capturing_put(w, 11, "a 9 GiB, 1 init", 1000);
  world_group(w, "g", "Comm", "*", NULL, NULL);
  s = summary_of(w, "g");
  assert_string_equal(s->largest[0].comm, "\\x0a\\x22g\\x1b\\xff");
  assert_string_equal(s->largest[1].comm, "a\\x209\\x20GiB,\\x201\\x20init");
}

CAPTURING_TEST(a_capture_of_an_empty_group_has_no_members) {
  const struct summary *s;

  capturing_put(w, 10, "other", 100);
  capturing_group(w, "g");
  s = summary_of(w, "g");
  assert_true(s->has_pss);
  assert_int_equal(s->pss_bytes, 0);
  assert_int_equal(s->n, 0);
  assert_int_equal(parsed_count(capturing_document, "mappings"), 0);
  parsed_assert(capturing_document, "left_out=0 groups.0.processes=0");
}

static uint64_t limit_of(struct world *w, const char *limit) {
  struct fake f = fake_process(10, "g");

  f.cgroup = "/g.service";
  world_put(w, f);
  world_group(w, "unit", "Unit", "g.service", NULL, NULL);
  proctree_write(&w->tree, "sys/fs/cgroup/g.service/memory.current", "17\n", 3);
  proctree_write(&w->tree, "sys/fs/cgroup/g.service/memory.max", limit,
                 strlen(limit));
  return summary_of(w, "unit")->limit_bytes;
}

CAPTURING_TEST(a_summary_has_the_limit_of_the_control_group) {
  assert_int_equal(limit_of(w, "8388608\n"), 8 * MIB);
}

CAPTURING_TEST(summary_has_no_limit_if_there_is_none) {
  assert_int_equal(limit_of(w, "max\n"), 0);
}
