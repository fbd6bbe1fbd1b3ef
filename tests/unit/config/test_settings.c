/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <smaps/settings.h>

#include "proctree.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define BIT(attribute) (1U << ATTRIBUTE_##attribute)

TEST_OBJECT(struct settings, settings_init, settings_done)
#define SETTINGS_TEST(name) TEST_WITH(name, make, unmake, struct settings *s)

/* A rule with one selector, or with none; name NULL for Ignore. */
static int try_rule(struct settings *s, const char *name, const char *comm,
                    struct config_error *reason) {
  struct rule *r;

  assert_int_equal(settings_add_rule(s, name, &r, reason), 0);
  assert_int_equal(r->is_ignore, !name);
  if (comm)
    assert_int_equal(rule_add_selector(r, "Comm", comm, reason), 0);
  return settings_check_rule(s, r, reason);
}

static void add(struct settings *s, const char *name) {
  struct config_error reason = {""};

  if (try_rule(s, name, "x", &reason) != 0)
    fail_msg("%s: %s", name, reason.text);
}

static int try_other(struct settings *s, const char *name,
                     struct config_error *reason) {
  int rc = rule_set_name(&s->other, name, reason);

  return rc < 0 ? rc : settings_check_rule(s, &s->other, reason);
}

static void set_other(struct settings *s, const char *name) {
  struct config_error reason = {""};

  if (try_other(s, name, &reason) != 0)
    fail_msg("%s: %s", name, reason.text);
}

/* Whether the rule makes groups of that name, placeholders and all. */
static bool is_called(const struct rule *r, const char *name) {
  static const struct attributes id = {
      .value = {[ATTRIBUTE_UNIT] = "x.service", [ATTRIBUTE_COMM] = "x"}};
  struct group_name made;

  return !r->is_ignore && template_expand(r->name, &id, NULL, &made) &&
         strcmp(made.text, name) == 0;
}

static void check_default_rule(const struct rule *r) {
  struct attributes id = {.value = {[ATTRIBUTE_UNIT] = "x.service"}};
  struct captures c;

  assert_true(is_called(r, "x.service"));
  assert_int_equal(r->n_selectors, 1);
  assert_true(rule_match(r, &id, 1, &c));
  id.value[ATTRIBUTE_UNIT] = "session-1.scope";
  assert_false(rule_match(r, &id, 1, &c));
  assert_false(r->takes_children);
  assert_false(r->is_view);
}

/* What a rule calls a container; "-" if it does not take it. */
static void check_name(const struct rule *r, const struct attributes *id,
                       const char *wanted) {
  struct group_name name = {.text = "-"};
  struct captures c;

  if (rule_match(r, id, 1, &c))
    assert_true(template_expand(r->name, id, &c, &name));
  assert_string_equal(name.text, wanted);
}

/* Of pods first: their containers have names that others have, too. */
static void check_container_rules(const struct rule *rules) {
  static const struct attributes
      none = {.value = {NULL}},
      pod = {.value = {[ATTRIBUTE_CONTAINER_NAME] = "app",
                       [ATTRIBUTE_POD] = "app-7f",
                       [ATTRIBUTE_NAMESPACE] = "prod"}},
      docker = {.value = {[ATTRIBUTE_CONTAINER_NAME] = "web"}};

  check_name(&rules[0], &pod, "prod_app");
  check_name(&rules[0], &docker, "-");
  check_name(&rules[1], &docker, "web");
  check_name(&rules[1], &none, "-");
}

SETTINGS_TEST(an_empty_configuration_makes_a_group_for_each_service_and_other) {
  struct config_error reason;

  s->report.percentage = CHOICE_YES;
  assert_int_equal(settings_finish(s), 0);
  assert_string_equal(s->proc_root, "/proc");
  assert_int_equal(s->n_rules, 3);
  check_default_rule(&s->rules[0]);
  check_container_rules(&s->rules[1]);
  assert_true(is_called(&s->other, "other"));
  assert_string_equal(s->rules[0].text,
                      "<Group \"%{unit_template}\"> Unit \"*.service\"");
  assert_string_equal(s->other.text, "Other \"other\"");
  assert_int_equal(s->attributes,
                   BIT(UNIT) | BIT(CONTAINER_NAME) | BIT(NAMESPACE));
  assert_false(s->has_children_rules);
  assert_false(s->has_snapshots);
  assert_memory_equal(&s->rules[0].report, &s->report, sizeof(s->report));
  assert_memory_equal(&s->other.report, &s->report, sizeof(s->report));
  assert_true(s->report.metrics == metric_find("default", &reason));
  assert_int_equal(s->report.absolute, CHOICE_YES);
  assert_int_equal(s->report.growth_window_ns, 3600 * NS_PER_S);
  assert_int_equal(s->capture.severities, SEVERITY_WARNING | SEVERITY_FAILURE);
  assert_int_equal(s->capture.top_processes, 20);
  assert_int_equal(s->capture.top_mappings, 50);
  assert_int_equal(s->capture.cooldown_ns, 300 * NS_PER_S);
  assert_int_equal(s->capture.max_files, 100);
  assert_int_equal(s->capture.max_bytes, 64 << 20);
}

