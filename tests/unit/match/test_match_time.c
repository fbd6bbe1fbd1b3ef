/* Names that take long to match, beside the time that a cycle has for them. */
#include "test.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "match/match.h"

#include "matched.h"

/* How long an expression takes with a long name. */
static uint64_t long_name_ns;

static void pass_time(const char *text) {
  if (strlen(text) > ORDINARY_MAX)
    world_pass(long_name_ns);
}

int __real_regexec(const regex_t *, const char *, size_t, regmatch_t[], int);
int __wrap_regexec(const regex_t *, const char *, size_t, regmatch_t[], int);
int __wrap_regexec(const regex_t *regex, const char *text, size_t n,
                   regmatch_t match[], int flags) {
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
  long_name_ns = 0;
  return world_setup(state);
}

#define WORLD_TEST(name) TEST_WITH(name, make, world_teardown, struct world *w)

/* A command line of more than ORDINARY_MAX bytes. */
static void put_long(struct world *w, uint32_t pid, uint32_t ppid,
                     const char *comm) {
  struct fake f = named(pid, ppid, comm);
  char line[ORDINARY_MAX + 2];

  memset(line, 'x', sizeof(line) - 1);
  line[sizeof(line) - 1] = '\0';
  f.cmdline = line;
  f.size = 2000 + (unsigned char)*comm; /* by which an exec shows */
  world_put(w, f);
}

/* n of them from that pid on. */
static void put_all_long(struct world *w, uint32_t pid, uint32_t n,
                         const char *comm) {
  for (uint32_t i = 0; i < n; i++)
    put_long(w, pid + i, 1, comm);
}

/* A waiting process is not known, and no process waits for ever: not even if
 * others come in front of it in each cycle. */
WORLD_TEST(long_names_are_matched_behind_all_others) {
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

/* To match them all each time that any group is made takes longer than a cycle
 * has, and their part of Other would be unknown. */
WORLD_TEST(refused_names_are_not_matched_again_for_another_name) {
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
  long_name_ns = MATCH_BUDGET_NS / 20;
  proctree_end(&w->tree, 10);
  world_run(w, 1);
  put(w, 11, 1, "service");
  world_run(w, 1);
  world_assert_members(w, "service=1 rest=60");
  assert_int_equal(unidentified(w), 0);
}

/* One match takes more than all may. */
WORLD_TEST(each_cycle_matches_at_least_a_single_process) {
  w->settings.policy.refresh = REFRESH_NEVER;
  world_group(w, "g", "CommandLine", "x*", NULL, NULL);
  world_other(w, "rest");
  put_all_long(w, 10, 5, "x");
  long_name_ns = 2 * MATCH_BUDGET_NS;
  for (uint32_t i = 1; i <= 5; i++) {
    world_run(w, 1);
    assert_int_equal(unidentified(w), 5 - i);
    assert_int_equal(world_groups(w), 2);
  }
  world_assert(w, "g", "ps_count=5");
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
