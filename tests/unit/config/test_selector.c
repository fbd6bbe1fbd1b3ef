/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "config/selector.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *option;
  enum attribute attribute;
  enum selector_test test;
} options[] = {
    {"Comm", ATTRIBUTE_COMM, SELECT_GLOB},
    {"CommMatch", ATTRIBUTE_COMM, SELECT_REGEX},
    {"CommandLine", ATTRIBUTE_COMMAND_LINE, SELECT_GLOB},
    {"CommandLineMatch", ATTRIBUTE_COMMAND_LINE, SELECT_REGEX},
    {"Executable", ATTRIBUTE_EXECUTABLE, SELECT_GLOB},
    {"ExecutableMatch", ATTRIBUTE_EXECUTABLE, SELECT_REGEX},
    {"User", ATTRIBUTE_USER, SELECT_GLOB},
    {"UserMatch", ATTRIBUTE_USER, SELECT_REGEX},
    {"Cgroup", ATTRIBUTE_CGROUP, SELECT_GLOB},
    {"CgroupMatch", ATTRIBUTE_CGROUP, SELECT_REGEX},
    {"Unit", ATTRIBUTE_UNIT, SELECT_GLOB},
    {"UnitMatch", ATTRIBUTE_UNIT, SELECT_REGEX},
    {"Slice", ATTRIBUTE_SLICE, SELECT_GLOB},
    {"SliceMatch", ATTRIBUTE_SLICE, SELECT_REGEX},
    {"Container", ATTRIBUTE_CONTAINER, SELECT_GLOB},
    {"ContainerMatch", ATTRIBUTE_CONTAINER, SELECT_REGEX},
    {"ContainerName", ATTRIBUTE_CONTAINER_NAME, SELECT_GLOB},
    {"ContainerNameMatch", ATTRIBUTE_CONTAINER_NAME, SELECT_REGEX},
    {"Pod", ATTRIBUTE_POD, SELECT_GLOB},
    {"PodMatch", ATTRIBUTE_POD, SELECT_REGEX},
    {"Namespace", ATTRIBUTE_NAMESPACE, SELECT_GLOB},
    {"NamespaceMatch", ATTRIBUTE_NAMESPACE, SELECT_REGEX},
    {"PidFile", ATTRIBUTES, SELECT_PID_FILE},
};
#define OPTIONS LENGTH(options)

static struct selector make(const char *option, const char *pattern) {
  struct config_error reason = {""};
  struct selector s;
  int r = selector_init(&s, option, pattern, &reason);

  if (r != 0)
    fail_msg("%s \"%s\": %d, %s", option, pattern, r, reason.text);
  return s;
}

/* Whether the pattern of the option selects a process of this command line,
 * which may be NULL. */
static bool selects(const char *option, const char *pattern,
                    const char *command_line) {
  struct attributes id = {.value = {[ATTRIBUTE_COMMAND_LINE] = command_line}};
  struct selector s = make(option, pattern);
  bool is_selected = selector_match(&s, &id, 1, NULL);

  selector_done(&s);
  return is_selected;
}

static void check_refused(const char *name, const char *option,
                          const char *pattern, const char *expected) {
  struct config_error reason = {""};
  struct selector s;
  int r = selector_init(&s, option, pattern, &reason);

  if (r != -EINVAL || !strstr(reason.text, expected))
    fail_msg("%s: %d, \"%s\"", name, r, reason.text);
}

static void check_option(size_t i, const char *option) {
  struct selector s = make(option, "/x");

  assert_int_equal(s.test, options[i].test);
  for (unsigned a = 0; a < ATTRIBUTES; a++) {
    struct attributes id = {.uid = 1};

    id.value[a] = "/x";
    if (selector_match(&s, &id, 1, NULL) != (a == options[i].attribute))
      fail_msg("%s: attribute %u", option, a);
  }
  selector_done(&s);
}

TEST(every_option_looks_at_its_attribute_alone) {
  for (size_t i = 0; i < OPTIONS; i++) {
    char other[32];

    assert_string_equal(selector_options[i], options[i].option);
    check_option(i, options[i].option);
    strcpy(other, options[i].option);
    for (char *p = other; *p; p++)
      *p ^= ' '; /* case does not matter */
    check_option(i, other);
  }
  assert_null(selector_options[OPTIONS]);
}

