#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/settings.h>

#include "scarce.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define UNKNOWN ((double)NAN)
#define ENDLESS ((double)INFINITY)
#define BIT(attribute) (1U << ATTRIBUTE_##attribute)

/* A rule with one selector, or with none; name NULL for Ignore. */
static struct rule make_rule(const char *name, const char *comm) {
  struct reason reason = {""};
  struct selector s;
  struct rule r;

  if (!name)
    rule_init_ignore(&r);
  else
    assert_int_equal(rule_init_group(&r, name, &reason), 0);
  if (comm) {
    assert_int_equal(selector_init(&s, "Comm", comm, &reason), 0);
    assert_int_equal(rule_add_selector(&r, &s), 0);
  }
  return r;
}

static void add(struct settings *s, const char *name) {
  struct reason reason = {""};
  struct rule r = make_rule(name, "x");

  if (settings_add_rule(s, &r, &reason) != 0)
    fail_msg("%s: %s", name, reason.text);
}

static void set_other(struct settings *s, const char *name) {
  struct reason reason = {""};

  if (settings_set_other(s, name, &reason) != 0)
    fail_msg("%s: %s", name, reason.text);
}

/* Whether the rule makes groups of that name, placeholders and all. */
static bool is_called(const struct rule *r, const char *name) {
  static const struct identity id = {
      .value = {[ATTRIBUTE_UNIT] = "x.service", [ATTRIBUTE_COMM] = "x"}};
  struct name made;

  return !r->is_ignore && r->name.n > 0 &&
         template_expand(&r->name, &id, NULL, &made) &&
         strcmp(made.text, name) == 0;
}

static void check_default_rule(const struct rule *r) {
  struct identity id = {.value = {[ATTRIBUTE_UNIT] = "x.service"}};
  struct captures c;

  assert_true(is_called(r, "x.service"));
  assert_int_equal(r->n_selectors, 1);
  assert_true(rule_match(r, &id, 1, &c));
  id.value[ATTRIBUTE_UNIT] = "session-1.scope";
  assert_false(rule_match(r, &id, 1, &c));
  assert_false(r->takes_children);
  assert_false(r->is_view);
}

static void nothing_said_is_a_group_for_each_service_and_other(void **state) {
  struct settings s;

  (void)state;
  settings_init(&s);
  assert_int_equal(settings_finish(&s), 0);
  assert_string_equal(s.proc_root, "/proc");
  assert_int_equal(s.n_rules, 1);
  check_default_rule(&s.rules[0]);
  assert_true(is_called(&s.other, "other"));
  assert_int_equal(s.max_groups, 200);
  assert_int_equal(s.stall_timeout_ns, NS_PER_S);
  assert_true(s.report.metrics == metric_default_set());
  assert_int_equal(s.report.absolute, CHOICE_YES);
  assert_int_equal(s.report.percentage, CHOICE_NO);
  assert_int_equal(settings_attributes(&s), BIT(UNIT));
  assert_false(settings_take_children(&s));
  settings_done(&s);
}

static void what_is_ignored_comes_before_the_default_groups(void **state) {
  struct settings s;

  (void)state;
  settings_init(&s);
  add(&s, NULL);
  add(&s, NULL);
  assert_int_equal(settings_finish(&s), 0);
  assert_int_equal(s.n_rules, 3);
  assert_true(s.rules[0].is_ignore);
  assert_true(s.rules[1].is_ignore);
  check_default_rule(&s.rules[2]);
  assert_true(is_called(&s.other, "other"));
  settings_done(&s);
}

static void other_is_kept_where_it_is_given(void **state) {
  struct settings s;

  (void)state;
  settings_init(&s);
  set_other(&s, "the rest");
  assert_int_equal(settings_finish(&s), 0);
  check_default_rule(&s.rules[0]);
  assert_true(is_called(&s.other, "the rest"));
  settings_done(&s);
}

