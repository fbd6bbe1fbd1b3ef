/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <daemon/plugin.h>

#include <ctype.h>
#include <strings.h>

#include <smaps/text.h>

#define LINE_SIZE 2048

/* The block of an option, and the settings that the option may change. */
struct scope {
  struct settings *settings;
  struct rule *rule; /* NULL at the top level */
  struct report *report;
  struct policy *policy;
  struct config_error reason;
};

/* The type of the field that an option sets. */
enum option_kind {
  OPTION_bool,
  OPTION_choice,
  OPTION_path,
  OPTION_percent, /* a double; this and the next from least to most */
  OPTION_count,
  OPTION_bytes,
  OPTION_seconds,  /* the field is in nanoseconds */
  OPTION_lock_hold /* likewise, of milliseconds */
};

/* The member of struct scope that has the field. */
enum option_place {
  OPTION_IN_settings,
  OPTION_IN_rule,
  OPTION_IN_report,
  OPTION_IN_policy
};

/* Either apply or a field. */
struct option {
  const char *name; /* NULL at the end of a table, which goes on in `rest` */
  const struct option *rest;
  /* 0, -EINVAL with scope->reason set, or -ENOMEM. A block returns 1 after a
   * mistake inside was logged. */
  int (*apply)(struct scope *scope, const oconfig_item_t *item);
  bool is_block; /* it may be one */
  enum option_kind kind;
  enum option_place place;
  size_t offset;
  double least, most;
};

/* Versions of clang-format do not agree about macros that are in braces. */
/* clang-format off */
/* The comparison warns of a field that is not of this type. */
#define OPTION(name_, type_, kind_, struct_, field_, least_, most_)            \
  {                                                                            \
    .name = name_, .kind = OPTION_##kind_, .place = OPTION_IN_##struct_,       \
    .least = least_, .most = most_,                                            \
    .offset = offsetof(struct struct_, field_) +                               \
              0 * sizeof((type_ *)NULL == &((struct struct_ *)NULL)->field_)   \
  }
#define BOOLEAN(name_, struct_, field_)                                        \
  OPTION(name_, bool, bool, struct_, field_, 0, 0)
#define CHOICE(name_, struct_, field_)                                         \
  OPTION(name_, enum choice, choice, struct_, field_, 0, 0)
#define PATH(name_, field_)                                                    \
  OPTION(name_, char *, path, settings, field_, 0, 0)
#define COUNT(name_, struct_, field_, most_)                                   \
  OPTION(name_, uint64_t, count, struct_, field_, 1, most_)
#define SECONDS(name_, struct_, field_, least_, most_)                         \
  OPTION(name_, uint64_t, seconds, struct_, field_, least_, most_)
#define LOCK_HOLD(name_, struct_, field_, least_, most_)                       \
  OPTION(name_, uint64_t, lock_hold, struct_, field_, least_, most_)
/* clang-format on */

/* --- error lines --- */

void config_describe(const oconfig_item_t *item, char *ret, size_t size) {
  size_t len = (size_t)snprintf(ret, size, "%s", item->key);

  for (int i = 0; i < item->values_num && len < size; i++) {
    const oconfig_value_t *v = &item->values[i];
    char text[200];
    int n = 0;

    if (v->type == OCONFIG_TYPE_STRING)
      n = snprintf(ret + len, size - len, " \"%s\"",
                   quote_text(v->value.string, text, sizeof(text)));
    else if (v->type == OCONFIG_TYPE_NUMBER)
      n = snprintf(ret + len, size - len, " %.15g", v->value.number);
    else
      n = snprintf(ret + len, size - len, " %s",
                   v->value.boolean ? "true" : "false");
    len += (size_t)n;
  }
}

/* The daemon ends after a mistake, and a minimal system has no syslog where the
 * line could be read: standard error has it too. */
