/* Rules at work on processes: who ends up in which group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <smaps/match.h>

#include "parsed.h"
#include "world.h"

/* How often an expression was held against a name. */
static unsigned regexecs;

int __real_regexec(const regex_t *, const char *, size_t, regmatch_t[], int);
int __wrap_regexec(const regex_t *, const char *, size_t, regmatch_t[], int);
int __wrap_regexec(const regex_t *regex, const char *text, size_t n,
                   regmatch_t match[], int flags) {
  regexecs++;
  return __real_regexec(regex, text, n, match, flags);
}

static int make(void **state) {
  static struct world w;

  world_make(&w);
  *state = &w;
  return 0;
}

static int unmake(void **state) {
  world_remove(*state);
  return 0;
}

/* A process of 100 kB. Start times follow the pids. */
static struct fake process(uint32_t pid, uint32_t ppid, const char *comm) {
  return (struct fake){.pid = pid,
                       .ppid = ppid,
                       .comm = comm,
                       .starttime = pid * 10,
                       .start_stack = 0x7ff000000000 + pid * 0x100000UL,
                       .private_kb = 100};
}

static void put(struct world *w, uint32_t pid, uint32_t ppid,
                const char *comm) {
  struct fake f = process(pid, ppid, comm);

  proctree_put(&w->tree, &f);
}

/* What it calls shows in its size. */
static void exec(struct world *w, uint32_t pid, uint32_t ppid,
                 const char *comm) {
  struct fake f = process(pid, ppid, comm);

  f.size = 999;
  proctree_put(&w->tree, &f);
}

#define HOUR 3600

static void put_in_unit(struct world *w, uint32_t pid, const char *cgroup,
                        unsigned uid) {
  struct fake f = {.pid = pid,
                   .ppid = 1,
                   .comm = "daemon",
                   .starttime = pid * 10,
                   .private_kb = 100,
                   .cgroup = cgroup,
                   .uid = uid};

  proctree_put(&w->tree, &f);
}

static void first_rule_that_matches_takes_the_process(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "one");
  put(w, 2, 1, "two");
  world_group(w, "a", "Comm", "o*", NULL, NULL);
  world_group(w, "b", "Comm", "*", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "a"), 1);
  assert_int_equal(world_members(w, "b"), 1);
}

static void ignored_processes_are_in_no_group_below(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "one");
  put(w, 2, 1, "two");
  world_group(w, NULL, "Comm", "one", NULL, NULL);
  world_group(w, "all", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "all"), 1);
  assert_int_equal(world_members(w, "rest"), 0);
}

static void other_takes_what_no_rule_has_taken(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "one");
  put(w, 2, 1, "two");
  world_group(w, "a", "Comm", "one", NULL, NULL);
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "rest"), 1);
}

static void without_other_the_rest_is_not_counted(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "one");
  put(w, 2, 1, "two");
  world_group(w, "a", "Comm", "one", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_groups(w), 1);
  assert_int_equal(collector_counts(w->collector)->processes, 2);
  assert_int_equal(collector_counts(w->collector)->matched, 1);
}

static void continue_offers_processes_to_the_rules_below(void **state) {
  struct world *w = *state;

  put_in_unit(w, 1, "/system.slice/web.service", 7);
  put_in_unit(w, 2, "/system.slice/db.service", 12345);
  put_in_unit(w, 3, "/user", 7);
  world_group(w, "user-%{user}", "User", "*", NULL, NULL)->is_view = true;
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "user-seven"), 2);
  assert_int_equal(world_members(w, "user-12345"), 1);
  assert_int_equal(world_members(w, "web.service"), 1);
  assert_int_equal(world_members(w, "db.service"), 1);
  /* A view takes nothing, so that services and the rest add up to all. */
  assert_int_equal(world_members(w, "rest"), 1);
}

static void two_rules_with_one_name_count_a_process_once(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "one");
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL)->is_view = true;
  world_group(w, "one", "Comm", "one", NULL, NULL);
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "one"), 1);
  assert_true(world_value(w, "one", "pss") == 100 * 1024);
}

static void
process_without_the_value_of_a_placeholder_is_passed_on(void **state) {
  struct world *w = *state;

  put_in_unit(w, 1, "/", 0);
  put_in_unit(w, 2, "/system.slice/db.service", 0);
  world_group(w, "unit-%{unit}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "unit-db.service"), 1);
  assert_int_equal(world_members(w, "rest"), 1);
}

static void children_take_in_all_descendants(void **state) {
  struct world *w = *state;

  put(w, 10, 1, "init");
  put(w, 20, 10, "server");
  put(w, 30, 20, "worker");
  put(w, 5, 30, "script"); /* a pid that has wrapped around */
  put(w, 40, 10, "worker");
  proctree_end(&w->tree, 5);
  proctree_put(&w->tree, &(struct fake){.pid = 5,
                                        .ppid = 30,
                                        .comm = "script",
                                        .starttime = 900,
                                        .private_kb = 100});
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "server"), 3);
  assert_int_equal(world_members(w, "rest"), 2);
}

