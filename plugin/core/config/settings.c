/* SPDX-License-Identifier: MIT */
#include <smaps/settings.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "proc/procfs.h"
#include "report/growth.h"

#define EVERY_ATTRIBUTE ((1U << ATTRIBUTES) - 1)

const struct settings settings_defaults = {
    .reports_host = true,
    .max_groups = 1000,
    .read_budget_percent = 1,
    .read_budget_span_ns = 60 * NS_PER_S,
    .read_timeout_ns = 1 * NS_PER_S,
    .state_interval_ns = 60 * NS_PER_S,
    .command_lines = CHOICE_YES,
    .report = {.growth_window_ns = 3600 * NS_PER_S,
               .absolute = CHOICE_YES,
               .percentage = CHOICE_NO,
               .alarms = {.causes = {[ALARM_OOM_KILL] = CHOICE_YES,
                                     [ALARM_ENDED] = CHOICE_YES,
                                     [ALARM_GROWTH] = CHOICE_YES,
                                     [ALARM_CGROUP_LIMIT] = CHOICE_YES,
                                     [ALARM_UNKNOWN] = CHOICE_YES},
                          .limit_percent = 90,
                          .full_within_ns = 86400 * NS_PER_S}},
    .policy = {.refresh = REFRESH_ADAPTIVE,
               .max_age_ns = 600 * NS_PER_S,
               .max_lock_hold_ns = 5 * NS_PER_MS,
               .unsampled_lock_hold_ns = 100 * NS_PER_MS},
    .capture = {.severities = SEVERITY_WARNING | SEVERITY_FAILURE,
                .top_processes = 20,
                .top_mappings = 50,
                .cooldown_ns = 300 * NS_PER_S,
                .max_files = 100,
                .max_bytes = UINT64_C(64) << 20}};

void settings_init(struct settings *s) { *s = settings_defaults; }

void settings_done(struct settings *s) {
  for (size_t i = 0; i < s->n_rules; i++)
    rule_done(&s->rules[i]);
  rule_done(&s->other);
  free(s->rules);
  free(s->proc_root);
  free(s->container_root);
  free(s->host);
  free(s->state_file);
  free(s->state_history);
  free(s->capture.directory);
  *s = (struct settings){0};
}

int settings_add_rule(struct settings *s, const char *name, struct rule **ret,
                      struct config_error *reason) {
  struct rule *rules = reallocarray(s->rules, s->n_rules + 1, sizeof(*rules));

  if (!rules)
    return -ENOMEM;
  s->rules = rules;
  *ret = &rules[s->n_rules++];
  **ret = (struct rule){.is_ignore = !name};
  return name ? rule_set_name(*ret, name, reason) : 0;
}

static bool have_same_name(const struct rule *a, const struct rule *b) {
  return a != b && a->fixed_name.len > 0 &&
         strcmp(a->fixed_name.text, b->fixed_name.text) == 0;
}

int settings_check_rule(const struct settings *s, const struct rule *r,
                        struct config_error *reason) {
  bool is_other = r == &s->other, is_taken = have_same_name(&s->other, r);

  for (size_t i = 0; i < s->n_rules; i++)
    is_taken |= have_same_name(&s->rules[i], r);
  if (is_taken)
    return config_error_set(reason,
                            "a group with this name already exists; expected "
                            "another name, or one block with both selectors");
  if (is_other && r->fixed_name.len == 0)
    return config_error_set(reason, "expected a name without placeholders");
  return is_other ? 0 : rule_check(r, reason);
}

/* Slashes at the end are left out: "/x/" and "/x" are one directory, and a
 * symbolic link with a slash after it would be followed. */
int settings_set_path(char **path, const char *value,
                      struct config_error *reason) {
  size_t len = strlen(value);
  char *copy;

  if (*value != '/')
    return config_error_set(reason, "expected an absolute path");
  if (len >= PATH_MAX - NAME_MAX)
    return config_error_set(reason, "expected a path of less than %d bytes",
                            PATH_MAX - NAME_MAX);
  while (len > 1 && value[len - 1] == '/')
    len--;
  copy = strndup(value, len);
  if (!copy)
    return -ENOMEM;
  free(*path);
  *path = copy;
  return 0;
}

int settings_set_proc_root(struct settings *s, const char *root,
                           struct config_error *reason) {
  struct procfs *procfs = NULL;
  int rc = settings_set_path(&s->proc_root, root, reason);

  if (rc < 0)
    return rc;
  rc = procfs_new(root, &procfs);
  procfs_free(procfs);
  if (rc == 0 || rc == -ENOMEM)
    return rc;
  return config_error_set(reason, "expected a proc file system: %s",
                          rc == -ENOTTY ? "this directory has no process"
                                        : strerror(-rc));
}