static void log_mistake(const struct settings *s, const oconfig_item_t *block,
                        const oconfig_item_t *item, int rc,
                        const struct config_error *reason) {
  bool is_inside = strcasecmp(block->key, "Plugin") != 0;
  char source[256] = "", where[256] = "", what[512], line[1536];

  if (s->source)
    escape_text(s->source, strlen(s->source), source, sizeof(source));
  if (is_inside)
    config_describe(block, where, sizeof(where));
  config_describe(item, what, sizeof(what));
  snprintf(line, sizeof(line), "smaps plugin: %s%s%s%s%s%s: %s", source,
           s->source ? ": " : "", is_inside ? "<" : "", where,
           is_inside ? ">: " : "", what,
           rc == -ENOMEM ? "out of memory" : reason->text);
  ERROR("%s", line);
  if (!s->source)
    fprintf(stderr, "%s\n", line);
}

/* --- values --- */

static int get_string(struct scope *scope, const oconfig_item_t *item,
                      const char **ret) {
  if (item->values_num != 1 || item->values[0].type != OCONFIG_TYPE_STRING)
    return config_error_set(&scope->reason, "expected one string in quotes");
  *ret = item->values[0].value.string;
  return 0;
}

static int set_path(struct scope *scope, const oconfig_item_t *item,
                    char **field) {
  const char *path;
  int rc = get_string(scope, item, &path);

  return rc < 0 ? rc : settings_set_path(field, path, &scope->reason);
}

/* Parses "64", "64K", "64M" or "64G", in powers of 1,024; else returns -1. */
static double parse_size(const char *text) {
  static const char units[] = "KMG";
  struct cursor s = cursor_begin(text, strlen(text));
  const char *unit;
  uint64_t value;

  if (!parse_u64(&s, &value))
    return -1;
  if (cursor_is_done(&s))
    return (double)value;
  unit = strchr(units, toupper((unsigned char)*s.at));
  if (!unit || s.at + 1 != s.end)
    return -1;
  return (double)value * (double)(UINT64_C(1024) << 10 * (unit - units));
}

/* The number, or -1, which is in no range. */
static double number_of(const struct option *o, const oconfig_item_t *item) {
  const oconfig_value_t *v = item->values;
  double n = -1;

  if (item->values_num == 1 && v->type == OCONFIG_TYPE_NUMBER)
    n = v->value.number;
  else if (item->values_num == 1 && v->type == OCONFIG_TYPE_STRING &&
           o->kind == OPTION_bytes)
    n = parse_size(v->value.string);
  if (!(n >= o->least && n <= o->most))
    return -1;
  return o->kind == OPTION_count && n != (double)(uint64_t)n ? -1 : n;
}

static int set_number(struct scope *scope, const struct option *o,
                      const oconfig_item_t *item, void *field) {
  static const struct {
    const char *name;
    uint64_t size;
  } units[] = {
      [OPTION_percent] = {"percentage of one CPU, without quotes,", 0},
      [OPTION_count] = {"whole number, without quotes,", 1},
      [OPTION_bytes] = {"number of bytes, such as \"64M\",", 1},
      [OPTION_seconds] = {"number of seconds, without quotes and unit,",
                          NS_PER_S},
      [OPTION_lock_hold] = {"number of milliseconds, without quotes and unit,",
                            NS_PER_MS}};
  double n = number_of(o, item);

  if (n < 0)
    return config_error_set(&scope->reason, "expected a %s from %.15g to %.15g",
                            units[o->kind].name, o->least, o->most);
  if (o->kind == OPTION_percent)
    *(double *)field = n;
  else
    *(uint64_t *)field = (uint64_t)(n * (double)units[o->kind].size);
  if (o->kind == OPTION_lock_hold)
    scope->policy->unsampled_lock_hold_ns = 0;
  return 0;
}