static void a_group_leaves_no_room_for_defaults(void **state) {
  struct settings s;

  (void)state;
  settings_init(&s);
  add(&s, "web");
  add(&s, NULL);
  assert_int_equal(settings_finish(&s), 0);
  assert_int_equal(s.n_rules, 2);
  assert_true(is_called(&s.rules[0], "web"));
  assert_int_equal(s.other.name.n, 0);
  settings_done(&s);
}

static void groups_inherit_what_they_do_not_set(void **state) {
  const metric_set pss = 1, uss = 2;
  struct settings s;

  (void)state;
  settings_init(&s);
  add(&s, "before");
  add(&s, "own");
  s.rules[1].report = (struct report){.metrics = pss, .absolute = CHOICE_NO};
  set_other(&s, "other");
  s.report = (struct report){.metrics = uss, .percentage = CHOICE_YES};
  add(&s, "behind");
  s.rules[2].report.percentage = CHOICE_NO;
  assert_int_equal(settings_finish(&s), 0);

  assert_true(s.report.metrics == uss);
  assert_int_equal(s.report.absolute, CHOICE_YES);
  assert_memory_equal(&s.rules[0].report, &s.report, sizeof(s.report));
  assert_memory_equal(&s.other.report, &s.report, sizeof(s.report));
  assert_true(s.rules[1].report.metrics == pss);
  assert_int_equal(s.rules[1].report.absolute, CHOICE_NO);
  assert_int_equal(s.rules[1].report.percentage, CHOICE_YES);
  assert_true(s.rules[2].report.metrics == uss);
  assert_int_equal(s.rules[2].report.absolute, CHOICE_YES);
  assert_int_equal(s.rules[2].report.percentage, CHOICE_NO);
  settings_done(&s);
}

static void default_groups_inherit_too(void **state) {
  struct settings s;

  (void)state;
  settings_init(&s);
  s.report.percentage = CHOICE_YES;
  assert_int_equal(settings_finish(&s), 0);
  assert_memory_equal(&s.rules[0].report, &s.report, sizeof(s.report));
  assert_memory_equal(&s.other.report, &s.report, sizeof(s.report));
  assert_true(s.report.metrics == metric_default_set());
  settings_done(&s);
}

static void a_bad_rule_is_refused_and_leaves_the_others(void **state) {
  static const struct {
    const char *name;
    const char *group, *comm, *expected;
  } cases[] = {
      {"the same name", "a/b", "y", "no group above"},
      {"the same when it is clean", "a_b", "y", "no group above"},
      {"the name of Other", "rest", "y", "Other"},
      {"the name of Other when it is clean", "/rest", "y", "Other"},
      {"no selector", "new", NULL, "one selector"},
      {"ignore without selector", NULL, NULL, "one selector"},
      {"captures that nothing makes", "%{1}", "y", "captures"},
  };
  struct settings s;

  (void)state;
  settings_init(&s);
  add(&s, "a/b");
  set_other(&s, "rest");
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct rule r = make_rule(cases[i].group, cases[i].comm);
    struct reason reason = {""};

    if (settings_add_rule(&s, &r, &reason) != -EINVAL ||
        !strstr(reason.text, cases[i].expected))
      fail_msg("%s: \"%s\"", cases[i].name, reason.text);
    assert_int_equal(s.n_rules, 1);
  }
  add(&s, "%{comm}");
  add(&s, "%{comm}"); /* templates may come to one name */
  add(&s, "good");
  assert_int_equal(settings_finish(&s), 0);
  assert_int_equal(s.n_rules, 4);
  assert_true(is_called(&s.rules[0], "a_b"));
  assert_true(is_called(&s.rules[3], "good"));
  settings_done(&s);
}