static void descendants_are_named_after_their_ancestor(void **state) {
  struct world *w = *state;

  put(w, 20, 1, "server-a");
  put(w, 21, 1, "server-b");
  put(w, 30, 20, "worker");
  put(w, 31, 21, "worker");
  world_group(w, "%{1}", "CommMatch", "^server-(.)", NULL, NULL)
      ->takes_children = true;
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "a"), 2);
  assert_int_equal(world_members(w, "b"), 2);
}

static void rule_above_takes_a_child_and_not_its_children(void **state) {
  struct world *w = *state;

  put(w, 20, 1, "server");
  put(w, 30, 20, "shell");
  put(w, 40, 30, "worker");
  world_group(w, "shells", "Comm", "shell", NULL, NULL);
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "shells"), 1);
  assert_int_equal(world_members(w, "server"), 2);
}

static void ignore_with_children_ignores_descendants(void **state) {
  struct world *w = *state;

  put(w, 20, 1, "cron");
  put(w, 30, 20, "job");
  put(w, 31, 1, "job");
  world_group(w, NULL, "Comm", "cron", NULL, NULL)->takes_children = true;
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "rest"), 1);
}

static void orphan_stays_with_its_family(void **state) {
  struct world *w = *state;

  put(w, 20, 1, "server");
  put(w, 30, 20, "worker");
  world_group(w, "seen", "Comm", "renamed", NULL, NULL)->is_view = true;
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "server"), 2);
  proctree_end(&w->tree, 20);
  put(w, 30, 1, "worker");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "server"), 1);
  /* And when it execs, which its size shows. */
  proctree_put(&w->tree, &(struct fake){.pid = 30,
                                        .ppid = 1,
                                        .comm = "renamed",
                                        .starttime = 300,
                                        .size = 999,
                                        .private_kb = 100});
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "seen"), 1);
  assert_int_equal(world_members(w, "server"), 1);
  assert_int_equal(world_members(w, "rest"), 0);
}

static void what_matched_by_itself_leaves_when_it_execs(void **state) {
  struct world *w = *state;

  put(w, 20, 1, "server");
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  put(w, 20, 1, "something");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "server"), 0);
  assert_int_equal(world_members(w, "rest"), 1);
}

static void family_follows_when_an_ancestor_execs(void **state) {
  struct world *w = *state;

  put(w, 20, 1, "shell");
  put(w, 30, 20, "worker");
  put(w, 40, 30, "helper");
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "rest"), 3);
  put(w, 20, 1, "server");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "server"), 3);
  put(w, 20, 1, "shell");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "rest"), 3);
}

/* Every process its neighbour's parent, in a ring: no kernel shows that. */
static void ring_of_parents_ends(void **state) {
  struct world *w = *state;

  put(w, 20, 22, "a");
  put(w, 21, 20, "b");
  put(w, 22, 21, "server");
  for (uint32_t pid = 20; pid <= 22; pid++)
    proctree_put(&w->tree, &(struct fake){.pid = pid,
                                          .ppid = pid == 20 ? 22 : pid - 1,
                                          .comm = pid == 22 ? "server" : "x",
                                          .starttime = 500,
                                          .private_kb = 4});
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  assert_int_equal(world_cycle(w, 0), 0);
  assert_true(world_members(w, "server") >= 1);
}

static void long_line_of_descendants_needs_no_deep_stack(void **state) {
  struct world *w = *state;

  for (uint32_t pid = 2; pid < 3000; pid++)
    put(w, pid, pid - 1, pid == 2 ? "server" : "worker");
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "server"), 2998);
}

static void max_groups_sends_the_rest_to_other(void **state) {
  struct world *w = *state;
  char comm[16];

  for (uint32_t pid = 1; pid <= 10; pid++) {
    snprintf(comm, sizeof(comm), "c%u", (pid + 1) / 2);
    put(w, pid, 0, comm);
  }
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  w->settings.max_groups = 3;
  for (int cycle = 0; cycle < 3; cycle++) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(world_members(w, "c1"), 2);
    assert_int_equal(world_members(w, "c3"), 2);
    assert_int_equal(world_members(w, "rest"), 4);
    assert_int_equal(collector_counts(w->collector)->groups_refused, 2);
  }
}