static int set_boolean(struct scope *scope, const struct option *o,
                       const oconfig_item_t *item, void *field) {
  bool value;

  if (item->values_num != 1 || item->values[0].type != OCONFIG_TYPE_BOOLEAN)
    return config_error_set(&scope->reason,
                            "expected true or false, without quotes");
  value = item->values[0].value.boolean != 0;
  if (o->kind == OPTION_bool)
    *(bool *)field = value;
  else
    *(enum choice *)field = value ? CHOICE_YES : CHOICE_NO;
  return 0;
}

static int set_field(struct scope *scope, const struct option *o,
                     const oconfig_item_t *item) {
  void *const places[] = {[OPTION_IN_settings] = scope->settings,
                          [OPTION_IN_rule] = scope->rule,
                          [OPTION_IN_report] = scope->report,
                          [OPTION_IN_policy] = scope->policy};
  void *field = (char *)places[o->place] + o->offset;

  if (o->kind == OPTION_path)
    return set_path(scope, item, field);
  if (o->kind == OPTION_bool || o->kind == OPTION_choice)
    return set_boolean(scope, o, item, field);
  return set_number(scope, o, item, field);
}

/* The place of a value in a list of three words, or -1. */
static int find_word(const char *const words[3], const oconfig_value_t *v) {
  for (int i = 0; v->type == OCONFIG_TYPE_STRING && i < 3; i++)
    if (strcasecmp(words[i], v->value.string) == 0)
      return i;
  return -1;
}

/* --- options with rules of their own --- */

static int apply_proc_root(struct scope *scope, const oconfig_item_t *item) {
  const char *root;
  int rc = get_string(scope, item, &root);

  return rc < 0 ? rc
                : settings_set_proc_root(scope->settings, root, &scope->reason);
}

static int apply_report(struct scope *scope, const oconfig_item_t *item) {
  metric_set metrics = 0;

  config_error_format(&scope->reason, "expected strings in quotes: "
                                      "\"default\", \"detail\" or names of "
                                      "values");
  for (int i = 0; i < item->values_num; i++) {
    const oconfig_value_t *v = &item->values[i];
    metric_set found = 0;

    if (v->type == OCONFIG_TYPE_STRING)
      found = metric_find(v->value.string, &scope->reason);
    if (!found)
      return -EINVAL;
    metrics |= found;
  }
  scope->report->metrics |= metrics;
  return metrics ? 0 : -EINVAL;
}

static int apply_refresh(struct scope *scope, const oconfig_item_t *item) {
  static const char *const words[] = {"never", "adaptive", "always"};
  int found = item->values_num == 1 ? find_word(words, item->values) : -1;

  if (found < 0)
    return config_error_set(&scope->reason,
                            "expected \"adaptive\", \"always\" or \"never\"");
  scope->policy->refresh = REFRESH_NEVER + (unsigned)found;
  return 0;
}

static int apply_on_notification(struct scope *scope,
                                 const oconfig_item_t *item) {
  static const char *const words[] = {"okay", "warning", "failure"};
  unsigned severities = 0;
  int found = 0;

  for (int i = 0; found >= 0 && i < item->values_num; i++) {
    found = find_word(words, &item->values[i]);
    if (found >= 0)
      severities |= (unsigned)SEVERITY_OKAY << found;
  }
  if (found < 0 || !severities)
    return config_error_set(&scope->reason,
                            "expected at least one of \"okay\", \"warning\" "
                            "and \"failure\"");
  scope->settings->capture.severities = severities;
  return 0;
}

/* --- rules --- */

static int add_selector(struct scope *scope, const oconfig_item_t *item) {
  const char *pattern;
  int rc = get_string(scope, item, &pattern);

  if (rc < 0)
    return rc;
  return rule_add_selector(scope->rule, item->key, pattern, &scope->reason);
}

/* Checks a rule that is complete. Its text is the item and, if that is a block,
 * the items inside. */