SETTINGS_TEST(ignore_comes_before_the_default_groups_and_other_stays) {
  add(s, NULL);
  add(s, NULL);
  set_other(s, "the rest");
  assert_int_equal(settings_finish(s), 0);
  assert_int_equal(s->n_rules, 5);
  assert_true(s->rules[0].is_ignore);
  assert_true(s->rules[1].is_ignore);
  check_default_rule(&s->rules[2]);
  check_container_rules(&s->rules[3]);
  assert_true(is_called(&s->other, "the rest"));
}

static bool wants_page_tables(struct settings *s) {
  assert_int_equal(settings_finish(s), 0);
  return s->wants_page_tables;
}

SETTINGS_TEST(page_tables_are_wanted_where_they_are_reported) {
  struct config_error reason;
  const metric_set page_tables = metric_find("page_tables", &reason);

  add(s, "web");
  add(s, "own");
  assert_false(wants_page_tables(s));
  s->rules[1].report.metrics |= page_tables;
  assert_true(wants_page_tables(s));
  s->rules[1].report.metrics &= ~page_tables;
  s->other.report.metrics = page_tables;
  assert_true(wants_page_tables(s));
  s->other.report.metrics = 0;
  assert_false(wants_page_tables(s));
  assert_int_equal(settings_set_path(&s->state_file, "/state", &reason), 0);
  assert_true(wants_page_tables(s));
}

static bool wants_freed(struct settings *s) {
  assert_int_equal(settings_finish(s), 0);
  return s->wants_freed;
}

/* It costs readings of maps. */
SETTINGS_TEST(freed_is_wanted_where_it_is_reported) {
  struct config_error reason;
  const metric_set pss = metric_find("pss", &reason);

  add(s, "web");
  assert_true(wants_freed(s)); /* by default */
  s->rules[0].report.metrics = s->other.report.metrics = pss;
  assert_false(wants_freed(s));
  s->rules[0].report.metrics = metric_find("freed_error", &reason);
  assert_true(wants_freed(s));
  s->rules[0].report.metrics = pss;
  assert_int_equal(settings_set_path(&s->state_file, "/state", &reason), 0);
  assert_true(wants_freed(s));
}

SETTINGS_TEST(growth_has_ten_intervals_at_least) {
  add(s, "short");
  add(s, "long");
  s->rules[1].report.growth_window_ns = 7000 * NS_PER_S;
  s->interval_ns = 600 * NS_PER_S;
  assert_int_equal(settings_finish(s), 0);
  assert_int_equal(s->rules[0].report.growth_window_ns, 6000 * NS_PER_S);
  assert_int_equal(s->rules[1].report.growth_window_ns, 7000 * NS_PER_S);
}

SETTINGS_TEST(a_bad_rule_is_refused) {
  static const struct {
    const char *name, *group, *comm, *expected;
  } cases[] = {
      {"the same name", "a/b", "y", "already exists"},
      {"the same when it is clean", "a_b", "y", "already exists"},
      {"the name of Other", "rest", "y", "already exists"},
      {"the name of Other when it is clean", "/rest", "y", "already exists"},
      {"no selector", "new", NULL, "one selector"},
  };

  add(s, "a/b");
  set_other(s, "rest");
  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct config_error reason = {""};

    if (try_rule(s, cases[i].group, cases[i].comm, &reason) != -EINVAL ||
        !strstr(reason.text, cases[i].expected))
      fail_msg("%s: \"%s\"", cases[i].name, reason.text);
  }
}

SETTINGS_TEST(rules_of_the_configuration_replace_the_default_groups) {
  add(s, "a/b");
  add(s, "%{comm}");
  add(s, "%{comm}"); /* templates may come to one name */
  assert_int_equal(settings_finish(s), 0);
  assert_int_equal(s->n_rules, 3);
  assert_true(is_called(&s->rules[0], "a_b"));
  assert_null(s->other.name);
}

SETTINGS_TEST(a_bad_other_is_refused) {
  static const struct {
    const char *name, *other, *expected;
  } cases[] = {
      {"empty", "", "not empty"},
      {"nothing, when it is clean", "/", ""},
      {"a placeholder", "%{unit}", "without placeholders"},
      {"a capture", "x%{1}", "without placeholders"},
      {"no such placeholder", "%{nix}", "%{nix}"},
      {"a group's name", "a/b", "already exists"},
      {"a group's name when it is clean", "a_b", "already exists"},
  };

  add(s, "a/b");
  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct config_error reason = {""};

    if (try_other(s, cases[i].other, &reason) != -EINVAL ||
        !strstr(reason.text, cases[i].expected))
      fail_msg("%s: \"%s\"", cases[i].name, reason.text);
    rule_done(&s->other);
  }
}

#define TREE_TEST(name)                                                        \
  TEST_WITH(name, proctree_setup, proctree_teardown, struct proctree *tree)