static void a_bad_other_is_refused_and_leaves_the_old_one(void **state) {
  static const struct {
    const char *name;
    const char *other, *expected;
  } cases[] = {
      {"empty", "", "not empty"},
      {"a placeholder", "%{unit}", "without placeholders"},
      {"a capture", "x%{1}", "without placeholders"},
      {"no such placeholder", "%{nix}", "%{nix}"},
      {"a group's name", "a/b", "no group above"},
      {"a group's name when it is clean", "a_b", "no group above"},
  };
  struct settings s;

  (void)state;
  settings_init(&s);
  set_other(&s, "first");
  set_other(&s, "rest");
  add(&s, "a/b");
  add(&s, "first");
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct reason reason = {""};

    if (settings_set_other(&s, cases[i].other, &reason) != -EINVAL ||
        !strstr(reason.text, cases[i].expected))
      fail_msg("%s: \"%s\"", cases[i].name, reason.text);
    assert_true(is_called(&s.other, "rest"));
  }
  settings_done(&s);
}

static void an_other_that_comes_to_nothing_is_refused(void **state) {
  struct reason reason = {""};
  struct settings s;

  (void)state;
  settings_init(&s);
  assert_int_equal(settings_set_other(&s, "/", &reason), -EINVAL);
  assert_int_equal(s.other.name.n, 0);
  settings_done(&s);
}

static void max_groups_is_a_whole_number_in_range(void **state) {
  static const struct {
    double n;
    bool is_taken;
  } cases[] = {
      {1, true},     {200, true},      {100000, true},   {100001, false},
      {0, false},    {-0.0, false},    {-1, false},      {0.5, false},
      {1.5, false},  {99999.5, false}, {1e9, false},     {1e300, false},
      {-1e9, false}, {UNKNOWN, false}, {ENDLESS, false}, {-ENDLESS, false},
  };
  struct settings s;

  (void)state;
  settings_init(&s);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct reason reason = {""};
    int r;

    s.max_groups = 7;
    r = settings_set_max_groups(&s, cases[i].n, &reason);
    if (r != (cases[i].is_taken ? 0 : -EINVAL) ||
        s.max_groups != (cases[i].is_taken ? (size_t)cases[i].n : 7))
      fail_msg("%g: %d, %zu", cases[i].n, r, s.max_groups);
    if (r != 0)
      assert_non_null(strstr(reason.text, "from 1 to 100000"));
  }
  settings_done(&s);
}

static void attributes_are_those_of_all_rules(void **state) {
  struct settings s;

  (void)state;
  settings_init(&s);
  add(&s, "%{user}");
  add(&s, NULL);
  add(&s, "%{container}");
  assert_int_equal(settings_attributes(&s),
                   BIT(COMM) | BIT(USER) | BIT(CONTAINER));
  settings_done(&s);
}

static void one_rule_is_enough_to_take_children(void **state) {
  struct settings s;

  (void)state;
  settings_init(&s);
  for (int i = 0; i < 3; i++)
    add(&s, NULL);
  for (size_t i = 0; i < s.n_rules; i++) {
    assert_false(settings_take_children(&s));
    s.rules[i].takes_children = true;
    assert_true(settings_take_children(&s));
    s.rules[i].takes_children = false;
  }
  settings_done(&s);
}

static const struct {
  const char *path;
  bool is_directory;
} tree[] = {
    {"", true},      {"/proc", true},    {"/proc/1", true},
    {"/none", true}, {"/none/2", false}, {"/file", false},
};
#define TREE_SIZE (sizeof(tree) / sizeof(tree[0]))

static int make_tree(void **state) {
  static char root[32];
  char path[64];

  strcpy(root, "/tmp/smaps-XXXXXX");
  if (!mkdtemp(root))
    return -1;
  *state = root;
  for (size_t i = 1; i < TREE_SIZE; i++) {
    mode_t type = tree[i].is_directory ? S_IFDIR : S_IFREG;

    snprintf(path, sizeof(path), "%s%s", root, tree[i].path);
    if (type == S_IFDIR ? mkdir(path, 0700) : mknod(path, type | 0600, 0))
      return -1;
  }
  return 0;
}

static int remove_tree(void **state) {
  char path[64];
  int r = 0;

  for (size_t i = TREE_SIZE; i-- > 0;) {
    snprintf(path, sizeof(path), "%s%s", (const char *)*state, tree[i].path);
    r |= remove(path);
  }
  return r;
}