static void refused_group_gets_the_place_of_one_that_goes(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "a");
  put(w, 2, 0, "b");
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  w->settings.max_groups = 1;
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "rest"), 1);
  proctree_end(&w->tree, 1);
  assert_int_equal(world_cycle(w, HOUR), 0);
  assert_null(world_find(w, "a"));
  assert_int_equal(world_members(w, "b"), 1);
  assert_int_equal(world_members(w, "rest"), 0);
  assert_int_equal(collector_counts(w->collector)->groups_refused, 0);
}

/* Whose place it is shows before or behind them, or when they were matched
 * already; where two wait, one of the names gets all of its own. */
static void all_of_a_name_get_the_place_that_comes_free(void **state) {
  static const struct {
    uint32_t holder;
    bool ends;
  } cases[] = {{1, true}, {5, true}, {99, true}, {5, false}, {99, false}};
  struct world *w = *state;

  world_group(w, NULL, "Comm", "gone", NULL, NULL);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  w->settings.max_groups = 1;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    for (uint32_t pid = 1; pid < 100; pid++)
      proctree_end(&w->tree, pid);
    put(w, cases[i].holder, 0, "a");
    assert_int_equal(world_cycle(w, HOUR), 0);
    for (uint32_t pid = 2; pid < 10; pid += 2)
      put(w, pid, 0, "b");
    put(w, 11, 0, "c");
    assert_int_equal(world_cycle(w, HOUR), 0);
    assert_int_equal(world_members(w, "a"), 1);
    assert_int_equal(world_members(w, "rest"), 5);
    if (cases[i].ends)
      proctree_end(&w->tree, cases[i].holder);
    else
      exec(w, cases[i].holder, 0, "gone");
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(world_members(w, "b"), 4);
    assert_int_equal(world_members(w, "rest"), 1);
    assert_int_equal(collector_counts(w->collector)->groups_refused, 1);
  }
}

/* By a view and by its service, of which the view comes to exist behind it. */
static void who_is_refused_twice_gets_into_what_there_is(void **state) {
  struct world *w = *state;

  world_group(w, NULL, "Comm", "gone", NULL, NULL);
  world_group(w, "%{user}", "User", "*", NULL, NULL)->is_view = true;
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  world_other(w, "rest");
  w->settings.max_groups = 4;
  put_in_unit(w, 10, "/a.service", 1);
  put_in_unit(w, 11, "/b.service", 2);
  put_in_unit(w, 12, "/b.service", 1);
  assert_int_equal(world_cycle(w, 1), 0);
  put_in_unit(w, 5, "/d.service", 3);
  put_in_unit(w, 13, "/b.service", 3);
  assert_int_equal(world_cycle(w, HOUR), 0);
  assert_int_equal(world_members(w, "b.service"), 3);
  assert_int_equal(world_members(w, "rest"), 1);
  assert_int_equal(collector_counts(w->collector)->groups_refused, 2);
  exec(w, 10, 1, "gone");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_null(world_find(w, "a.service"));
  assert_int_equal(world_members(w, "3"), 2);
  assert_int_equal(world_members(w, "rest"), 1);
  assert_int_equal(collector_counts(w->collector)->groups_refused, 1);
}

static void
view_that_is_refused_leaves_the_process_to_its_service(void **state) {
  struct world *w = *state;

  put_in_unit(w, 1, "/system.slice/web.service", 7);
  put_in_unit(w, 2, "/system.slice/web.service", 8);
  world_group(w, "user-%{user}", "User", "*", NULL, NULL)->is_view = true;
  world_group(w, "web", "Unit", "web.service", NULL, NULL);
  world_other(w, "rest");
  w->settings.max_groups = 1;
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "user-seven"), 1);
  assert_int_equal(world_members(w, "web"), 2);
  assert_int_equal(world_members(w, "rest"), 0);
}

static void pid_file_is_followed(void **state) {
  struct world *w = *state;
  char path[128];

  put(w, 20, 1, "server");
  put(w, 30, 20, "worker");
  put(w, 21, 1, "server");
  snprintf(path, sizeof(path), "%s/run/server.pid", w->tree.root);
  world_group(w, "server", "PidFile", path, NULL, NULL)->takes_children = true;
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "server"), 0);
  proctree_write(&w->tree, "run/server.pid", "20\n", 3);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "server"), 2);
  proctree_write(&w->tree, "run/server.pid", "21\n", 3);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "server"), 1);
  assert_int_equal(world_members(w, "rest"), 2);
  unlink(path);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "server"), 0);
}