/* A pattern, a value that it matches, and one that it does not. */
struct pattern_case {
  const char *pattern, *match, *other;
};

static void check_patterns(const char *option, const struct pattern_case *cases,
                           size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (!selects(option, cases[i].pattern, cases[i].match))
      fail_msg("%s \"%s\": not \"%s\"", option, cases[i].pattern,
               cases[i].match);
    if (selects(option, cases[i].pattern, cases[i].other))
      fail_msg("%s \"%s\": \"%s\"", option, cases[i].pattern, cases[i].other);
  }
}

/* Names are bytes and need not be UTF-8. */
TEST(a_glob_stands_for_the_whole_value) {
  static const struct pattern_case globs[] = {
      {"nginx", "nginx", "nginx2"},
      {"Nginx", "Nginx", "nginx"},
      {"*", ".hidden", NULL},
      {"/opt/*/x", "/opt/a/b/x", "/opt/x"},
      {"?", ".", ""},
      {"[^a]", "b", "a"},
      {"[]a]", "]", "b"},
      {"[!]a]", "x", "]"},
      {"[[:alpha:]_]z", "_z", "4z"},
#ifdef __GLIBC__ /* fnmatch() of musl skips these */
      {"[[=a=]]", "a", "="},
      {"[[.].]]", "]", "["},
#endif
      {"[a[]", "[", "]"},
      {"[a:b:]c", ":c", "c"},
      {"[\\]]", "\\]", "]"},
      {"[\\a]", "\\", "_"},
      {"a\\*", "a\\b", "a*"},
      {"\\(", "\\(", "("},
      {"\\\\", "\\\\", "\\"},
      {"my\\x2dweb@*.service", "my\\x2dweb@1.service", "myx2dweb@1.service"},
      {"ends\\", "ends\\", "ends"},
      {"a|b", "a|b", "a"},
      {"?", "\xff", "\xc3\xa9"},
      {"a*b", "a\x80\xff_b", "a\x80\xff"},
  };

  check_patterns("CommandLine", globs, LENGTH(globs));
}

/* What has an empty control group, unit or the like has none. */
TEST(empty_glob_matches_what_has_no_container_or_unit) {
  static const char *const empty[] = {"Unit",          "Slice", "Container",
                                      "ContainerName", "Pod",   "Namespace"};
  struct glimpse hidden = {.unknown = UINT_MAX};

  for (size_t i = 0; i < LENGTH(empty); i++) {
    struct selector s = make(empty[i], "");
    struct attributes none = {.uid = 1}, some = {.uid = 1};

    some.value[s.attribute] = "x";
    assert_int_equal(selector_match(&s, &none, 1, NULL), 1);
    assert_int_equal(selector_match(&s, &some, 1, NULL), 0);
    assert_true(selector_could_match(&s, &(struct glimpse){.pid = 1}));
    assert_true(selector_could_match(&s, &hidden));
    assert_false(selector_could_match(&s, &(struct glimpse){.id = some}));
    selector_done(&s);
  }
  check_refused("empty path", "Cgroup", "", "not empty");
  check_refused("empty user", "User", "", "not empty");
  check_refused("empty regex", "ContainerMatch", "", "not empty");
}

/* Some have escapes that look like a back-reference. */
TEST(a_regular_expression_is_extended_and_unanchored) {
  static const struct pattern_case regexes[] = {
      {"pool", "php: pool www", "php: POOL"},
      {"(w|a)-[0-9]{2}", "api a-42", "api a-4"},
      {"^a.b$", "a\nb", "ab"},
      {"^.$", "\xff", "\xc3\xa9"},
      {"(a)\\\\1", "a\\1", "aa"},
      {"(a)[1\\]", "a\\", "aa"}};

  check_patterns("CommandLineMatch", regexes, LENGTH(regexes));
}

