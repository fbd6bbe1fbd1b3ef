/* SPDX-License-Identifier: MIT */
/* Rules at work on processes: who ends up in which group. */
#include "test.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "match/match.h"

#include "parsed.h"
#include "world.h"

/* How often an expression was compared with a name and a pattern with a long
 * one, and how long either takes, and with a long name. */
static unsigned regexecs, long_names;
static uint64_t regexec_ns, long_name_ns;

static void pass_time(const char *text) {
  if (strlen(text) <= ORDINARY_MAX)
    return;
  long_names++;
  world_pass(long_name_ns);
}

int __real_regexec(const regex_t *, const char *, size_t, regmatch_t[], int);
int __wrap_regexec(const regex_t *, const char *, size_t, regmatch_t[], int);
int __wrap_regexec(const regex_t *regex, const char *text, size_t n,
                   regmatch_t match[], int flags) {
  regexecs++;
  world_pass(regexec_ns);
  pass_time(text);
  return __real_regexec(regex, text, n, match, flags);
}

int __real_fnmatch(const char *, const char *, int);
int __wrap_fnmatch(const char *, const char *, int);
int __wrap_fnmatch(const char *pattern, const char *text, int flags) {
  pass_time(text);
  return __real_fnmatch(pattern, text, flags);
}

static int make(void **state) {
  regexec_ns = long_name_ns = 0;
  return world_setup(state);
}

#define WORLD_TEST(name) TEST_WITH(name, make, world_teardown, struct world *w)

/* Returns a process of 100 kB. Start times follow the pids. */
static struct fake named(uint32_t pid, uint32_t ppid, const char *comm) {
  struct fake f = fake_process(pid, comm);

  f.ppid = ppid;
  f.starttime = pid * 10;
  f.private_kb = 100;
  return f;
}

static void put(struct world *w, uint32_t pid, uint32_t ppid,
                const char *comm) {
  world_put(w, named(pid, ppid, comm));
}

/* Writes several: Puts processes, written as "pid ppid comm, ...". */
static void put_all(struct world *w, const char *processes) {
  unsigned pid, ppid;
  char comm[16];
  int len;

  for (; sscanf(processes, "%u %u %15[^,]%n", &pid, &ppid, comm, &len) == 3;
       processes += processes[len] ? len + 1 : len)
    put(w, pid, ppid, comm);
  assert_string_equal(processes, "");
}

/* Writes one that has called exec: the program shows in its size. */
static void exec(struct world *w, uint32_t pid, uint32_t ppid,
                 const char *comm) {
  struct fake f = named(pid, ppid, comm);

  f.size = 999;
  world_put(w, f);
}

/* Adds rules for servers with their descendants, and for the rest. */
static void group_servers(struct world *w) {
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_other(w, "rest");
}

/* How many processes wait to be matched, after the last cycle. */
static unsigned unidentified(const struct world *w) {
  return (unsigned)world_counts(w)->unidentified;
}

/* Writes a process that started then. */
static void put_started(struct world *w, uint32_t pid, uint32_t ppid,
                        const char *comm, unsigned long start) {
  struct fake f = named(pid, ppid, comm);

  f.starttime = start;
  world_put(w, f);
}

WORLD_TEST(without_other_the_rest_is_not_counted) {
  put_all(w, "1 0 one, 2 1 two");
  world_group(w, "a", "Comm", "one", NULL, NULL);
  world_run(w, 0);
  assert_int_equal(world_groups(w), 1);
  assert_int_equal(world_counts(w)->processes, 2);
  assert_int_equal(world_counts(w)->matched, 1);
}

WORLD_TEST(children_take_in_all_descendants) {
  put_all(w, "10 1 init, 20 10 server, 30 20 worker");
  put(w, 40, 10, "worker");
  put_started(w, 5, 30, "script", 900); /* a pid that has wrapped around */
  group_servers(w);
  world_run(w, 0);
  world_assert_members(w, "server=3 rest=2");
}

WORLD_TEST(rule_above_takes_a_child_and_not_its_children) {
  put_all(w, "20 1 server, 30 20 shell, 40 30 worker");
  world_group(w, "shells", "Comm", "shell", NULL, NULL);
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_run(w, 0);
  world_assert_members(w, "shells=1 server=2");
}