static void names_of_any_bytes_make_one_safe_group_each(void **state) {
  static const struct {
    const char *comm, *group;
  } rows[] = {{"a) R 1 1 (b", "a) R 1 1 (b"},
              {"new\nline", "new\\x0aline"},
              {"\xff\xfe", "\\xff\\xfe"},
              {"a/b", "a_b"}};
  struct world *w = *state;

  for (uint32_t i = 0; i < 4; i++)
    put(w, i + 1, 0, rows[i].comm);
  put(w, 9, 0, "");
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_other(w, "nameless");
  assert_int_equal(world_cycle(w, 0), 0);
  for (uint32_t i = 0; i < 4; i++)
    assert_int_equal(world_members(w, rows[i].group), 1);
  assert_int_equal(world_members(w, "nameless"), 1);
}

/* --- why ------------------------------------------------------------------ */

/* Runs a cycle and asserts of a process: the rule that took it, with a '+'
 * behind it where that was inherited, then the others that would have. */
static void assert_explained(struct world *w, uint32_t pid, const char *why) {
  size_t n = world_n_written(), len = 0;
  char text[256] = "-";
  parsed d, p = NULL;

  if (!w->collector) {
    world_keep_state(w);
    w->settings.state_interval_ns = 0;
  }
  assert_int_equal(world_cycle(w, 1), 0);
  d = parsed_file(world_written(n)->path);
  for (size_t i = 0; !p && i < parsed_count(d, "processes"); i++) {
    char path[32];

    snprintf(path, sizeof(path), "processes.%zu", i);
    if (parsed_integer(parsed_get(d, path), "pid") == pid)
      p = parsed_get(d, path);
  }
  if (parsed_get(p, "rule"))
    snprintf(text, sizeof(text), "%u%s", (unsigned)parsed_integer(p, "rule"),
             parsed_get(p, "inherited") ? "+" : "");
  len = strlen(text);
  for (size_t i = 0; i < parsed_count(p, "also"); i++) {
    char path[32];

    snprintf(path, sizeof(path), "also.%zu", i);
    len += (size_t)snprintf(text + len, sizeof(text) - len, " %u",
                            (unsigned)parsed_integer(p, path));
  }
  parsed_free(d);
  assert_string_equal(text, why);
}

static void rule_that_took_it_is_told_and_those_that_would_have(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "one");
  put(w, 2, 0, "two");
  put(w, 3, 0, "none");
  world_group(w, "a", "Comm", "o*", NULL, NULL);
  world_group(w, "b", "Comm", "two", NULL, NULL);
  world_group(w, NULL, "Comm", "*o*", NULL, NULL);
  world_group(w, "d", "Comm", "one", NULL, NULL);
  assert_explained(w, 1, "0 2 3");
  assert_explained(w, 2, "1 2");
  assert_explained(w, 3, "2");
}

static void other_is_the_rule_behind_the_last(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "one");
  put(w, 2, 0, "two");
  world_group(w, "a", "Comm", "one", NULL, NULL);
  world_other(w, "rest");
  assert_explained(w, 1, "0");
  assert_explained(w, 2, "1");
}

static void without_a_rule_there_is_none_to_tell(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "one");
  world_group(w, "a", "Comm", "x", NULL, NULL);
  assert_explained(w, 1, "-");
}

static void views_are_told_with_the_others(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "one");
  world_group(w, "v", "Comm", "*", NULL, NULL)->is_view = true;
  world_group(w, "a", "Comm", "one", NULL, NULL);
  world_group(w, "u", "Comm", "*", NULL, NULL)->is_view = true;
  assert_explained(w, 1, "1 0 2");
}

static void what_is_inherited_is_told(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "one");
  put(w, 2, 1, "two");
  put(w, 3, 2, "one");
  put(w, 4, 0, "gone");
  put(w, 5, 4, "x");
  world_group(w, "a", "Comm", "one", NULL, NULL)->takes_children = true;
  world_group(w, NULL, "Comm", "gone", NULL, NULL)->takes_children = true;
  world_group(w, "b", "Comm", "t*", NULL, NULL);
  assert_explained(w, 1, "0");
  assert_explained(w, 2, "0+ 2");
  assert_explained(w, 3, "0"); /* it is one by itself too */
  assert_explained(w, 5, "1+");
}

