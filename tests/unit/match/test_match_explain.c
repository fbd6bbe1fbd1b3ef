/* The rule that took a process, and those that would have, as they are told. */
#include "test.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "match/match.h"

#include "matched.h"
#include "parsed.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, world_setup, world_teardown, struct world *w)

/* How often an expression was compared with a name. */
static unsigned regexecs;

int __real_regexec(const regex_t *, const char *, size_t, regmatch_t[], int);
int __wrap_regexec(const regex_t *, const char *, size_t, regmatch_t[], int);
int __wrap_regexec(const regex_t *regex, const char *text, size_t n,
                   regmatch_t match[], int flags) {
  regexecs++;
  return __real_regexec(regex, text, n, match, flags);
}

/* Runs a cycle and asserts of a process: the rule that took it, with a '+'
 * behind it where that was inherited, then the others that would have. */
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

WORLD_TEST(rule_that_took_it_is_told_and_those_that_would_have) {
  put_all(w, "1 0 one, 2 0 two, 3 0 none");
  world_group(w, "a", "Comm", "o*", NULL, NULL);
  world_group(w, "b", "Comm", "two", NULL, NULL);
  world_group(w, NULL, "Comm", "*o*", NULL, NULL);
  world_group(w, "d", "Comm", "one", NULL, NULL);
  assert_explained(w, 1, "0 2 3");
  assert_explained(w, 2, "1 2");
  assert_explained(w, 3, "2");
}

WORLD_TEST(other_is_the_rule_behind_the_last) {
  put_all(w, "1 0 one, 2 0 two");
  world_group(w, "a", "Comm", "one", NULL, NULL);
  world_other(w, "rest");
  assert_explained(w, 1, "0");
  assert_explained(w, 2, "1");
}

WORLD_TEST(views_are_told_with_the_others) {
  put(w, 1, 0, "one");
  world_group(w, "v", "Comm", "*", NULL, NULL)->is_view = true;
  world_group(w, "a", "Comm", "one", NULL, NULL);
  world_group(w, "u", "Comm", "*", NULL, NULL)->is_view = true;
  assert_explained(w, 1, "1 0 2");
}

WORLD_TEST(inherited_rule_is_told) {
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

/* It would have, but for MaxGroups, or for want of a name. */
WORLD_TEST(rule_without_a_resulting_group_is_not_told) {
  w->settings.max_groups = 1;
  put_all(w, "1 0 one, 2 0 two");
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_group(w, "%{container}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  assert_explained(w, 1, "0");
  assert_explained(w, 2, "2 0");
}

WORLD_TEST(no_more_are_told_than_there_is_room_for) {
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

/* It is in a group, but that is not Other. */
WORLD_TEST(process_in_a_view_alone_was_taken_by_no_rule) {
  put(w, 1, 0, "one");
  world_group(w, "v", "Comm", "one", NULL, NULL)->is_view = true;
  assert_explained(w, 1, "- 0");
  assert_int_equal(world_members(w, "v"), 1);
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