/* Nor does it take them from the family. */
WORLD_TEST(child_that_a_rule_above_had_taken_returns_to_its_family) {
  put_all(w, "20 1 server, 30 20 shell, 40 30 worker");
  world_group(w, "shells", "Comm", "shell", NULL, NULL);
  group_servers(w);
  world_run(w, 0);
  proctree_end(&w->tree, 20);
  put(w, 30, 1, "shell");
  world_run(w, 1);
  world_assert_members(w, "shells=1 server=1");
  exec(w, 30, 1, "renamed");
  world_run(w, 1);
  world_assert_members(w, "shells=0 server=2 rest=0");
}

WORLD_TEST(two_rules_of_a_name_count_a_process_once) {
  put(w, 1, 0, "one");
  world_group(w, "%{comm}", "Comm", "o*", NULL, NULL)->is_view = true;
  world_group(w, "%{comm}", "Comm", "*e", NULL, NULL);
  world_expect(w, 1, "one", "ps_count=1 pss=100k");
}

WORLD_TEST(orphan_stays_with_its_family) {
  put_all(w, "20 1 server, 30 20 worker");
  world_group(w, "seen", "Comm", "renamed", NULL, NULL)->is_view = true;
  group_servers(w);
  world_run(w, 0);
  assert_int_equal(world_members(w, "server"), 2);
  proctree_end(&w->tree, 20);
  put(w, 30, 1, "worker");
  world_run(w, 1);
  assert_int_equal(world_members(w, "server"), 1);
  /* And when it execs, which its size shows. */
  exec(w, 30, 1, "renamed");
  world_run(w, 1);
  world_assert_members(w, "seen=1 server=1 rest=0");
}

WORLD_TEST(family_follows_when_an_ancestor_execs) {
  put_all(w, "20 1 shell, 30 20 worker, 40 30 helper");
  group_servers(w);
  world_run(w, 0);
  assert_int_equal(world_members(w, "rest"), 3);
  put(w, 20, 1, "server");
  world_run(w, 1);
  assert_int_equal(world_members(w, "server"), 3);
  put(w, 20, 1, "shell");
  world_run(w, 1);
  assert_int_equal(world_members(w, "rest"), 3);
}

/* Every process its neighbour's parent, in a ring: no kernel shows that. */
WORLD_TEST(ring_of_parents_ends) {
  put_all(w, "20 22 a, 21 20 b, 22 21 server");
  for (uint32_t pid = 20; pid <= 22; pid++)
    put_started(w, pid, pid == 20 ? 22 : pid - 1, pid == 22 ? "server" : "x",
                500);
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_run(w, 0);
  assert_true(world_members(w, "server") >= 1);
}

WORLD_TEST(long_line_of_descendants_needs_no_deep_stack) {
  for (uint32_t pid = 2; pid < 3000; pid++)
    put(w, pid, pid - 1, pid == 2 ? "server" : "worker");
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_run(w, 0);
  assert_int_equal(world_members(w, "server"), 2998);
}

/* In the cycle in which it was to follow. */
WORLD_TEST(process_that_cannot_be_inspected_follows_later) {
  put_all(w, "20 1 shell, 30 20 worker");
  group_servers(w);
  world_run(w, 1);
  world_run(w, 1);
  exec(w, 20, 1, "server");
  proctree_write(&w->tree, "30/statm", "x\n", 2);
  proctree_write(&w->tree, "30/stat", "x\n", 2);
  world_run(w, 1);
  assert_int_equal(world_members(w, "server"), 1);
  put(w, 30, 20, "worker");
  world_run(w, 1);
  assert_int_equal(world_members(w, "server"), 2);
}

/* It has one claim before and one after: by another rule, or for another
 * group. */
WORLD_TEST(descendants_follow_from_claim_to_claim) {
  static const char *const comms[] = {"a", "b", "cc", "dd", "a"};

  put_all(w, "20 1 x, 30 20 worker, 40 30 helper");
  world_group(w, "a", "Comm", "a", NULL, NULL)->takes_children = true;
  world_group(w, "b", "Comm", "b", NULL, NULL)->takes_children = true;
  world_group(w, "%{comm}", "Comm", "??", NULL, NULL)->takes_children = true;
  for (size_t i = 0; i < LENGTH(comms); i++) {
    put(w, 20, 1, comms[i]);
    world_run(w, 1);
    if (world_members(w, comms[i]) != 3)
      fail_msg("%s has %u", comms[i], world_members(w, comms[i]));
  }
}