/* It would have, but for MaxGroups, or for want of a name. */
static void rule_that_came_to_nothing_did_not_take_it(void **state) {
  struct world *w = *state;

  w->settings.max_groups = 1;
  put(w, 1, 0, "one");
  put(w, 2, 0, "two");
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_group(w, "%{container}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  assert_explained(w, 1, "0");
  assert_explained(w, 2, "2 0");
}

static void no_more_are_told_than_there_is_room_for(void **state) {
  char why[256] = "0";
  struct world *w = *state;

  put(w, 1, 0, "one");
  for (int i = 0; i < EXPLAIN_MAX + 5; i++) {
    char name[16];

    snprintf(name, sizeof(name), "g%d", i);
    world_group(w, name, "Comm", "*", NULL, NULL);
    if (i > 0 && i <= EXPLAIN_MAX)
      snprintf(why + strlen(why), sizeof(why) - strlen(why), " %d", i);
  }
  assert_explained(w, 1, why);
}

/* NAMES_PER_CYCLE processes that nobody has seen, under names likewise. */
#define NAMES_PER_CYCLE 50
#define NAME_CYCLES 40

static void rename_all(struct world *w, unsigned cycle) {
  for (unsigned i = 0; i < NAMES_PER_CYCLE; i++) {
    char path[32], text[256], comm[16];
    unsigned long start = 1000 + cycle;
    int n = snprintf(comm, sizeof(comm), "n%u", cycle * NAMES_PER_CYCLE + i);

    snprintf(path, sizeof(path), "%u/comm", 100 + i);
    text[0] = '\0';
    proctree_write(&w->tree, path, strcat(strcat(text, comm), "\n"),
                   (size_t)n + 1);
    snprintf(path, sizeof(path), "%u/stat", 100 + i);
    n = snprintf(text, sizeof(text),
                 "%u (%s) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %lu 0 0 0 0 "
                 "0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
                 100 + i, comm, start);
    proctree_write(&w->tree, path, text, (size_t)n);
  }
}

/* What has come and gone leaves nothing behind, however many names that were.
 */
static void any_number_of_names_takes_bounded_memory(void **state) {
  struct world *w = *state;
  size_t before = 0;

  w->settings.max_groups = 20;
  for (uint32_t i = 0; i < NAMES_PER_CYCLE; i++)
    put(w, 100 + i, 1, "first");
  world_group(w, "of-%{comm}", "Comm", "n*", NULL, NULL);
  world_other(w, "rest");
  for (unsigned cycle = 1; cycle <= NAME_CYCLES; cycle++) {
    rename_all(w, cycle);
    assert_int_equal(world_cycle(w, HOUR), 0);
    assert_int_equal(world_groups(w), 20 + 1);
    assert_int_equal(world_members(w, "rest"), NAMES_PER_CYCLE - 20);
    assert_int_equal(collector_counts(w->collector)->groups_refused,
                     NAMES_PER_CYCLE - 20);
    if (cycle == NAME_CYCLES / 10)
      before = mallinfo2().uordblks;
  }
  /* Nothing is counted with an allocator that is not the C library's. */
  assert_in_range(mallinfo2().uordblks, 0, before + 16 * 1024);
}

#define DAYS 2
#define INTERVAL 1200
#define FORGED (DAYS * 86400 / INTERVAL * NAMES_PER_CYCLE)

static void forged_names_make_so_many_groups_an_hour(void **state) {
  static bool has_been[FORGED + 1];
  struct world *w = *state;
  const struct group *g;
  unsigned made = 0, granted = 0;
  uint64_t count;

  w->settings.max_groups = 20;
  w->settings.policy.refresh = REFRESH_NEVER;
  for (uint32_t i = 0; i < NAMES_PER_CYCLE; i++)
    put(w, 100 + i, 1, "first");
  world_group(w, "%{comm}", "Comm", "n*", NULL, NULL);
  world_other(w, "rest");
  for (unsigned cycle = 0; cycle < FORGED / NAMES_PER_CYCLE; cycle++) {
    size_t cursor = 0;

    rename_all(w, cycle);
    assert_int_equal(world_cycle(w, INTERVAL), 0);
    granted = 0;
    while ((g = collector_next_group(w->collector, &cursor)))
      if (g->name[0] == 'n') {
        made += !has_been[atoi(g->name + 1)];
        granted++;
        has_been[atoi(g->name + 1)] = true;
      }
    count = collector_counts(w->collector)->groups_refused;
    assert_int_equal(count + granted, NAMES_PER_CYCLE);
    assert_int_equal(world_members(w, "rest"), NAMES_PER_CYCLE - granted);
  }
  /* The first ones, those that one hour may have at once, and each hour's. */
  assert_in_range(made, 20, 20 * (2 + DAYS * 24));
  /* Those that stay come in, as there is room. */
  assert_int_equal(collector_trouble(w->collector, TROUBLE_NAME_REFUSED)->count,
                   NAMES_PER_CYCLE - granted);
  assert_int_equal(collector_trouble(w->collector, TROUBLE_NAME_REFUSED)->limit,
                   20);
  assert_int_equal(world_cycle(w, HOUR), 0);
  assert_int_equal(world_groups(w), 20 + 1);
}

/* Beside processes of lower pids that live for an interval and have ever new
 * names: it waits for what an hour has for one name, and not for ever. */
static void a_service_is_let_in_before_newcomers(void **state) {
  struct world *w = *state;
  uint32_t name = 0;

  w->settings.max_groups = 4;
  w->settings.policy.refresh = REFRESH_NEVER;
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  for (int cycle = 0; cycle < 60; cycle++) {
    uint32_t first = 10 + 2 * (uint32_t)(cycle % 20);

    for (uint32_t i = 0; i < 2; i++) {
      char comm[16];

      snprintf(comm, sizeof(comm), "n%u", name++);
      put(w, first + i, 1, comm);
    }
    if (cycle == 20)
      put(w, 5000, 1, "service");
    assert_int_equal(world_cycle(w, HOUR / 12), 0);
    proctree_end(&w->tree, first);
    proctree_end(&w->tree, first + 1);
    put(w, 1, 1, "init");
    if (cycle >= 20 && world_members(w, "service") == 1)
      return;
  }
  fail_msg("it was not let in for %d hours", 40 / 12);
}

#define UNITS 150

/* All at once, or one after the other, each day; and new ones now and then. */
static void units_that_restart_each_day_are_never_refused(void **state) {
  struct world *w = *state;
  bool is_down[UNITS];

  w->settings.policy.refresh = REFRESH_NEVER;
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  world_other(w, "rest");
  memset(is_down, true, sizeof(is_down));
  for (uint32_t hour = 0; hour < 3 * 24; hour++) {
    char unit[64];

    for (uint32_t i = 0; i < UNITS; i++) {
      bool restarts = hour % 24 == 3 || (hour > 0 && hour % 24 == i % 24);

      snprintf(unit, sizeof(unit), "/u%u.service", i);
      if (is_down[i])
        put_in_unit(w, 10 + i, unit, 0);
      else if (restarts)
        proctree_end(&w->tree, 10 + i);
      is_down[i] = !is_down[i] && restarts;
    }
    snprintf(unit, sizeof(unit), "/run-%u.service", hour);
    put_in_unit(w, 1000, unit, 0);
    assert_int_equal(world_cycle(w, HOUR), 0);
    assert_int_equal(collector_counts(w->collector)->groups_refused, 0);
    assert_int_equal(world_members(w, "rest"), 0);
  }
}

/* --- what it takes --------------------------------------------------------
 */

/* A command line of more than ORDINARY_MAX bytes. */
static void put_long(struct world *w, uint32_t pid, uint32_t ppid,
                     const char *comm) {
  struct fake f = process(pid, ppid, comm);
  char line[ORDINARY_MAX + 2];

  memset(line, 'x', sizeof(line) - 1);
  line[sizeof(line) - 1] = '\0';
  f.cmdline = line;
  f.size = 2000 + (unsigned char)*comm; /* by which an exec shows */
  proctree_put(&w->tree, &f);
}

static unsigned unidentified(const struct world *w) {
  return (unsigned)collector_counts(w->collector)->unidentified;
}

/* What waits is not known, and nobody waits for ever: not even if others come
 * in front of it in each cycle. */
static void long_names_are_matched_behind_all_others(void **state) {
  struct world *w = *state;
  unsigned cycles = 0;

  w->settings.policy.refresh = REFRESH_NEVER;
  world_group(w, "%{comm}", "CommandLineMatch", "x*", "Comm", "waiting");
  world_group(w, "new", "CommandLineMatch", "x*", "Comm", "new");
  world_group(w, "ordinary", "CommandLineMatch", "^o", NULL, NULL);
  world_group(w, "none", "CommandLineMatch", "none", NULL, NULL);
  world_other(w, "rest");
  for (uint32_t i = 0; i < 10; i++) {
    put_long(w, 500 + i, 1, "waiting");
    put(w, 900 + i, 1, "ordinary");
  }
  world_tick(MATCH_BUDGET_NS / 20); /* which takes half of what there is */
  do {
    for (uint32_t i = 0; i < 15; i++)
      put_long(w, 10 + cycles * 15 + i, 1, "new");
    assert_int_equal(world_cycle(w, 1), 0);
    cycles++;
    assert_int_equal(world_members(w, "ordinary"), 10);
    assert_true(world_members(w, "waiting") + world_members(w, "new") >= 1);
    assert_int_equal(world_members(w, "waiting") + world_members(w, "new") +
                         unidentified(w),
                     10 + cycles * 15);
    assert_int_equal(world_members(w, "rest"), 0);
    assert_true(unidentified(w) > 0);
    assert_true(isnan(world_value(w, "none", "ps_count")));
    assert_int_equal(
        collector_trouble(w->collector, TROUBLE_MATCH_PUT_OFF)->count,
        unidentified(w));
    assert_in_range(cycles, 1, 5);
  } while (world_members(w, "waiting") < 10);
  while (unidentified(w) > 0) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_in_range(++cycles, 1, 20);
  }
  assert_true(world_value(w, "none", "ps_count") == 0);
}