TREE_TEST(proc_root_holds_processes) {
  struct config_error reason = {""};
  struct settings s;
  char path[128], bad[128];

  proctree_write(tree, "proc/1/stat", "", 0);
  snprintf(path, sizeof(path), "%s/proc", tree->root);
  snprintf(bad, sizeof(bad), "%s/proc/1", tree->root);
  settings_init(&s);
  assert_int_equal(settings_set_proc_root(&s, bad, &reason), -EINVAL);
  assert_non_null(strstr(reason.text, "has no process"));
  assert_int_equal(settings_set_proc_root(&s, "./proc", &reason), -EINVAL);
  assert_non_null(strstr(reason.text, "absolute"));
  for (int again = 0; again < 2; again++)
    assert_int_equal(settings_set_proc_root(&s, path, &reason), 0);
  assert_int_equal(settings_finish(&s), 0);
  assert_string_equal(s.proc_root, path);
  settings_done(&s);
}

/* --- snapshots ------------------------------------------------------------ */

static int set_state_file(struct settings *s, const char *path,
                          struct config_error *reason) {
  return settings_set_path(&s->state_file, path, reason);
}

SETTINGS_TEST(paths_are_checked_and_replaced) {
  struct config_error reason = {""};
  char path[PATH_MAX + 1];

  assert_int_equal(set_state_file(s, "/a", &reason), 0);
  assert_int_equal(set_state_file(s, "/b", &reason), 0);
  assert_int_equal(set_state_file(s, "", &reason), -EINVAL);
  assert_int_equal(set_state_file(s, "c", &reason), -EINVAL);
  memset(path, 'x', sizeof(path));
  path[0] = '/';
  path[PATH_MAX - NAME_MAX] = '\0';
  assert_int_equal(set_state_file(s, path, &reason), -EINVAL);
  assert_non_null(strstr(reason.text, "of less than 3841 bytes"));
  assert_string_equal(s->state_file, "/b");
  path[PATH_MAX - NAME_MAX - 1] = '\0';
  assert_int_equal(set_state_file(s, path, &reason), 0);
  assert_int_equal(set_state_file(s, "/h/x//", &reason), 0);
  assert_string_equal(s->state_file, "/h/x");
  assert_int_equal(set_state_file(s, "//", &reason), 0);
  assert_string_equal(s->state_file, "/");
}

TEST(captures_inherit_the_choice_of_command_lines) {
  static const struct {
    enum choice all, captures, expected;
  } rows[] = {{CHOICE_UNSET, CHOICE_UNSET, CHOICE_YES},
              {CHOICE_NO, CHOICE_UNSET, CHOICE_NO},
              {CHOICE_NO, CHOICE_YES, CHOICE_YES},
              {CHOICE_YES, CHOICE_NO, CHOICE_NO}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct settings s;

    settings_init(&s);
    if (rows[i].all != CHOICE_UNSET)
      s.command_lines = rows[i].all;
    s.capture.command_lines = rows[i].captures;
    assert_int_equal(settings_finish(&s), 0);
    assert_int_equal(s.capture.command_lines, rows[i].expected);
    settings_done(&s);
  }
}

SETTINGS_TEST(snapshots_want_all_names) {
  struct config_error reason;

  add(s, "web");
  assert_int_equal(settings_set_path(&s->capture.directory, "/c", &reason), 0);
  assert_int_equal(settings_finish(s), 0);
  assert_true(s->has_snapshots);
  assert_int_equal(s->attributes, (1U << ATTRIBUTES) - 1);
  assert_int_equal(s->rule_attributes, BIT(COMM));
}

TEST(stricter_of_two_policies_counts) {
  static const struct policy strict = {REFRESH_ALWAYS, 10, 20, 20, false};
  static const struct policy lax = {REFRESH_NEVER, 11, 21, 30, false};
  struct policy p = {.refresh = REFRESH_UNSET};

  policy_tighten(&p, &lax);
  assert_int_equal(p.refresh, REFRESH_NEVER);
  assert_int_equal(p.max_age_ns, 11);
  assert_int_equal(p.max_lock_hold_ns, 21);
  assert_int_equal(p.unsampled_lock_hold_ns, 30);
  for (int i = 0; i < 2; i++) {
    policy_tighten(&p, i == 0 ? &strict : &lax);
    assert_int_equal(p.refresh, REFRESH_ALWAYS);
    assert_int_equal(p.max_age_ns, 10);
    assert_int_equal(p.max_lock_hold_ns, 20);
    assert_int_equal(p.unsampled_lock_hold_ns, 20);
  }
}

/* A process of a view is read for that. */
TEST(only_processes_in_other_alone_come_last) {
  struct settings s;
  struct policy p = {.comes_last = true};

  settings_init(&s);
  assert_int_equal(settings_finish(&s), 0);
  policy_tighten(&p, &s.other.policy);
  assert_true(p.comes_last);
  policy_tighten(&p, &s.rules[0].policy);
  policy_tighten(&p, &s.other.policy);
  assert_false(p.comes_last);
  settings_done(&s);
}