/* Claims hold it, too, and are given up with the processes that had them. */
WORLD_TEST(a_claimed_group_gives_up_its_place) {
  w->settings.max_groups = 1;
  put_all(w, "1 0 init, 20 1 aa, 30 20 worker");
  world_group(w, "%{comm}", "Comm", "??", NULL, NULL)->takes_children = true;
  world_run(w, 1);
  assert_int_equal(world_members(w, "aa"), 2);
  proctree_end(&w->tree, 20);
  proctree_end(&w->tree, 30);
  world_run(w, 1);
  put_all(w, "40 1 bb, 50 40 worker");
  world_run(w, 1);
  assert_null(world_find(w, "bb"));
  world_run_times(w, 3, 3600);
  assert_int_equal(world_members(w, "bb"), 2);
}

/* Others may have come to share with it meanwhile, or gone. */
WORLD_TEST(process_back_in_a_group_is_read_again) {
  char path[128];

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  put(w, 20, 1, "server");
  snprintf(path, sizeof(path), "%s/x.pid", w->tree.root);
  proctree_write(&w->tree, "x.pid", "20\n", 3);
  world_group(w, "g", "PidFile", path, NULL, NULL);
  world_run_reading(w, 1, 1);
  world_run_reading(w, 1, 0);
  proctree_write(&w->tree, "x.pid", "99\n", 3);
  world_run(w, 1);
  assert_int_equal(world_members(w, "g"), 0);
  proctree_write(&w->tree, "x.pid", "20\n", 3);
  world_run_reading(w, 1, 1);
  assert_int_equal(world_members(w, "g"), 1);
}

/* The line has no values that are refused, which would be compared again to see
 * what they rule out. */
WORLD_TEST(each_name_is_compared_once) {
  world_group(w, "line", "CommandLineMatch", "none", NULL, NULL);
  world_group(w, "server", "CommMatch", "server", NULL, NULL)->takes_children =
      true;
  for (uint32_t pid = 10; pid <= 30; pid += 10) {
    struct fake f = named(pid, pid - 10, pid == 10 ? "server" : "worker");

    f.cmdline = "/bin/x";
    world_put(w, f);
  }
  regexecs = 0;
  world_run(w, 1);
  assert_int_equal(world_members(w, "server"), 3);
  assert_int_equal(regexecs, 3 * 2);
  world_run_times(w, 3, 60);
  assert_int_equal(regexecs, 3 * 2);
  /* It passes on what it did before. */
  exec(w, 10, 0, "server-2");
  world_run_times(w, 3, 1);
  assert_int_equal(world_members(w, "server"), 3);
  assert_int_equal(regexecs, 4 * 2);
}

/* --- the rule that took a process, and those that would have -------------- */

/* Runs a cycle and asserts the rules of a process: the one that took it, with a
 * '+' after it if that was inherited, then the others that match. */
