#include <smaps/settings.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <smaps/procfs.h>

#define EVERY_ATTRIBUTE ((1U << ATTRIBUTES) - 1)
#define STATE_INTERVAL_DEFAULT_NS (60 * NS_PER_S)
/* While it is written there is more behind it. */
#define STATE_NAME_MAX 240

void settings_init(struct settings *s) {
  *s = (struct settings){
      .max_groups = SETTINGS_MAX_GROUPS_DEFAULT,
      .read_budget_ns = READ_BUDGET_DEFAULT_NS,
      .stall_timeout_ns = STALL_TIMEOUT_DEFAULT_NS,
      .state_interval_ns = STATE_INTERVAL_DEFAULT_NS,
      .capture = {.severities = SEVERITY_WARNING | SEVERITY_FAILURE,
                  .top_processes = 20,
                  .top_mappings = 50,
                  .cooldown_ns = 300 * NS_PER_S,
                  .max_files = 100,
                  .max_bytes = UINT64_C(64) << 20}};
}

void settings_done(struct settings *s) {
  for (size_t i = 0; i < s->n_rules; i++)
    rule_done(&s->rules[i]);
  rule_done(&s->other);
  free(s->rules);
  free(s->proc_root);
  free(s->host);
  free(s->state_file);
  free(s->capture.directory);
  *s = (struct settings){0};
}

static int check_name_is_free(const struct settings *s, const struct rule *r,
                              struct reason *reason) {
  for (size_t i = 0; i < s->n_rules; i++)
    if (rule_has_same_name(&s->rules[i], r))
      return reason_set(reason, "expected a name that no group above has");
  return 0;
}

static int append_rule(struct settings *s, const struct rule *r) {
  struct rule *rules = reallocarray(s->rules, s->n_rules + 1, sizeof(*rules));

  if (!rules)
    return -ENOMEM;
  s->rules = rules;
  s->rules[s->n_rules++] = *r;
  return 0;
}

int settings_add_rule(struct settings *s, struct rule *r,
                      struct reason *reason) {
  int status = rule_check(r, reason);

  if (status == 0)
    status = check_name_is_free(s, r, reason);
  if (status == 0 && rule_has_same_name(&s->other, r))
    status = reason_set(reason, "expected a name other than that of Other");
  if (status == 0)
    status = append_rule(s, r);
  if (status < 0)
    rule_done(r);
  return status;
}

static int set_other_text(struct rule *other, const char *name) {
  char text[256];

  snprintf(text, sizeof(text), "Other \"%s\"", name);
  return rule_set_text(other, text);
}

int settings_set_other(struct settings *s, const char *name,
                       struct reason *reason) {
  struct rule other;
  int r = rule_init_group(&other, name, reason);

  if (r < 0)
    return r;
  r = set_other_text(&other, name);
  if (r < 0) {
    rule_done(&other);
    return r;
  }
  if (template_is_fixed(&other.name))
    r = check_name_is_free(s, &other, reason);
  else
    r = reason_set(reason, "expected a name without placeholders");
  if (r < 0) {
    rule_done(&other);
    return r;
  }
  rule_done(&s->other);
  s->other = other;
  return 0;
}

int settings_set_proc_root(struct settings *s, const char *root,
                           struct reason *reason) {
  struct procfs *procfs;
  char *copy;
  int r;

  if (*root != '/')
    return reason_set(reason, "expected an absolute path");
  r = procfs_new(root, &procfs);
  if (r == -ENOMEM)
    return r;
  if (r == -ENOTTY)
    return reason_set(reason, "expected a proc file system: no process is in "
                              "this directory");
  if (r != 0)
    return reason_set(reason, "expected a proc file system: %s", strerror(-r));
  procfs_free(procfs);
  copy = strdup(root);
  if (!copy)
    return -ENOMEM;
  free(s->proc_root);
  s->proc_root = copy;
  return 0;
}

static int set_path(char **path, const char *value, struct reason *reason) {
  char *copy;

  if (*value != '/')
    return reason_set(reason, "expected an absolute path");
  if (strlen(value) >= PATH_MAX - NAME_MAX)
    return reason_set(reason, "expected a path of less than %d bytes",
                      PATH_MAX - NAME_MAX);
  copy = strdup(value);
  if (!copy)
    return -ENOMEM;
  free(*path);
  *path = copy;
  return 0;
}