/* One match takes more than all may. */
static void one_at_least_is_matched_in_each_cycle(void **state) {
  struct world *w = *state;

  w->settings.policy.refresh = REFRESH_NEVER;
  world_group(w, "g", "CommandLine", "x*", NULL, NULL);
  world_other(w, "rest");
  for (uint32_t i = 0; i < 5; i++)
    put_long(w, 10 + i, 1, "x");
  world_tick(2 * MATCH_BUDGET_NS);
  for (uint32_t i = 1; i <= 5; i++) {
    assert_int_equal(world_cycle(w, 1), 0);
    assert_int_equal(unidentified(w), 5 - i);
    assert_int_equal(world_groups(w), 2);
  }
  assert_true(world_value(w, "g", "ps_count") == 5);
}

/* A name has changed, by which it may have left. */
static void who_is_matched_anew_counts_where_it_was(void **state) {
  struct world *w = *state;

  world_group(w, "%{comm}", "CommandLine", "x*", "Comm", "?");
  put_long(w, 90, 1, "a");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_true(world_value(w, "a", "pss") == 100 * 1024);
  put_long(w, 90, 1, "b");
  for (uint32_t i = 0; i < 10; i++)
    put_long(w, 10 + i, 1, "n");
  world_tick(2 * MATCH_BUDGET_NS);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_true(world_value(w, "a", "ps_count") == 1);
  assert_true(isnan(world_value(w, "a", "pss")));
  assert_int_equal(unidentified(w), 10);
  world_tick(WORLD_TICK_NS);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_null(world_find(w, "a"));
  assert_true(world_value(w, "b", "pss") == 100 * 1024);
}