static void assert_explained(struct world *w, uint32_t pid, const char *why) {
  size_t n = world_n_written(), len = 0;
  char text[256] = "-";
  parsed d, p;

  if (!w->collector) {
    world_keep_state(w);
    w->settings.state_interval_ns = 0;
  }
  world_run(w, 1);
  d = parsed_file(world_written(n)->path);
  p = parsed_process(d, pid);
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

WORLD_TEST(rule_that_took_a_process_is_listed_with_the_shadowed_ones) {
  put_all(w, "1 0 one, 2 0 two, 3 0 none");
  world_group(w, "a", "Comm", "o*", NULL, NULL);
  world_group(w, "b", "Comm", "two", NULL, NULL);
  world_group(w, NULL, "Comm", "*o*", NULL, NULL);
  world_group(w, "d", "Comm", "one", NULL, NULL);
  assert_explained(w, 1, "0 2 3");
  assert_explained(w, 2, "1 2");
  assert_explained(w, 3, "2");
}

WORLD_TEST(other_is_listed_as_the_rule_after_the_last) {
  put_all(w, "1 0 one, 2 0 two");
  world_group(w, "a", "Comm", "one", NULL, NULL);
  world_other(w, "rest");
  assert_explained(w, 1, "0");
  assert_explained(w, 2, "1");
}

WORLD_TEST(views_are_listed_with_the_other_rules) {
  put(w, 1, 0, "one");
  world_group(w, "v", "Comm", "*", NULL, NULL)->is_view = true;
  world_group(w, "a", "Comm", "one", NULL, NULL);
  world_group(w, "u", "Comm", "*", NULL, NULL)->is_view = true;
  assert_explained(w, 1, "1 0 2");
}

WORLD_TEST(inherited_rule_is_listed) {
  put_all(w, "1 0 one, 2 1 two, 3 2 one, 4 0 gone, 5 4 x, 6 0 none");
  world_group(w, "a", "Comm", "one", NULL, NULL)->takes_children = true;
  world_group(w, NULL, "Comm", "gone", NULL, NULL)->takes_children = true;
  world_group(w, "b", "Comm", "t*", NULL, NULL);
  assert_explained(w, 1, "0");
  assert_explained(w, 2, "0+ 2");
  assert_explained(w, 3, "0"); /* it is one by itself too */
  assert_explained(w, 5, "1+");
  assert_explained(w, 6, "-");
}

WORLD_TEST(at_most_explain_max_rules_are_listed) {
  char why[256] = "0";

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

/* This may take a quarter of a second for each of many. */
WORLD_TEST(writing_the_state_matches_nothing) {
  world_group(w, "a", "CommMatch", "o", NULL, NULL);
  world_group(w, "b", "CommMatch", "n", NULL, NULL);
  put_all(w, "1 0 one, 2 0 nil");
  assert_explained(w, 1, "0 1");
  assert_explained(w, 2, "1");
  regexecs = 0;
  assert_explained(w, 1, "0 1");
  assert_int_equal(regexecs, 0);
}

/* --- MaxGroups: who is refused, and for how long -------------------------- */

#define HOUR 3600

/* The owner of the place shows before or behind them, or when they were matched
 * already; where two wait, one of the names gets all of its own. */
WORLD_TEST(all_processes_of_a_name_get_a_place_that_becomes_free) {
  static const struct {
    uint32_t holder;
    bool ends;
  } cases[] = {{1, true}, {5, true}, {99, true}, {5, false}, {99, false}};

  world_group(w, NULL, "Comm", "gone", NULL, NULL);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  w->settings.max_groups = 1;
  for (size_t i = 0; i < LENGTH(cases); i++) {
    for (uint32_t pid = 1; pid < 100; pid++)
      proctree_end(&w->tree, pid);
    put(w, cases[i].holder, 0, "a");
    world_run(w, HOUR);
    for (uint32_t pid = 2; pid < 10; pid += 2)
      put(w, pid, 0, "b");
    put(w, 3, 0, "c");
    put(w, 11, 0, "c");
    world_run(w, HOUR);
    world_assert_members(w, "a=1 rest=6");
    assert_int_equal(world_counts(w)->groups_refused, 6);
    assert_string_equal(world_diag(w, DIAG_GROUP_REFUSED)->name, "b");
    if (cases[i].ends)
      proctree_end(&w->tree, cases[i].holder);
    else
      exec(w, cases[i].holder, 0, "gone");
    world_run(w, 1);
    world_assert_members(w, "rest=6");
    world_run(w, HOUR);
    world_assert_members(w, "b=4 rest=2");
    assert_int_equal(world_counts(w)->groups_refused, 2);
  }
}

/* A newcomer of its name gets the place while it cannot be looked at. */
WORLD_TEST(process_follows_when_its_name_gets_a_place) {
  w->settings.max_groups = 1;
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  put(w, 5, 0, "a");
  world_run(w, 1);
  put(w, 1, 0, "b");
  world_run(w, 1);
  world_assert_members(w, "a=1 rest=1");
  proctree_end(&w->tree, 5);
  world_run(w, 1);
  world_run(w, HOUR - 2);
  proctree_write(&w->tree, "1/statm", "x\n", 2);
  proctree_write(&w->tree, "1/stat", "x\n", 2);
  put(w, 9, 0, "b");
  world_run(w, 1);
  assert_int_equal(world_members(w, "b"), 1);
  put(w, 1, 0, "b");
  world_run(w, 1);
  world_assert_members(w, "b=2 rest=0");
}

/* Each cycle has NAMES_PER_CYCLE new processes with new names. */
#define NAMES_PER_CYCLE 50

static void rename_all(struct world *w, unsigned cycle) {
  for (unsigned i = 0; i < NAMES_PER_CYCLE; i++) {
    char comm[16];
    struct fake f;

    snprintf(comm, sizeof(comm), "n%u", cycle * NAMES_PER_CYCLE + i);
    f = named(100 + i, 1, comm);
    f.starttime = 1000 + cycle;
    world_put(w, f);
  }
}

#define DAYS 2
#define INTERVAL 1200
#define FORGED (DAYS * 86400 / INTERVAL * NAMES_PER_CYCLE)

/* Groups that come and go are freed. */
WORLD_TEST(forged_names_make_a_limited_number_of_groups_an_hour) {
  static bool has_been[FORGED + 1];
  const struct group *g;
  unsigned made = 0, granted = 0;
  uint64_t count;
  size_t used = 0;

  w->settings.max_groups = 20;
  w->settings.policy.refresh = REFRESH_NEVER;
  for (uint32_t i = 0; i < NAMES_PER_CYCLE; i++)
    put(w, 100 + i, 1, "first");
  world_group(w, "%{comm}", "Comm", "n*", NULL, NULL);
  world_other(w, "rest");
  for (unsigned cycle = 0; cycle < FORGED / NAMES_PER_CYCLE; cycle++) {
    size_t cursor = 0;

    rename_all(w, cycle);
    world_run(w, INTERVAL);
    granted = 0;
    while ((g = collector_next_group(w->collector, &cursor)))
      if (g->name[0] == 'n') {
        made += !has_been[atoi(g->name + 1)];
        granted++;
        has_been[atoi(g->name + 1)] = true;
      }
    count = world_counts(w)->groups_refused;
    assert_int_equal(count + granted, NAMES_PER_CYCLE);
    assert_int_equal(world_members(w, "rest"), NAMES_PER_CYCLE - granted);
    assert_in_range(world_groups(w), 1, 20 + 1);
    if (cycle == FORGED / NAMES_PER_CYCLE / 4)
      used = heap_used();
  }
  /* An allocator that is not the C library's counts nothing. */
  assert_in_range(heap_used(), 0, used + 16 * 1024);
  assert_in_range(made, 20 * (DAYS * 24 / 2), 20 * DAYS * 24);
  assert_int_equal(world_diag(w, DIAG_GROUP_REFUSED)->count,
                   NAMES_PER_CYCLE - granted);
  /* Those that stay come in, as there is room. */
  world_run(w, HOUR);
  assert_int_equal(world_groups(w), 20 + 1);
}

/* Not how long a process has lived, or was refused another name before. */
WORLD_TEST(the_name_that_was_refused_first_gets_the_place) {
  w->settings.max_groups = 1;
  world_group(w, NULL, "Comm", "gone", NULL, NULL);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  put_all(w, "5 0 a, 10 0 gone, 11 0 early");
  world_run(w, 1);
  exec(w, 11, 0, "gone");
  world_run_times(w, 3, 1);
  put(w, 20, 0, "service");
  world_run(w, 1);
  exec(w, 10, 0, "late");
  exec(w, 11, 0, "later");
  proctree_end(&w->tree, 5);
  world_run(w, 1);
  world_run(w, HOUR);
  world_assert_members(w, "service=1");
}

/* Beside processes of lower pids that live for two intervals and have ever new
 * names: it waits for what an hour has for one name, and not for ever. */
WORLD_TEST(a_service_is_let_in_before_newcomers) {
  uint32_t name = 0;

  w->settings.max_groups = 4;
  w->settings.policy.refresh = REFRESH_NEVER;
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  for (int cycle = 0; cycle < 60; cycle++) {
    uint32_t first = 10 + 2 * (uint32_t)(cycle % 20);
    uint32_t before = 10 + 2 * (uint32_t)((cycle + 19) % 20);

    for (uint32_t i = 0; i < 2; i++) {
      char comm[16];

      snprintf(comm, sizeof(comm), "n%u", name++);
      put(w, first + i, 1, comm);
    }
    if (cycle == 20)
      put(w, 5000, 1, "service");
    world_run(w, HOUR / 12);
    proctree_end(&w->tree, before);
    proctree_end(&w->tree, before + 1);
    put(w, 1, 1, "init");
    if (cycle >= 20 && world_members(w, "service") == 1)
      return;
  }
  fail_msg("it was not let in for %d hours", 40 / 12);
}

/* --- names that take long to match, beside the time that a cycle has ------ */

/* Puts a process with a command line of more than ORDINARY_MAX bytes, which
 * depends on its size. By this an exec shows. */
static void put_sized(struct world *w, uint32_t pid, uint32_t ppid,
                      const char *comm, unsigned size) {
  struct fake f = named(pid, ppid, comm);
  char line[ORDINARY_MAX + 2];

  memset(line, 'x', sizeof(line) - 1);
  line[sizeof(line) - 1] = '\0';
  line[1] = (char)('a' + size % 26);
  f.cmdline = line;
  f.size = size;
  world_put(w, f);
}

static void put_long(struct world *w, uint32_t pid, uint32_t ppid,
                     const char *comm) {
  put_sized(w, pid, ppid, comm, 2000 + (unsigned char)*comm);
}

/* Puts n of them from that pid on. */
static void put_all_long(struct world *w, uint32_t pid, uint32_t n,
                         const char *comm) {
  for (uint32_t i = 0; i < n; i++)
    put_long(w, pid + i, 1, comm);
}

/* A waiting process is not known, and no process waits for ever: not even if
 * others come in front of it in each cycle. */
WORLD_TEST(long_names_are_matched_after_all_other_names) {
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
  long_name_ns = MATCH_BUDGET_NS / 20;
  do {
    put_all_long(w, 10 + cycles * 15, 15, "new");
    world_run(w, 1);
    cycles++;
    assert_int_equal(world_members(w, "ordinary"), 10);
    assert_true(world_members(w, "waiting") + world_members(w, "new") >= 1);
    assert_int_equal(world_members(w, "waiting") + world_members(w, "new") +
                         unidentified(w),
                     10 + cycles * 15);
    assert_int_equal(world_members(w, "rest"), 0);
    assert_true(unidentified(w) > 0);
    world_assert(w, "none", "ps_count=nan");
    assert_int_equal(world_diag(w, DIAG_MATCH_DEFERRED)->count,
                     unidentified(w));
    assert_in_range(cycles, 1, 5);
  } while (world_members(w, "waiting") < 10);
  while (unidentified(w) > 0) {
    world_run(w, 1);
    assert_in_range(++cycles, 1, 20);
  }
  world_assert(w, "none", "ps_count=0");
}

/* Also if one name takes all of the time. That the command lines are long does
 * not count: no rule asks for them. */
WORLD_TEST(half_of_the_time_is_for_those_that_wait) {
  static const struct {
    uint64_t each_ns;
    unsigned half;
  } rows[] = {{MATCH_BUDGET_NS / 10, 5}, {2 * MATCH_BUDGET_NS, 1}};

  world_keep_state(w);
  w->settings.policy.refresh = REFRESH_NEVER;
  world_group(w, "%{comm}", "CommMatch", "^(old|new)$", NULL, NULL);
  put(w, 1, 0, "init");
  world_run(w, 1);
  for (size_t i = 0; i < LENGTH(rows); i++) {
    regexec_ns = rows[i].each_ns;
    put_all_long(w, 1000, 40, "old");
    world_run(w, 1);
    assert_int_equal(world_members(w, "old"), 2 * rows[i].half);
    put_all_long(w, 100, 40, "new");
    world_run(w, 1);
    assert_int_equal(world_members(w, "old"), 3 * rows[i].half);
    assert_int_equal(world_members(w, "new"), rows[i].half);
    for (uint32_t k = 0; k < 40; k++) {
      proctree_end(&w->tree, 1000 + k);
      proctree_end(&w->tree, 100 + k);
    }
    world_run(w, 1);
  }
}

/* To match them all each time that any group is made takes longer than a cycle
 * has, and their part of Other would be unknown. */
WORLD_TEST(refused_names_are_not_matched_again_for_another_name) {
  unsigned compared;

  w->settings.policy.refresh = REFRESH_NEVER;
  w->settings.max_groups = 1;
  world_group(w, "%{comm}", "CommandLine", "*", "Comm", "*");
  world_other(w, "rest");
  put(w, 10, 1, "service");
  world_run(w, 1);
  for (uint32_t i = 0; i < 60; i++) {
    char comm[16];

    snprintf(comm, sizeof(comm), "c%u", i);
    put_long(w, 100 + i, 1, comm);
  }
  world_run(w, 1);
  world_assert_members(w, "service=1 rest=60");
  compared = long_names;
  long_name_ns = MATCH_BUDGET_NS / 20;
  proctree_end(&w->tree, 10);
  world_run(w, 1);
  put(w, 11, 1, "service");
  world_run(w, 1);
  world_assert_members(w, "service=1 rest=60");
  assert_int_equal(long_names, compared);
  assert_int_equal(unidentified(w), 0);
  /* Nor for a place that comes free, which is for one of them. */
  proctree_end(&w->tree, 11);
  world_run(w, 1);
  world_run(w, HOUR);
  world_assert_members(w, "c0=1 rest=59");
  assert_int_equal(unidentified(w), 0);
}

/* A name has changed, by which it may have left. */
WORLD_TEST(process_that_is_matched_again_counts_in_its_old_group) {
  world_group(w, "%{comm}", "CommandLine", "x*", "Comm", "?");
  put_long(w, 90, 1, "a");
  world_run(w, 1);
  world_run(w, 1);
  world_assert(w, "a", "pss=102400");
  put_long(w, 90, 1, "b");
  put_all_long(w, 10, 10, "n");
  long_name_ns = 2 * MATCH_BUDGET_NS;
  world_run(w, 1);
  world_assert(w, "a", "ps_count=1 pss=nan");
  assert_int_equal(unidentified(w), 10);
  long_name_ns = 0;
  world_run(w, 1);
  assert_null(world_find(w, "a"));
  world_assert(w, "b", "pss=102400");
}

/* It is counted as a member once: in the group that it was in, or else in the
 * one that it may have come to. */
WORLD_TEST(waiting_process_may_be_in_the_group_of_its_new_name) {
  static const struct {
    const char *comm;
    unsigned in_b;
  } rows[] = {{"a", 0}, {"b", 1}};

  world_group(w, "%{comm}", "CommandLine", "x*", "Comm", "?");
  for (size_t i = 0; i < LENGTH(rows); i++) {
    const struct usage *a, *b;

    put_long(w, 90, 1, "a");
    put_long(w, 91, 1, "b");
    world_run_times(w, 2, 60);
    put_sized(w, 90, 1, rows[i].comm, 999);
    put_all_long(w, 10, 10, "n");
    long_name_ns = 2 * MATCH_BUDGET_NS;
    world_run(w, 1);
    long_name_ns = 0;
    a = &world_find(w, "a")->usage;
    b = &world_find(w, "b")->usage;
    assert_int_equal(a->processes, 1);
    assert_int_equal(a->perhaps, 0);
    assert_int_equal(b->perhaps, rows[i].in_b);
    assert_int_equal(b->perhaps_bytes, rows[i].in_b * 100 * KIB);
    for (uint32_t pid = 10; pid < 20; pid++)
      proctree_end(&w->tree, pid);
    world_run(w, 1);
  }
}

/* It inherits what its parent is not known to have yet. */
WORLD_TEST(descendants_of_a_waiting_process_wait_with_it) {
  w->settings.policy.refresh = REFRESH_NEVER;
  world_group(w, "server", "CommandLine", "x*", "Comm", "server")
      ->takes_children = true;
  world_other(w, "rest");
  put_all_long(w, 10, 5, "n");
  put_long(w, 20, 1, "server");
  put_all(w, "30 20 worker, 31 30 helper");
  long_name_ns = MATCH_BUDGET_NS;
  world_run(w, 1);
  assert_int_equal(world_members(w, "rest"), 1);
  assert_int_equal(unidentified(w), 7);
  world_assert(w, "server", "ps_count=nan");
  long_name_ns = 0;
  world_run(w, 1);
  world_assert_members(w, "server=3 rest=5");
  /* They follow one that was matched last in the next cycle. */
  put_long(w, 20, 1, "x");
  world_run(w, 1);
  world_run(w, 1);
  world_assert_members(w, "rest=8");
}
