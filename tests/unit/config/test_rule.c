/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "config/rule.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BIT(attribute) (1U << ATTRIBUTE_##attribute)

static const struct attributes postgres = {
    .value = {[ATTRIBUTE_COMM] = "postgres",
              [ATTRIBUTE_COMMAND_LINE] = "postgres: main db7 idle",
              [ATTRIBUTE_EXECUTABLE] = "/usr/lib/postgresql/15/bin/postgres",
              [ATTRIBUTE_USER] = "postgres",
              [ATTRIBUTE_UNIT] = "postgresql@15-main.service",
              [ATTRIBUTE_SLICE] = "system.slice"},
    .uid = 109};

struct block {
  const char *name;      /* of the row */
  const char *group;     /* NULL for Ignore */
  const char *selectors; /* "Option pattern; Option pattern"; NULL: none */
};

static struct rule make(const struct block *b) {
  struct config_error reason = {""};
  const char *at = b->selectors;
  char option[32], pattern[64];
  struct rule r = {.is_ignore = !b->group};
  int n;

  if (b->group && rule_set_name(&r, b->group, &reason) != 0)
    fail_msg("%s: %s", b->name, reason.text);
  for (; at && sscanf(at, "%31s %63[^;]%n", option, pattern, &n) == 2;
       at += at[n] ? n + 1 : n)
    if (rule_add_selector(&r, option, pattern, &reason) != 0)
      fail_msg("%s: %s", b->name, reason.text);
  return r;
}

/* A process of which the kernel hides the program. */
static const struct glimpse hidden = {
    .id = {.value = {[ATTRIBUTE_COMM] = "java",
                     [ATTRIBUTE_COMMAND_LINE] = "java -jar app.jar",
                     [ATTRIBUTE_USER] = "tomcat",
                     [ATTRIBUTE_UNIT] = "tomcat.service"},
           .uid = 108},
    .pid = 8,
    .unknown = 1U << ATTRIBUTE_EXECUTABLE};

static void check_could_match(const struct block *blocks, size_t n,
                              const struct glimpse *g, bool want) {
  for (size_t i = 0; i < n; i++) {
    struct rule r = make(&blocks[i]);

    if (rule_could_match(&r, g) != want)
      fail_msg("%s: %s", blocks[i].name, want ? "ruled out" : "not ruled out");
    rule_done(&r);
  }
}

TEST(hidden_program_may_match_by_its_known_attributes) {
  static const struct block blocks[] = {
      {"its name", "g", "Executable /usr/bin/java"},
      {"folder that is a set", "g", "Executable /opt/[ab/]/java"},
      {"one of two names", "g", "Executable /bin/a; Executable /bin/java"},
      {"glob", "g", "Executable /usr/bin/*"},
      {"set with a slash", "g", "Executable /usr/bin[/x]ython"},
      {"regular expression", "g", "ExecutableMatch /java$"},
      {"expression without an end", "g", "ExecutableMatch /python"},
      {"expression without a slash", "g", "ExecutableMatch python$"},
      {"expression of a folder", "g", "ExecutableMatch ^/opt/[a-z]*$"},
      {"optional slash", "g", "ExecutableMatch /?ython$"},
      {"set of slashes", "g", "ExecutableMatch [x/]ython$"},
      {"escaped end", "g", "ExecutableMatch /python\\\\$"},
      {"alternatives", "g", "ExecutableMatch ^/opt/|/python$"},
      {"its uid", "g", "Executable /usr/bin/java; User 108"},
      {"renamed, as the rule says", "g", "Executable /bin/sh; Comm java"},
  };

  check_could_match(blocks, LENGTH(blocks), &hidden, true);
}

TEST(hidden_program_cannot_match_by_its_known_attributes) {
  static const struct block blocks[] = {
      {"another name", "g", "Executable /usr/bin/python"},
      {"shorter name", "g", "Executable /usr/bin/jav"},
      {"name with a backslash", "g", "Executable /usr/bin/j\\ava"},
      {"user", "g", "Executable /usr/bin/java; User root"},
      {"no slice", "g", "Executable /usr/bin/java; Slice *"},
      {"PID file", "g", "Executable /usr/bin/java; PidFile /run/x"},
      {"comm", "g", "Executable /usr/bin/java; Comm other"},
      {"command line", "g", "ExecutableMatch .; CommandLine x*"},
      {"nothing is unknown", "g", "User root"},
  };

  check_could_match(blocks, LENGTH(blocks), &hidden, false);
}

TEST(hidden_program_may_match_by_15_bytes_of_its_name) {
  static const struct block same[] = {
      {"16 bytes", "g", "Executable /usr/bin/prometheus-alert"},
      {"16 bytes and $", "g", "ExecutableMatch /prometheus-alert$"}};
  static const struct block other[] = {
      {"differs early", "g", "Executable /usr/bin/prometheus-alarm"},
      {"the same of $", "g", "ExecutableMatch /prometheus-alarm$"},
      {"ends early", "g", "Executable /usr/bin/prometheus"}};
  struct glimpse g = hidden;

  g.id.value[ATTRIBUTE_COMM] = "prometheus-aler";
  check_could_match(same, LENGTH(same), &g, true);
  check_could_match(other, LENGTH(other), &g, false);
}