/* It inherits what its parent is not known to have yet. */
static void descendants_of_one_that_waits_wait_with_it(void **state) {
  struct world *w = *state;

  w->settings.policy.refresh = REFRESH_NEVER;
  world_group(w, "server", "CommandLine", "x*", "Comm", "server")
      ->takes_children = true;
  world_other(w, "rest");
  for (uint32_t i = 0; i < 5; i++)
    put_long(w, 10 + i, 1, "n");
  put_long(w, 20, 1, "server");
  put(w, 30, 20, "worker");
  put(w, 31, 30, "helper");
  world_tick(MATCH_BUDGET_NS);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "rest"), 1);
  assert_int_equal(unidentified(w), 7);
  assert_true(isnan(world_value(w, "server", "ps_count")));
  world_tick(WORLD_TICK_NS);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "server"), 3);
  assert_int_equal(world_members(w, "rest"), 5);
}

/* Who is long comes behind its family, which follows in the same cycle. */
static void family_follows_an_ancestor_of_long_names(void **state) {
  struct world *w = *state;

  put(w, 20, 1, "shell");
  put(w, 30, 20, "worker");
  put_long(w, 40, 30, "helper");
  world_group(w, "server", "Comm", "server", "CommandLine", "*")
      ->takes_children = true;
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 0), 0);
  assert_int_equal(world_members(w, "rest"), 3);
  put_long(w, 20, 1, "server");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "server"), 3);
}

/* In the cycle in which it was to follow. */
static void who_cannot_be_looked_at_follows_later(void **state) {
  struct world *w = *state;

  put(w, 20, 1, "shell");
  put(w, 30, 20, "worker");
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_other(w, "rest");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_cycle(w, 1), 0);
  exec(w, 20, 1, "server");
  proctree_write(&w->tree, "30/statm", "x\n", 2);
  proctree_write(&w->tree, "30/stat", "x\n", 2);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "server"), 1);
  put(w, 30, 20, "worker");
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "server"), 2);
}

/* Which may be a quarter of a second for each of many. */
static void writing_the_state_matches_nothing(void **state) {
  struct world *w = *state;

  world_group(w, "a", "CommMatch", "o", NULL, NULL);
  world_group(w, "b", "CommMatch", "n", NULL, NULL);
  put(w, 1, 0, "one");
  put(w, 2, 0, "nil");
  assert_explained(w, 1, "0 1");
  assert_explained(w, 2, "1");
  regexecs = 0;
  assert_explained(w, 1, "0 1");
  assert_int_equal(regexecs, 0);
}

/* It is in a group, but that is not Other. */
static void who_is_in_a_view_alone_was_taken_by_none(void **state) {
  struct world *w = *state;

  put(w, 1, 0, "one");
  world_group(w, "v", "Comm", "one", NULL, NULL)->is_view = true;
  assert_explained(w, 1, "- 0");
  assert_int_equal(world_members(w, "v"), 1);
}