static void proc_root_holds_processes(void **state) {
  static const struct {
    const char *name, *path, *expected;
  } cases[] = {
      {"missing", "/missing", "expected a proc file system"},
      {"a file", "/file", "expected a proc file system"},
      {"a process's file", "/none/2", "expected a proc file system"},
      {"a process itself", "/proc/1", "no process is in"},
      {"no directory in it", "/none", "no process is in"},
  };
  struct reason reason = {""};
  struct settings s;
  char path[64];

  settings_init(&s);
  for (int again = 0; again < 2; again++) {
    snprintf(path, sizeof(path), "%s/proc", (const char *)*state);
    assert_int_equal(settings_set_proc_root(&s, path, &reason), 0);
    assert_string_equal(s.proc_root, path);
  }
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    char bad[64];

    snprintf(bad, sizeof(bad), "%s%s", (const char *)*state, cases[i].path);
    if (settings_set_proc_root(&s, bad, &reason) != -EINVAL ||
        !strstr(reason.text, cases[i].expected))
      fail_msg("%s: %s", cases[i].name, reason.text);
    assert_string_equal(s.proc_root, path);
  }
  assert_int_equal(settings_finish(&s), 0);
  assert_string_equal(s.proc_root, path);
  settings_done(&s);
}

static void proc_root_is_an_absolute_path(void **state) {
  static const char *const paths[] = {"", "proc", "./proc", "../proc"};
  struct reason reason = {""};
  struct settings s;

  (void)state;
  settings_init(&s);
  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
    assert_int_equal(settings_set_proc_root(&s, paths[i], &reason), -EINVAL);
    assert_non_null(strstr(reason.text, "absolute"));
    assert_null(s.proc_root);
  }
  settings_done(&s);
}

/* --- snapshots ------------------------------------------------------------ */

static void snapshots_have_defaults(void **state) {
  struct settings s;

  (void)state;
  settings_init(&s);
  assert_int_equal(settings_finish(&s), 0);
  assert_false(settings_make_snapshots(&s));
  assert_int_equal(s.state_interval_ns, 60 * NS_PER_S);
  assert_int_equal(s.capture.severities, SEVERITY_WARNING | SEVERITY_FAILURE);
  assert_int_equal(s.capture.top_processes, 20);
  assert_int_equal(s.capture.top_mappings, 50);
  assert_int_equal(s.capture.cooldown_ns, 300 * NS_PER_S);
  assert_int_equal(s.capture.max_files, 100);
  assert_int_equal(s.capture.max_bytes, 64 << 20);
  assert_int_equal(s.command_lines, CHOICE_YES);
  assert_int_equal(s.capture.command_lines, CHOICE_YES);
  settings_done(&s);
}

static void snapshot_paths_are_checked_and_replaced(void **state) {
  struct reason reason = {""};
  char path[PATH_MAX + 1];
  struct settings s;

  (void)state;
  settings_init(&s);
  assert_int_equal(settings_set_state_file(&s, "/a", &reason), 0);
  assert_true(settings_make_snapshots(&s));
  assert_int_equal(settings_set_state_file(&s, "/b", &reason), 0);
  assert_int_equal(settings_set_state_file(&s, "", &reason), -EINVAL);
  assert_int_equal(settings_set_state_file(&s, "c", &reason), -EINVAL);
  assert_int_equal(settings_set_state_file(&s, "/c/", &reason), -EINVAL);
  assert_string_equal(reason.text, "expected the path of a file");
  memset(path, 'x', sizeof(path));
  path[0] = '/';
  path[242] = '\0';
  assert_int_equal(settings_set_state_file(&s, path, &reason), -EINVAL);
  assert_string_equal(reason.text, "expected a file name of at most 240 bytes");
  path[242] = 'x';
  path[PATH_MAX - NAME_MAX] = '\0';
  path[PATH_MAX - NAME_MAX - 9] = '/';
  assert_int_equal(settings_set_state_file(&s, path, &reason), -EINVAL);
  assert_non_null(strstr(reason.text, "of less than 3841 bytes"));
  assert_string_equal(s.state_file, "/b");
  path[PATH_MAX - NAME_MAX - 1] = '\0';
  assert_int_equal(settings_set_capture_directory(&s, path, &reason), 0);
  assert_int_equal(settings_set_capture_directory(&s, "/d/", &reason), 0);
  assert_int_equal(settings_set_capture_directory(&s, "d", &reason), -EINVAL);
  assert_string_equal(s.capture.directory, "/d/");
  settings_done(&s);
  assert_null(s.state_file);
  assert_null(s.capture.directory);
}