TEST(a_pid_file_is_an_attribute_of_its_own) {
  static const struct block b = {
      "", "g", "PidFile /a.pid; Comm postgres; PidFile /b.pid"};
  struct rule r = make(&b);
  struct captures c;

  for (size_t i = 0; i < r.n_selectors; i++)
    if (r.selectors[i].test == SELECT_PID_FILE)
      r.selectors[i].pid = strcmp(r.selectors[i].pattern, "/a.pid") ? 20 : 10;
  assert_true(rule_match(&r, &postgres, 10, &c));
  assert_true(rule_match(&r, &postgres, 20, &c));
  assert_false(rule_match(&r, &postgres, 30, &c));
  rule_done(&r);
}

TEST(captures_are_of_the_first_attribute_that_has_any) {
  static const struct {
    struct block block;
    const char *capture; /* the first one */
  } cases[] = {
      {{"the only one", "%{1}", "CommandLineMatch ^[a-z]+: ([a-z]+)"}, "main"},
      {{"behind a regex without captures", "%{1}",
        "UserMatch post; CommandLineMatch (db[0-9])"},
       "db7"},
      {{"the first of two, the other way round", "%{1}",
        "UserMatch (gre); UnitMatch @([0-9]+)"},
       "gre"},
      {{"written later, but of the first attribute", "%{1}",
        "CommMatch ^(my); UserMatch (gre); CommMatch ^(post)"},
       "post"},
      {{"of the first that matches", "%{1}",
        "CommMatch (ost); CommMatch (pos)"},
       "ost"},
      {{"globs alone", "g", "Comm post*; User *"}, NULL},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct rule r = make(&cases[i].block);
    const char *want = cases[i].capture;
    struct captures c;
    char got[32] = "nothing";

    memset(&c, 0xaa, sizeof(c));
    assert_true(rule_match(&r, &postgres, 1, &c));
    if (c.text)
      snprintf(got, sizeof(got), "%.*s",
               (int)(c.match[1].rm_eo - c.match[1].rm_so),
               c.text + c.match[1].rm_so);
    if (want ? strcmp(got, want) != 0 : c.text != NULL)
      fail_msg("%s: %s", cases[i].block.name, got);
    rule_done(&r);
  }
}

TEST(a_rule_that_makes_sense_is_taken) {
  static const struct block cases[] = {
      {"ignore", NULL, "Comm x"},
      {"attribute in the name", "%{unit}", "Comm x"},
      {"as many captures", "%{2}", "CommMatch (a)(b)"},
      {"both alternatives", "%{1}", "CommMatch (a); CommMatch b(c)"},
      {"glob of another attribute", "%{1}", "User x; CommMatch (a)"},
      {"PID file beside", "%{1}", "PidFile /x; CommMatch (a)"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct config_error reason = {""};
    struct rule r = make(&cases[i]);

    if (rule_check(&r, &reason) != 0)
      fail_msg("%s: %s", cases[i].name, reason.text);
    rule_done(&r);
  }
}

TEST(a_rule_that_makes_no_sense_is_refused) {
  static const struct {
    struct block block;
    const char *expected;
  } cases[] = {
      {{"no selector", "g", NULL}, "one selector"},
      {{"ignore without selector", NULL, NULL}, "one selector"},
      {{"regex without captures", "%{1}", "CommMatch x"},
       "1 pair of parentheses"},
      {{"globs alone", "%{1}", "Comm x*"},
       "for %{1}: a selector with Match, such as CommMatch \"^("},
      {{"one too few", "%{2}", "CommMatch (x)"},
       "2 pairs of parentheses in \"(x)\""},
      {{"glob beside", "%{1}", "CommMatch (x); Comm yy"},
       "in \"yy\", for %{1}"},
      {{"glob first", "%{1}", "Comm yy; CommMatch (x)"}, "in \"yy\""},
      {{"captures of the second attribute do not help", "%{2}",
        "UserMatch (x); CommMatch (a)(b)"},
       "in \"(x)\""},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct config_error reason = {""};
    struct rule r = make(&cases[i].block);

    if (rule_check(&r, &reason) != -EINVAL ||
        !strstr(reason.text, cases[i].expected))
      fail_msg("%s: %s", cases[i].block.name, reason.text);
    rule_done(&r);
  }
}

TEST(rule_needs_the_attributes_of_its_selectors_and_name) {
  static const struct {
    struct block block;
    unsigned attributes;
  } cases[] = {
      {{"none", "g", NULL}, 0},
      {{"name", "%{container}", "Comm x"}, BIT(CONTAINER) | BIT(COMM)},
      {{"capture", "%{1}", "SliceMatch (x)"}, BIT(SLICE)},
      {{"PID file", "%{exe}", "PidFile /x"}, BIT(EXECUTABLE)},
      {{"ignore", NULL, "Comm x"}, BIT(COMM)},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct rule r = make(&cases[i].block);

    if (rule_attributes(&r) != cases[i].attributes)
      fail_msg("%s: %#x", cases[i].block.name, rule_attributes(&r));
    rule_done(&r);
  }
}