static int finish_rule(struct scope *scope, struct rule *rule,
                       const oconfig_item_t *item) {
  char text[LINE_SIZE], *at = text, *end = text + LINE_SIZE;
  bool is_block = item->children_num > 0;

  if (is_block)
    *at++ = '<';
  config_describe(item, at, (size_t)(end - at));
  at += strlen(at);
  if (is_block)
    at += snprintf(at, (size_t)(end - at), ">");
  for (int i = 0; i < item->children_num && end - at > 4; i++) {
    at += snprintf(at, (size_t)(end - at), i == 0 ? " " : "; ");
    config_describe(&item->children[i], at, (size_t)(end - at));
    at += strlen(at);
  }
  rule->text = strdup(text);
  return rule->text ? settings_check_rule(scope->settings, rule, &scope->reason)
                    : -ENOMEM;
}

static int add_simple_rule(struct scope *scope, const oconfig_item_t *item,
                           const char *name, const char *option,
                           const char *pattern) {
  struct rule *rule;
  int rc = settings_add_rule(scope->settings, name, &rule, &scope->reason);

  if (rc == 0)
    rc = rule_add_selector(rule, option, pattern, &scope->reason);
  return rc == 0 ? finish_rule(scope, rule, item) : rc;
}

static int apply_process(struct scope *scope, const oconfig_item_t *item) {
  const char *comm;
  int rc = get_string(scope, item, &comm);

  return rc == 0 ? add_simple_rule(scope, item, comm, "Process", comm) : rc;
}

static int apply_process_match(struct scope *scope,
                               const oconfig_item_t *item) {
  const oconfig_value_t *v = item->values;

  if (item->values_num != 2 || v[0].type != OCONFIG_TYPE_STRING ||
      v[1].type != OCONFIG_TYPE_STRING)
    return config_error_set(&scope->reason, "expected a name and a regular "
                                            "expression, both in quotes");
  return add_simple_rule(scope, item, v[0].value.string, "CommandLineMatch",
                         v[1].value.string);
}

static const struct option alarm_options[] = {
    CHOICE("OomKill", report, alarms.causes[ALARM_OOM_KILL]),
    CHOICE("Ended", report, alarms.causes[ALARM_ENDED]),
    CHOICE("Growth", report, alarms.causes[ALARM_GROWTH]),
    CHOICE("CgroupLimit", report, alarms.causes[ALARM_CGROUP_LIMIT]),
    CHOICE("Unknown", report, alarms.causes[ALARM_UNKNOWN]),
    COUNT("LimitPercent", report, alarms.limit_percent, 100),
    SECONDS("FullWithin", report, alarms.full_within_ns, 60, 604800),
    {.name = NULL}};

static const struct option capture_options[] = {
    PATH("Directory", capture.directory),
    {"OnNotification", .apply = apply_on_notification},
    COUNT("TopProcesses", settings, capture.top_processes, 10000),
    COUNT("TopMappings", settings, capture.top_mappings, 10000),
    SECONDS("Cooldown", settings, capture.cooldown_ns, 0, 604800),
    COUNT("MaxFiles", settings, capture.max_files, 100000),
    OPTION("MaxBytes", uint64_t, bytes, settings, capture.max_bytes, 65536,
           1099511627776),
    CHOICE("CommandLines", settings, capture.command_lines),
    {.name = NULL}};

/* --- the tables --- */

static int apply_group(struct scope *scope, const oconfig_item_t *block);
static int apply_ignore(struct scope *scope, const oconfig_item_t *block);
static int apply_other(struct scope *scope, const oconfig_item_t *item);
static int apply_capture(struct scope *scope, const oconfig_item_t *block);
static int apply_alarms(struct scope *scope, const oconfig_item_t *block);