static void captures_inherit_the_choice_of_command_lines(void **state) {
  static const struct {
    enum choice all, captures, expected;
  } rows[] = {{CHOICE_UNSET, CHOICE_UNSET, CHOICE_YES},
              {CHOICE_NO, CHOICE_UNSET, CHOICE_NO},
              {CHOICE_NO, CHOICE_YES, CHOICE_YES},
              {CHOICE_YES, CHOICE_NO, CHOICE_NO}};

  (void)state;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct settings s;

    settings_init(&s);
    s.command_lines = rows[i].all;
    s.capture.command_lines = rows[i].captures;
    assert_int_equal(settings_finish(&s), 0);
    assert_int_equal(s.capture.command_lines, rows[i].expected);
    settings_done(&s);
  }
}

/* Command lines only where they are written, or a rule looks at them. */
static void snapshots_want_all_names(void **state) {
  const unsigned all = (1U << ATTRIBUTES) - 1;
  static const struct {
    bool has_state, has_captures;
    enum choice state, captures;
    bool has_command_lines;
  } rows[] = {{true, false, CHOICE_YES, CHOICE_NO, true},
              {true, false, CHOICE_NO, CHOICE_YES, false},
              {false, true, CHOICE_YES, CHOICE_NO, false},
              {false, true, CHOICE_NO, CHOICE_YES, true},
              {true, true, CHOICE_NO, CHOICE_YES, true},
              {true, true, CHOICE_NO, CHOICE_NO, false}};

  (void)state;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct reason reason;
    struct settings s;

    settings_init(&s);
    add(&s, "web");
    s.command_lines = rows[i].state;
    s.capture.command_lines = rows[i].captures;
    if (rows[i].has_state)
      assert_int_equal(settings_set_state_file(&s, "/s", &reason), 0);
    if (rows[i].has_captures)
      assert_int_equal(settings_set_capture_directory(&s, "/c", &reason), 0);
    assert_int_equal(settings_finish(&s), 0);
    assert_int_equal(settings_attributes(&s), rows[i].has_command_lines
                                                  ? all
                                                  : all & ~BIT(COMMAND_LINE));
    settings_done(&s);
  }
}

static void rules_have_a_text(void **state) {
  struct settings s;

  (void)state;
  settings_init(&s);
  assert_int_equal(settings_finish(&s), 0);
  assert_string_equal(s.rules[0].text,
                      "<Group \"%{unit}\"> Unit \"*.service\"");
  assert_string_equal(s.other.text, "Other \"other\"");
  set_other(&s, "rest");
  assert_string_equal(s.other.text, "Other \"rest\"");
  settings_done(&s);
}

static void settings_that_are_done_hold_nothing(void **state) {
  struct settings s;

  (void)state;
  settings_init(&s);
  add(&s, "web");
  assert_int_equal(settings_finish(&s), 0);
  settings_done(&s);
  assert_null(s.rules);
  assert_null(s.proc_root);
  settings_done(&s);
}