TEST(malformed_patterns_are_refused) {
  static const struct {
    const char *name, *option, *pattern, *expected;
  } cases[] = {
      {"empty glob", "Comm", "", "not empty"},
      {"empty regex", "CommMatch", "", "not empty"},
      /* What follows are words of the C library. */
      {"open group", "CommMatch", "(", "expression: "},
      {"open set of a regex", "CommMatch", "[a", "expression: "},
      {"open set", "Unit", "a[bc", "']' for each '['"},
      {"open set with class", "Unit", "[[:alpha:]", "']' for each '['"},
      {"open set behind a backslash", "Unit", "a\\[bc", "']' for each '['"},
      {"back-reference", "CommMatch", "(a*)\\1b", "back-references"},
      {"back-reference behind a set", "CommMatch", "(a)[]\\][^]2]\\9",
       "back-references"},
      {"back-reference behind [!]", "CommMatch", "(a)[!]\\2", "back-ref"},
      {"relative PID file", "PidFile", "run/x.pid", "absolute"},
      {"empty PID file", "PidFile", "", "absolute"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++)
    check_refused(cases[i].name, cases[i].option, cases[i].pattern,
                  cases[i].expected);
}

TEST(a_word_longer_than_any_comm_is_refused) {
  static const char *const taken[] = {"exactly15bytes_", "systemd-journal*",
                                      "?ystemd-journald", "systemd-journal[d]",
                                      "systemd\\journal"};
  struct selector s;

  check_refused("16 bytes", "Comm", "systemd-journald", "15 bytes");
  check_refused("16 bytes", "Process", "systemd-journal*", "15 bytes");
  check_refused("empty", "Process", "", "1 to 15 bytes");
  check_refused("16 bytes", "Comm", "systemd\\-journal", "15 bytes");
  for (size_t i = 0; i < LENGTH(taken); i++) {
    s = make("Comm", taken[i]);
    selector_done(&s);
  }
  assert_true(selects("CommandLine", "systemd-journald", "systemd-journald"));
}

TEST(process_is_comm_letter_for_letter) {
  static const struct pattern_case cases[] = {
      {"exactly15bytes_", "exactly15bytes_", "exactly15bytes"},
      {"Sshd", "Sshd", "sshd"},
      {"a*", "a*", "ab"},
      {"[", "[", "a"},
      {"\\", "\\", "a"},
  };
  struct attributes id = {.uid = 0};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct selector s = make("Process", cases[i].pattern);

    id.value[ATTRIBUTE_COMM] = cases[i].match;
    assert_true(selector_match(&s, &id, 1, NULL));
    id.value[ATTRIBUTE_COMM] = cases[i].other;
    assert_false(selector_match(&s, &id, 1, NULL));
    selector_done(&s);
  }
}

TEST(a_user_is_known_by_name_and_by_number) {
  static const struct {
    const char *option, *pattern, *name;
    uint32_t uid;
    bool is_match;
  } cases[] = {
      {"User", "www-data", "www-data", 33, true},
      {"User", "33", "www-data", 33, true},
      {"User", "4294967329", "www-data", 33, false}, /* 33 in 32 bits */
      {"User", "33x", "www-data", 33, false},
      {"User", "33", NULL, 33, false},
      {"UserMatch", "33", "www-data", 33, false},
      {"Comm", "33", "www-data", 33, false},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct attributes id = {.uid = cases[i].uid};
    struct selector s = make(cases[i].option, cases[i].pattern);

    id.value[ATTRIBUTE_USER] = cases[i].name;
    id.value[ATTRIBUTE_COMM] = "comm";
    if (selector_match(&s, &id, 1, NULL) != cases[i].is_match)
      fail_msg("%s \"%s\", uid %u", cases[i].option, cases[i].pattern,
               cases[i].uid);
    selector_done(&s);
  }
}

/* Other plugins (python) set the daemon's locale; the matcher works in "C". */
TEST(a_regex_read_in_a_utf_8_locale_matches_bytes) {
  struct attributes id = {.value = {[ATTRIBUTE_COMM] = "a\xff"}};
  struct selector s;
  bool is_match;

  if (!setlocale(LC_CTYPE, "C.UTF-8"))
    skip();
  s = make("CommMatch", "^a.$");
  assert_ptr_equal(uselocale((locale_t)0), LC_GLOBAL_LOCALE);
  setlocale(LC_CTYPE, "C");
  is_match = selector_match(&s, &id, 1, NULL);
  selector_done(&s);
  assert_true(is_match);
}