/* It has one claim before and one after: by another rule, or for another
 * group. */
static void descendants_follow_from_claim_to_claim(void **state) {
  static const char *const comms[] = {"a", "b", "cc", "dd", "a"};
  struct world *w = *state;

  put(w, 20, 1, "x");
  put(w, 30, 20, "worker");
  put(w, 40, 30, "helper");
  world_group(w, "a", "Comm", "a", NULL, NULL)->takes_children = true;
  world_group(w, "b", "Comm", "b", NULL, NULL)->takes_children = true;
  world_group(w, "%{comm}", "Comm", "??", NULL, NULL)->takes_children = true;
  for (size_t i = 0; i < sizeof(comms) / sizeof(comms[0]); i++) {
    put(w, 20, 1, comms[i]);
    assert_int_equal(world_cycle(w, 1), 0);
    if (world_members(w, comms[i]) != 3)
      fail_msg("%s has %u", comms[i], world_members(w, comms[i]));
  }
}

static unsigned reads(const struct world *w) {
  return (unsigned)collector_counts(w->collector)->rollup_reads;
}

/* Others may have come to share with it meanwhile, or gone. */
static void who_was_in_no_group_for_a_while_is_read_anew(void **state) {
  struct world *w = *state;
  char path[128];

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  put(w, 20, 1, "server");
  snprintf(path, sizeof(path), "%s/x.pid", w->tree.root);
  proctree_write(&w->tree, "x.pid", "20\n", 3);
  world_group(w, "g", "PidFile", path, NULL, NULL);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 1);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(reads(w), 0);
  proctree_write(&w->tree, "x.pid", "99\n", 3);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "g"), 0);
  proctree_write(&w->tree, "x.pid", "20\n", 3);
  assert_int_equal(world_cycle(w, 1), 0);
  assert_int_equal(world_members(w, "g"), 1);
  assert_int_equal(reads(w), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(first_rule_that_matches_takes_the_process),
      TEST(ignored_processes_are_in_no_group_below),
      TEST(other_takes_what_no_rule_has_taken),
      TEST(without_other_the_rest_is_not_counted),
      TEST(continue_offers_processes_to_the_rules_below),
      TEST(two_rules_with_one_name_count_a_process_once),
      TEST(process_without_the_value_of_a_placeholder_is_passed_on),
      TEST(children_take_in_all_descendants),
      TEST(descendants_are_named_after_their_ancestor),
      TEST(rule_above_takes_a_child_and_not_its_children),
      TEST(ignore_with_children_ignores_descendants),
      TEST(orphan_stays_with_its_family),
      TEST(what_matched_by_itself_leaves_when_it_execs),
      TEST(family_follows_when_an_ancestor_execs),
      TEST(ring_of_parents_ends),
      TEST(long_line_of_descendants_needs_no_deep_stack),
      TEST(max_groups_sends_the_rest_to_other),
      TEST(refused_group_gets_the_place_of_one_that_goes),
      TEST(all_of_a_name_get_the_place_that_comes_free),
      TEST(who_is_refused_twice_gets_into_what_there_is),
      TEST(view_that_is_refused_leaves_the_process_to_its_service),
      TEST(pid_file_is_followed),
      TEST(names_of_any_bytes_make_one_safe_group_each),
      TEST(rule_that_took_it_is_told_and_those_that_would_have),
      TEST(other_is_the_rule_behind_the_last),
      TEST(without_a_rule_there_is_none_to_tell),
      TEST(views_are_told_with_the_others),
      TEST(what_is_inherited_is_told),
      TEST(rule_that_came_to_nothing_did_not_take_it),
      TEST(no_more_are_told_than_there_is_room_for),
      TEST(any_number_of_names_takes_bounded_memory),
      TEST(forged_names_make_so_many_groups_an_hour),
      TEST(a_service_is_let_in_before_newcomers),
      TEST(units_that_restart_each_day_are_never_refused),
      TEST(long_names_are_matched_behind_all_others),
      TEST(one_at_least_is_matched_in_each_cycle),
      TEST(who_is_matched_anew_counts_where_it_was),
      TEST(descendants_of_one_that_waits_wait_with_it),
      TEST(family_follows_an_ancestor_of_long_names),
      TEST(who_cannot_be_looked_at_follows_later),
      TEST(writing_the_state_matches_nothing),
      TEST(who_is_in_a_view_alone_was_taken_by_none),
      TEST(descendants_follow_from_claim_to_claim),
      TEST(who_was_in_no_group_for_a_while_is_read_anew),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