static void of_two_policies_the_stricter_counts(void **state) {
  static const struct policy strict = {REFRESH_ALWAYS, 10, 20};
  static const struct policy lax = {REFRESH_NEVER, 11, 21};
  struct policy p = {.refresh = REFRESH_UNSET};

  (void)state;
  policy_tighten(&p, &lax);
  assert_int_equal(p.refresh, REFRESH_NEVER);
  assert_int_equal(p.max_age_ns, 11);
  assert_int_equal(p.max_stall_ns, 21);
  for (int i = 0; i < 2; i++) {
    policy_tighten(&p, i == 0 ? &strict : &lax);
    assert_int_equal(p.refresh, REFRESH_ALWAYS);
    assert_int_equal(p.max_age_ns, 10);
    assert_int_equal(p.max_stall_ns, 20);
  }
}

static void without_memory_there_are_no_defaults(void **state) {
  bool has_run_out = true;

  (void)state;
  for (size_t n = 0; has_run_out; n++) {
    struct settings s;
    int r;

    settings_init(&s);
    scarce_after(n);
    r = settings_finish(&s);
    has_run_out = scarce_end();
    assert_int_equal(r, has_run_out ? -ENOMEM : 0);
    settings_done(&s); /* what was made by then is freed: ASan watches */
  }
}

static void without_memory_the_old_proc_root_stays(void **state) {
  struct settings s;
  struct reason reason;
  bool has_run_out = true;
  char path[64];

  settings_init(&s);
  snprintf(path, sizeof(path), "%s/proc", (const char *)*state);
  assert_int_equal(settings_set_proc_root(&s, path, &reason), 0);
  for (size_t n = 0; has_run_out; n++) {
    const char *before = s.proc_root;
    int r;

    scarce_after(n);
    r = settings_set_proc_root(&s, path, &reason);
    has_run_out = scarce_end();
    assert_int_equal(r, has_run_out ? -ENOMEM : 0);
    if (has_run_out)
      assert_ptr_equal(s.proc_root, before);
  }
  settings_done(&s);
}

static void without_memory_the_old_state_file_stays(void **state) {
  struct settings s;
  struct reason reason;

  (void)state;
  settings_init(&s);
  assert_int_equal(settings_set_state_file(&s, "/old", &reason), 0);
  scarce_after(0);
  assert_int_equal(settings_set_state_file(&s, "/new", &reason), -ENOMEM);
  assert_true(scarce_end());
  assert_string_equal(s.state_file, "/old");
  settings_done(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_said_is_a_group_for_each_service_and_other),
      cmocka_unit_test(what_is_ignored_comes_before_the_default_groups),
      cmocka_unit_test(other_is_kept_where_it_is_given),
      cmocka_unit_test(a_group_leaves_no_room_for_defaults),
      cmocka_unit_test(groups_inherit_what_they_do_not_set),
      cmocka_unit_test(default_groups_inherit_too),
      cmocka_unit_test(a_bad_rule_is_refused_and_leaves_the_others),
      cmocka_unit_test(a_bad_other_is_refused_and_leaves_the_old_one),
      cmocka_unit_test(an_other_that_comes_to_nothing_is_refused),
      cmocka_unit_test(max_groups_is_a_whole_number_in_range),
      cmocka_unit_test(attributes_are_those_of_all_rules),
      cmocka_unit_test(one_rule_is_enough_to_take_children),
      cmocka_unit_test_setup_teardown(proc_root_holds_processes, make_tree,
                                      remove_tree),
      cmocka_unit_test(proc_root_is_an_absolute_path),
      cmocka_unit_test(snapshots_have_defaults),
      cmocka_unit_test(snapshot_paths_are_checked_and_replaced),
      cmocka_unit_test(captures_inherit_the_choice_of_command_lines),
      cmocka_unit_test(snapshots_want_all_names),
      cmocka_unit_test(rules_have_a_text),
      cmocka_unit_test(settings_that_are_done_hold_nothing),
      cmocka_unit_test(of_two_policies_the_stricter_counts),
      cmocka_unit_test(without_memory_there_are_no_defaults),
      cmocka_unit_test_setup_teardown(without_memory_the_old_proc_root_stays,
                                      make_tree, remove_tree),
      cmocka_unit_test(without_memory_the_old_state_file_stays),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