/* The options that the top level, a group and Other have in common. */
static const struct option common_options[] = {
    {"Report", .apply = apply_report},
    CHOICE("ValuesAbsolute", report, absolute),
    CHOICE("ValuesPercentage", report, percentage),
    SECONDS("GrowthWindow", report, growth_window_ns, 60, 604800),
    {"Alarms", .apply = apply_alarms, .is_block = true},
    {"Refresh", .apply = apply_refresh},
    SECONDS("MaxAge", policy, max_age_ns, 1, 86400),
    LOCK_HOLD("MaxLockHold", policy, max_lock_hold_ns, 0.1, 60000),
    {.name = NULL}};

static const struct option top_options[] = {
    {"Process", .apply = apply_process},
    {"ProcessMatch", .apply = apply_process_match},
    {"Group", .apply = apply_group, .is_block = true},
    {"Ignore", .apply = apply_ignore, .is_block = true},
    {"Other", .apply = apply_other, .is_block = true},
    BOOLEAN("Host", settings, reports_host),
    COUNT("MaxGroups", settings, max_groups, SETTINGS_MAX_GROUPS_LIMIT),
    {"ProcRoot", .apply = apply_proc_root},
    PATH("ContainerRoot", container_root),
    OPTION("ReadBudget", double, percent, settings, read_budget_percent, 0.01,
           100),
    SECONDS("ReadTimeout", settings, read_timeout_ns, 0.1, 60),
    PATH("StateFile", state_file),
    PATH("StateHistory", state_history),
    SECONDS("StateInterval", settings, state_interval_ns, 0, 86400),
    BOOLEAN("StateAtStart", settings, has_state_at_start),
    CHOICE("CommandLines", settings, command_lines),
    {"Capture", .apply = apply_capture, .is_block = true},
    {.rest = common_options}};

/* Options of a block besides the selectors. */
static const struct option group_options[] = {
    BOOLEAN("Children", rule, takes_children),
    BOOLEAN("Continue", rule, is_view),
    {.rest = common_options}};
static const struct option ignore_options[] = {
    BOOLEAN("Children", rule, takes_children), {.name = NULL}};

/* NULL if it is absent. */
static const struct option *find_option(const struct option *o,
                                        const char *key) {
  while (o && !(o->name && strcasecmp(o->name, key) == 0))
    o = o->name ? o + 1 : o->rest;
  return o;
}

const char *config_option(enum config_block block, size_t n) {
  static const struct option *const tables[] = {
      [CONFIG_PLUGIN] = top_options,
      [CONFIG_GROUP] = group_options,
      [CONFIG_IGNORE] = ignore_options,
      [CONFIG_CAPTURE] = capture_options,
      [CONFIG_ALARMS] = alarm_options};
  const struct option *o = tables[block];

  while (o && !(o->name && n-- == 0))
    o = o->name ? o + 1 : o->rest;
  return o ? o->name : NULL;
}

bool config_has_option(const char *key) {
  return find_option(top_options, key);
}

static int refuse_option(struct scope *scope, const char *key) {
  if (strcasecmp(key, "Interval") == 0)
    return config_error_set(&scope->reason,
                            "expected in <LoadPlugin smaps>, not here");
  return config_error_set(
      &scope->reason,
      "expected %san option of this block; there is no such option: see "
      "collectd-smaps(5)",
      scope->rule ? "a selector or " : "");
}

static int apply(struct scope *scope, const struct option *options,
                 const oconfig_item_t *item) {
  const struct option *option = find_option(options, item->key);

  if (!option && !(scope->rule && selector_find(item->key) >= 0))
    return refuse_option(scope, item->key);
  /* The items inside, such as a selector, would have no effect. */
  if (item->children_num > 0 && !(option && option->is_block))
    return config_error_set(&scope->reason, "expected an option, not a block");
  if (!option)
    return add_selector(scope, item);
  return option->apply ? option->apply(scope, item)
                       : set_field(scope, option, item);
}