int settings_set_state_file(struct settings *s, const char *path,
                            struct reason *reason) {
  const char *name = strrchr(path, '/');

  if (name && name[1] == '\0')
    return reason_set(reason, "expected the path of a file");
  if (name && strlen(name + 1) > STATE_NAME_MAX)
    return reason_set(reason, "expected a file name of at most %d bytes",
                      STATE_NAME_MAX);
  return set_path(&s->state_file, path, reason);
}

int settings_set_capture_directory(struct settings *s, const char *path,
                                   struct reason *reason) {
  return set_path(&s->capture.directory, path, reason);
}

bool settings_make_snapshots(const struct settings *s) {
  return s->state_file || s->capture.directory;
}

int settings_set_max_groups(struct settings *s, double n,
                            struct reason *reason) {
  if (!(n >= 1 && n <= SETTINGS_MAX_GROUPS_LIMIT) || n != (double)(size_t)n)
    return reason_set(reason, "expected a whole number from 1 to %d",
                      SETTINGS_MAX_GROUPS_LIMIT);
  s->max_groups = (size_t)n;
  return 0;
}

static bool makes_groups(const struct settings *s) {
  for (size_t i = 0; i < s->n_rules; i++)
    if (!s->rules[i].is_ignore)
      return true;
  return false;
}

static int add_default_rule(struct settings *s) {
  struct reason reason;
  struct selector selector;
  struct rule rule;
  int r = rule_init_group(&rule, "%{unit}", &reason);

  if (r == 0)
    r = selector_init(&selector, "Unit", "*.service", &reason);
  if (r == 0)
    r = rule_add_selector(&rule, &selector);
  if (r == 0)
    r = rule_set_text(&rule, "<Group \"%{unit}\"> Unit \"*.service\"");
  if (r < 0) {
    rule_done(&rule);
    return r;
  }
  return settings_add_rule(s, &rule, &reason);
}

static int fill_defaults(struct settings *s) {
  struct reason reason;
  int r = 0;

  if (!s->proc_root && !(s->proc_root = strdup("/proc")))
    return -ENOMEM;
  if (makes_groups(s))
    return 0;
  if (s->other.name.n == 0)
    r = settings_set_other(s, "other", &reason);
  return r < 0 ? r : add_default_rule(s);
}

int settings_finish(struct settings *s) {
  const struct report standard = {.metrics = metric_default_set(),
                                  .absolute = CHOICE_YES,
                                  .percentage = CHOICE_NO};
  int r = fill_defaults(s);

  if (r < 0)
    return r;
  if (s->command_lines == CHOICE_UNSET)
    s->command_lines = CHOICE_YES;
  if (s->capture.command_lines == CHOICE_UNSET)
    s->capture.command_lines = s->command_lines;
  report_inherit(&s->report, &standard);
  policy_inherit(&s->policy, &policy_default);
  for (size_t i = 0; i < s->n_rules; i++) {
    report_inherit(&s->rules[i].report, &s->report);
    policy_inherit(&s->rules[i].policy, &s->policy);
  }
  report_inherit(&s->other.report, &s->report);
  policy_inherit(&s->other.policy, &s->policy);
  return 0;
}

static bool has_command_lines(const struct settings *s) {
  return (s->state_file && s->command_lines == CHOICE_YES) ||
         (s->capture.directory && s->capture.command_lines == CHOICE_YES);
}

unsigned settings_attributes(const struct settings *s) {
  unsigned attributes = settings_rule_attributes(s);

  if (settings_make_snapshots(s))
    attributes |= has_command_lines(s)
                      ? EVERY_ATTRIBUTE
                      : EVERY_ATTRIBUTE & ~(1U << ATTRIBUTE_COMMAND_LINE);
  return attributes;
}

unsigned settings_rule_attributes(const struct settings *s) {
  unsigned attributes = 0;

  for (size_t i = 0; i < s->n_rules; i++)
    attributes |= rule_attributes(&s->rules[i]);
  return attributes;
}

bool settings_take_children(const struct settings *s) {
  for (size_t i = 0; i < s->n_rules; i++)
    if (s->rules[i].takes_children)
      return true;
  return false;
}