static bool makes_groups(const struct settings *s) {
  for (size_t i = 0; i < s->n_rules; i++)
    if (!s->rules[i].is_ignore)
      return true;
  return false;
}

/* Services come first: no user can make a service, and the daemon that runs
 * containers (docker.service) is a service. The name of a pod is not used: it
 * changes with each deployment. */
static int add_default_rules(struct settings *s) {
#define RULE(name_, selector_, pattern_)                                       \
  {name_, selector_, pattern_, RULE_TEXT(name_, selector_, pattern_)},
  static const struct {
    const char *name, *selector, *pattern, *text;
  } rules[] = {DEFAULT_RULE_TABLE(RULE)};
  struct config_error reason;
  struct rule *r;
  int rc = 0;

  if (!s->other.name) {
    s->other.text = strdup("Other \"other\"");
    rc = s->other.text ? rule_set_name(&s->other, "other", &reason) : -ENOMEM;
  }
  for (size_t i = 0; i < sizeof(rules) / sizeof(*rules) && rc == 0; i++) {
    rc = settings_add_rule(s, rules[i].name, &r, &reason);
    if (rc == 0)
      rc = rule_add_selector(r, rules[i].selector, rules[i].pattern, &reason);
    if (rc == 0 && !(r->text = strdup(rules[i].text)))
      rc = -ENOMEM;
  }
  return rc;
}

static void inherit_alarms(struct alarm_policy *p,
                           const struct alarm_policy *from) {
  for (int i = 0; i < ALARM_CAUSES; i++)
    if (p->causes[i] == CHOICE_UNSET)
      p->causes[i] = from->causes[i];
  if (!p->limit_percent)
    p->limit_percent = from->limit_percent;
  if (!p->full_within_ns)
    p->full_within_ns = from->full_within_ns;
}

static void inherit_report(struct report *r, const struct report *from) {
  if (!r->metrics)
    r->metrics = from->metrics;
  r->cgroup_wants = metric_cgroup_wants(r->metrics);
  if (!r->growth_window_ns)
    r->growth_window_ns = from->growth_window_ns;
  if (r->absolute == CHOICE_UNSET)
    r->absolute = from->absolute;
  if (r->percentage == CHOICE_UNSET)
    r->percentage = from->percentage;
  inherit_alarms(&r->alarms, &from->alarms);
}

/* A limit that is set holds for processes that cannot be sampled, too. */
static void inherit_policy(struct policy *p, const struct policy *from) {
  if (p->refresh == REFRESH_UNSET)
    p->refresh = from->refresh;
  if (!p->max_age_ns)
    p->max_age_ns = from->max_age_ns;
  if (!p->max_lock_hold_ns) {
    p->max_lock_hold_ns = from->max_lock_hold_ns;
    p->unsampled_lock_hold_ns = from->unsampled_lock_hold_ns;
  }
  if (!p->unsampled_lock_hold_ns)
    p->unsampled_lock_hold_ns = p->max_lock_hold_ns;
}

/* Growth of fewer intervals is not known. */
static void inherit(struct rule *r, const struct settings *s) {
  uint64_t least_ns = GROWTH_POINTS_LEAST * s->interval_ns;

  inherit_report(&r->report, &s->report);
  inherit_policy(&r->policy, &s->policy);
  if (r->report.growth_window_ns < least_ns)
    r->report.growth_window_ns = least_ns;
}

static void sum_up(struct settings *s) {
  metric_set reported = s->other.report.metrics;
  struct config_error reason;

  for (size_t i = 0; i < s->n_rules; i++) {
    const struct rule *r = &s->rules[i];

    s->rule_attributes |= rule_attributes(r);
    s->has_children_rules |= r->takes_children;
    reported |= r->report.metrics;
  }
  s->has_snapshots |= s->state_file || s->state_history || s->capture.directory;
  s->attributes = s->has_snapshots ? EVERY_ATTRIBUTE : s->rule_attributes;
  s->wants_page_tables =
      s->has_snapshots || (reported & metric_find("page_tables", &reason));
  s->wants_freed =
      s->has_snapshots || (reported & (metric_find("freed", &reason) |
                                       metric_find("freed_error", &reason)));
}

int settings_finish(struct settings *s) {
  struct config_error reason;
  int rc;

  if (!s->proc_root && !(s->proc_root = strdup("/proc")))
    return -ENOMEM;
  rc = makes_groups(s) ? 0 : add_default_rules(s);
  if (rc < 0)
    return rc;
  if (s->capture.command_lines == CHOICE_UNSET)
    s->capture.command_lines = s->command_lines;
  if (!s->report.metrics)
    s->report.metrics = metric_find("default", &reason);
  for (size_t i = 0; i < s->n_rules; i++)
    inherit(&s->rules[i], s);
  inherit(&s->other, s);
  s->other.policy.comes_last = true;
  sum_up(s);
  return 0;
}