/* Applies the items of a block. Logs each mistake, and returns 1 then. */
static int apply_block(struct scope *scope, const struct option *options,
                       const oconfig_item_t *block) {
  int status = 0;

  for (int i = 0; i < block->children_num; i++) {
    const oconfig_item_t *item = &block->children[i];
    int rc = apply(scope, options, item);

    if (rc < 0)
      log_mistake(scope->settings, block, item, rc, &scope->reason);
    if (rc != 0)
      status = 1;
  }
  return status;
}

/* --- blocks --- */

/* Fills a rule, or Other, with the block. */
static int fill_rule(struct scope *scope, struct rule *rule,
                     const struct option *options,
                     const oconfig_item_t *block) {
  struct scope inside = {.settings = scope->settings,
                         .rule = options == common_options ? NULL : rule,
                         .report = &rule->report,
                         .policy = &rule->policy};
  int rc = apply_block(&inside, options, block);

  return rc == 0 ? finish_rule(scope, rule, block) : rc;
}

static int apply_group(struct scope *scope, const oconfig_item_t *block) {
  struct rule *rule;
  const char *name;
  int rc = get_string(scope, block, &name);

  if (rc == 0)
    rc = settings_add_rule(scope->settings, name, &rule, &scope->reason);
  return rc == 0 ? fill_rule(scope, rule, group_options, block) : rc;
}

/* It may be a block. */
static int apply_other(struct scope *scope, const oconfig_item_t *item) {
  struct rule *other = &scope->settings->other;
  const char *name;
  int rc = get_string(scope, item, &name);

  if (rc == 0 && other->name)
    return config_error_set(&scope->reason, "expected only once");
  if (rc == 0)
    rc = rule_set_name(other, name, &scope->reason);
  return rc == 0 ? fill_rule(scope, other, common_options, item) : rc;
}

/* It would look like a block for the group of that name. */
static int refuse_name(struct scope *scope, const oconfig_item_t *block) {
  return block->values_num > 0
             ? config_error_set(&scope->reason,
                                "expected a block without a name")
             : 0;
}

static int apply_ignore(struct scope *scope, const oconfig_item_t *block) {
  struct rule *rule;
  int rc = refuse_name(scope, block);

  if (rc == 0)
    rc = settings_add_rule(scope->settings, NULL, &rule, &scope->reason);
  return rc == 0 ? fill_rule(scope, rule, ignore_options, block) : rc;
}

static int apply_capture(struct scope *scope, const oconfig_item_t *block) {
  int rc = refuse_name(scope, block);

  if (rc == 0)
    rc = apply_block(scope, capture_options, block);
  if (rc == 0 && !scope->settings->capture.directory)
    return config_error_set(&scope->reason,
                            "expected a Directory in the block");
  return rc;
}

/* "Alarms false" turns all of them off; a block chooses. */
static int apply_alarms(struct scope *scope, const oconfig_item_t *item) {
  struct option all = {.kind = OPTION_choice};
  enum choice choice = CHOICE_UNSET;
  int rc = 0;

  if (item->children_num > 0 && item->values_num > 0)
    return refuse_name(scope, item);
  if (item->values_num == 0)
    return apply_block(scope, alarm_options, item);
  rc = set_boolean(scope, &all, item, &choice);
  for (int i = 0; i < ALARM_CAUSES && rc == 0; i++)
    scope->report->alarms.causes[i] = choice;
  return rc;
}

int config_add_block(struct settings *s, const oconfig_item_t *block) {
  struct scope scope = {
      .settings = s, .report = &s->report, .policy = &s->policy};

  if (apply_block(&scope, top_options, block) != 0)
    return -1;
  if (!s->state_history || !s->capture.directory ||
      strcmp(s->state_history, s->capture.directory) != 0)
    return 0;
  /* Each of the two would remove the files of the other. */
  config_error_format(&scope.reason,
                      "expected different directories for StateHistory and "
                      "<Capture>, not \"%s\" for both",
                      s->state_history);
  log_mistake(s, block, block, -EINVAL, &scope.reason);
  return -1;
}
