#include "config.h"

#include <collectd/core/daemon/plugin.h>

#include <ctype.h>
#include <strings.h>

#include "option.h"

#define SUGGESTIONS_MAX 64

static int apply_report(struct scope *scope, const oconfig_item_t *item) {
  metric_set metrics = 0;

  for (int i = 0; i < item->values_num; i++) {
    metric_set found = 0;

    if (item->values[i].type == OCONFIG_TYPE_STRING)
      found = metric_find(item->values[i].value.string, &scope->reason);
    else
      config_error_format(&scope->reason, "expected strings in quotes");
    if (!found)
      return -EINVAL;
    metrics |= found;
  }
  if (!metrics)
    return config_error_set(&scope->reason,
                            "expected at least one string: \"default\", "
                            "\"detail\" or names of values");
  scope->report->metrics |= metrics;
  return 0;
}

static int apply_refresh(struct scope *scope, const oconfig_item_t *item) {
  static const struct {
    const char *word;
    enum refresh refresh;
  } words[] = {{"adaptive", REFRESH_ADAPTIVE},
               {"always", REFRESH_ALWAYS},
               {"never", REFRESH_NEVER}};
  const char *word;
  int rc = option_string(scope, item, &word);

  for (size_t i = 0; rc == 0 && i < sizeof(words) / sizeof(*words); i++) {
    if (strcasecmp(words[i].word, word) != 0)
      continue;
    scope->policy->refresh = words[i].refresh;
    return 0;
  }
  return rc < 0 ? rc
                : config_error_set(
                      &scope->reason,
                      "expected \"adaptive\", \"always\" or \"never\"");
}

static int apply_max_lock_hold(struct scope *scope,
                               const oconfig_item_t *item) {
  /* A limit that is set holds for processes that cannot be sampled, too. */
  scope->policy->unsampled_lock_hold_ns = 0;
  return option_time(scope, item, "milliseconds", NS_PER_MS, 0.1, 60000,
                     &scope->policy->max_lock_hold_ns);
}

static int apply_read_budget(struct scope *scope, const oconfig_item_t *item) {
  double percent;
  int rc = option_number(scope, item, &percent);

  if (rc < 0)
    return rc;
  return settings_set_read_budget(scope->settings, percent, &scope->reason);
}

static int add_selector(struct scope *scope, struct rule *rule,
                        const char *option, const char *pattern) {
  struct selector selector;
  int rc = selector_init(&selector, option, pattern, &scope->reason);

  return rc < 0 ? rc : rule_add_selector(rule, &selector);
}

static int apply_selector(struct scope *scope, const oconfig_item_t *item) {
  const char *pattern;
  int rc = option_string(scope, item, &pattern);

  return rc < 0 ? rc : add_selector(scope, scope->rule, item->key, pattern);
}

/* Makes a template that expands to the name. */
static char *quote_percent(const char *name) {
  char *quoted = malloc(2 * strlen(name) + 1);
  char *at = quoted;

  if (!quoted)
    return NULL;
  for (; *name; name++) {
    if (*name == '%')
      *at++ = '%';
    *at++ = *name;
  }
  *at = '\0';
  return quoted;
}

static int init_process_rule(struct scope *scope, struct rule *rule,
                             const char *comm) {
  struct selector selector;
  char *name;
  int rc = selector_init_process(&selector, comm, &scope->reason);

  if (rc < 0)
    return rc;
  name = quote_percent(comm);
  rc = name ? rule_init_group(rule, name, &scope->reason) : -ENOMEM;
  free(name);
  if (rc < 0) {
    selector_done(&selector);
    return rc;
  }
  rc = rule_add_selector(rule, &selector);
  if (rc < 0)
    rule_done(rule);
  return rc;
}

/* Sets the text of the rule: its item, and the items inside if it is a block.
 */
static int set_text(struct rule *rule, const oconfig_item_t *item,
                    bool is_block) {
  char text[2048], *at = text, *end = text + sizeof(text);

  *at = '\0';
  if (is_block)
    *at++ = '<';
  option_describe(item, at, (size_t)(end - at));
  at += strlen(at);
  if (is_block)
    at += snprintf(at, (size_t)(end - at), ">");
  for (int i = 0; i < item->children_num && end - at > 4; i++) {
    at += snprintf(at, (size_t)(end - at), i == 0 ? " " : "; ");
    option_describe(&item->children[i], at, (size_t)(end - at));
    at += strlen(at);
  }
  return rule_set_text(rule, text);
}

/* Owns the rule from then on. */
static int add_rule(struct scope *scope, struct rule *rule,
                    const oconfig_item_t *item, bool is_block) {
  int rc = set_text(rule, item, is_block);

  if (rc < 0) {
    rule_done(rule);
    return rc;
  }
  return settings_add_rule(scope->settings, rule, &scope->reason);
}

static int apply_process(struct scope *scope, const oconfig_item_t *item) {
  struct rule rule;
  const char *comm;
  int rc = option_string(scope, item, &comm);

  if (rc == 0)
    rc = init_process_rule(scope, &rule, comm);
  return rc < 0 ? rc : add_rule(scope, &rule, item, false);
}

static int apply_process_match(struct scope *scope,
                               const oconfig_item_t *item) {
  struct rule rule;
  int rc;

  if (item->values_num != 2 || item->values[0].type != OCONFIG_TYPE_STRING ||
      item->values[1].type != OCONFIG_TYPE_STRING)
    return config_error_set(&scope->reason, "expected a name and a regular "
                                            "expression, both in quotes");
  rc = rule_init_group(&rule, item->values[0].value.string, &scope->reason);
  if (rc < 0)
    return rc;
  rc = add_selector(scope, &rule, "CommandLineMatch",
                    item->values[1].value.string);
  if (rc < 0) {
    rule_done(&rule);
    return rc;
  }
  return add_rule(scope, &rule, item, false);
}

/* --- captures --- */

static unsigned find_severity(const char *word) {
  static const struct {
    const char *word;
    enum severity severity;
  } words[] = {{"okay", SEVERITY_OKAY},
               {"warning", SEVERITY_WARNING},
               {"failure", SEVERITY_FAILURE}};

  for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
    if (strcasecmp(words[i].word, word) == 0)
      return words[i].severity;
  return 0;
}

static int apply_on_notification(struct scope *scope,
                                 const oconfig_item_t *item) {
  unsigned severities = 0;

  for (int i = 0; i < item->values_num; i++) {
    unsigned found = item->values[i].type == OCONFIG_TYPE_STRING
                         ? find_severity(item->values[i].value.string)
                         : 0;

    if (!found)
      return config_error_set(&scope->reason,
                              "expected \"okay\", \"warning\" or "
                              "\"failure\"");
    severities |= found;
  }
  if (!severities)
    return config_error_set(&scope->reason,
                            "expected at least one string: "
                            "\"okay\", \"warning\" or \"failure\"");
  scope->settings->capture.severities = severities;
  return 0;
}

/* Parses "64", "64K", "64M" or "64G", in powers of 1,024. */
static bool parse_size(const char *text, uint64_t *ret) {
  static const char units[] = "KMG";
  struct cursor s = cursor_begin(text, strlen(text));
  uint64_t value;
  const char *unit;

  if (!parse_u64(&s, &value))
    return false;
  if (!cursor_is_done(&s)) {
    unit = strchr(units, toupper((unsigned char)*s.at));
    if (!unit || s.at + 1 != s.end ||
        __builtin_mul_overflow(value, UINT64_C(1024) << 10 * (unit - units),
                               &value))
      return false;
  }
  *ret = value;
  return true;
}

static int apply_max_bytes(struct scope *scope, const oconfig_item_t *item) {
  const uint64_t least = 64 << 10, most = UINT64_C(1) << 40;
  const oconfig_value_t *v = item->values;
  uint64_t bytes = 0;

  if (item->values_num == 1 && v->type == OCONFIG_TYPE_NUMBER &&
      v->value.number >= 0 && v->value.number <= (double)most)
    bytes = (uint64_t)v->value.number;
  else if (item->values_num != 1 || v->type != OCONFIG_TYPE_STRING ||
           !parse_size(v->value.string, &bytes))
    bytes = 0;
  if (bytes < least || bytes > most)
    return config_error_set(&scope->reason,
                            "expected a number of bytes from 64K to "
                            "1024G, such as \"64M\"");
  scope->settings->capture.max_bytes = bytes;
  return 0;
}

static const struct option capture_options[] = {
    {"Directory", .set = settings_set_capture_directory},
    {"OnNotification", .apply = apply_on_notification},
    COUNT("TopProcesses", settings, capture.top_processes, 10000),
    COUNT("TopMappings", settings, capture.top_mappings, 10000),
    SECONDS("Cooldown", settings, capture.cooldown_ns, 0, 604800),
    COUNT("MaxFiles", settings, capture.max_files, 100000),
    {"MaxBytes", .apply = apply_max_bytes},
    CHOICE("CommandLines", settings, capture.command_lines),
    {.name = NULL}};

/* --- the tables --- */

static int apply_group(struct scope *scope, const oconfig_item_t *block);
static int apply_ignore(struct scope *scope, const oconfig_item_t *block);
static int apply_other(struct scope *scope, const oconfig_item_t *item);
static int apply_capture(struct scope *scope, const oconfig_item_t *block);

static const struct option top_options[] = {
    {"Process", .apply = apply_process},
    {"ProcessMatch", .apply = apply_process_match},
    {"Group", .apply = apply_group, .is_block = true},
    {"Ignore", .apply = apply_ignore, .is_block = true},
    {"Other", .apply = apply_other, .is_block = true},
    BOOLEAN("Host", settings, reports_host),
    COUNT("MaxGroups", settings, max_groups, SETTINGS_MAX_GROUPS_LIMIT),
    {"Report", .apply = apply_report},
    CHOICE("ValuesAbsolute", report, absolute),
    CHOICE("ValuesPercentage", report, percentage),
    SECONDS("GrowthWindow", report, growth_window_ns, 60, 604800),
    {"ProcRoot", .set = settings_set_proc_root},
    {"ContainerRoot", .set = settings_set_container_root},
    {"Refresh", .apply = apply_refresh},
    {"ReadBudget", .apply = apply_read_budget},
    SECONDS("MaxAge", policy, max_age_ns, 1, 86400),
    {"MaxLockHold", .apply = apply_max_lock_hold},
    SECONDS("ReadTimeout", settings, read_timeout_ns, 0.1, 60),
    {"StateFile", .set = settings_set_state_file},
    {"StateHistory", .set = settings_set_state_history},
    SECONDS("StateInterval", settings, state_interval_ns, 0, 86400),
    BOOLEAN("StateAtStart", settings, has_state_at_start),
    CHOICE("CommandLines", settings, command_lines),
    {"Capture", .apply = apply_capture, .is_block = true},
    {.name = NULL}};

/* Options of a block besides the selectors. The first two are about rules. */
static const struct option group_options[] = {
    BOOLEAN("Children", rule, takes_children),
    BOOLEAN("Continue", rule, is_view),
    {"Report", .apply = apply_report},
    CHOICE("ValuesAbsolute", report, absolute),
    CHOICE("ValuesPercentage", report, percentage),
    SECONDS("GrowthWindow", report, growth_window_ns, 60, 604800),
    {"Refresh", .apply = apply_refresh},
    SECONDS("MaxAge", policy, max_age_ns, 1, 86400),
    {"MaxLockHold", .apply = apply_max_lock_hold},
    {.name = NULL}};
static const struct option *const other_options = group_options + 2;
static const struct option ignore_options[] = {
    BOOLEAN("Children", rule, takes_children), {.name = NULL}};

bool config_has_option(const char *key) {
  return option_find(top_options, key);
}

static bool is_selector(const char *key) {
  for (size_t i = 0; selector_options[i]; i++)
    if (strcasecmp(selector_options[i], key) == 0)
      return true;
  return false;
}

static int refuse_option(struct scope *scope, const struct option *options,
                         const char *key) {
  const char *known[SUGGESTIONS_MAX];
  const char *nearest;
  size_t n = 0;

  if (strcasecmp(key, "Interval") == 0)
    return config_error_set(&scope->reason,
                            "expected in <LoadPlugin smaps>, not here");
  for (const struct option *o = options; o->name; o++)
    known[n++] = o->name;
  for (size_t i = 0; scope->rule && selector_options[i]; i++)
    known[n++] = selector_options[i];
  nearest = config_error_nearest(key, known, n);
  return config_error_set(
      &scope->reason, "expected %s; there is no such option%s%s%s",
      scope->rule              ? "a selector or an option of this block"
      : options != top_options ? "an option of this block"
                               : "an option of the smaps plugin",
      nearest ? ", did you mean " : "", nearest ? nearest : "",
      nearest ? "?" : "");
}

static int apply(struct scope *scope, const struct option *options,
                 const oconfig_item_t *item) {
  const struct option *option = option_find(options, item->key);

  if (!option && !(scope->rule && is_selector(item->key)))
    return refuse_option(scope, options, item->key);
  if (item->children_num > 0 && !(option && option->is_block))
    return config_error_set(&scope->reason, "expected an option, not a block");
  return option ? option_apply(scope, option, item)
                : apply_selector(scope, item);
}

/* Applies the items of a block. Logs each mistake, and returns 1 then. */
static int apply_block(struct scope *scope, const struct option *options,
                       const oconfig_item_t *block) {
  int status = 0;

  for (int i = 0; i < block->children_num; i++) {
    const oconfig_item_t *item = &block->children[i];
    int rc = apply(scope, options, item);

    if (rc < 0)
      option_log_mistake(scope->settings, block, item, rc, &scope->reason);
    if (rc != 0)
      status = 1;
  }
  return status;
}

/* --- blocks. They return 1 after a mistake inside was logged --- */

/* Fills an initialized rule with the block and adds it. */
static int add_rule_block(struct scope *scope, struct rule *rule,
                          const struct option *options,
                          const oconfig_item_t *block) {
  struct scope inside = {.settings = scope->settings,
                         .rule = rule,
                         .report = &rule->report,
                         .policy = &rule->policy};
  int rc = apply_block(&inside, options, block);

  if (rc == 0)
    return add_rule(scope, rule, block, true);
  rule_done(rule);
  return rc;
}

static int apply_group(struct scope *scope, const oconfig_item_t *block) {
  struct rule rule;
  const char *name;
  int rc = option_string(scope, block, &name);

  if (rc == 0)
    rc = rule_init_group(&rule, name, &scope->reason);
  return rc == 0 ? add_rule_block(scope, &rule, group_options, block) : rc;
}

static int apply_ignore(struct scope *scope, const oconfig_item_t *block) {
  struct rule rule;

  if (block->values_num > 0)
    return config_error_set(&scope->reason, "expected a block without a name");
  rule_init_ignore(&rule);
  return add_rule_block(scope, &rule, ignore_options, block);
}

/* Other "name", or <Other "name"> with options. */
static int apply_other(struct scope *scope, const oconfig_item_t *item) {
  struct settings *s = scope->settings;
  struct rule made = {.is_ignore = false};
  struct scope inside = {
      .settings = s, .report = &made.report, .policy = &made.policy};
  const char *name;
  int rc = option_string(scope, item, &name);

  if (rc == 0)
    rc = apply_block(&inside, other_options, item);
  if (rc == 0)
    rc = settings_set_other(s, name, &scope->reason);
  if (rc != 0)
    return rc;
  s->other.report = made.report;
  s->other.policy = made.policy;
  return set_text(&s->other, item, item->children_num > 0);
}

static int apply_capture(struct scope *scope, const oconfig_item_t *block) {
  int rc;

  if (block->values_num > 0)
    return config_error_set(&scope->reason, "expected a block without a name");
  rc = apply_block(scope, capture_options, block);
  if (rc == 0 && !scope->settings->capture.directory)
    return config_error_set(&scope->reason,
                            "expected a Directory in the block");
  return rc;
}

/* --- checks of two options together, after a block is read --- */

/* The last item of an option wins. NULL if there is none. */
static const oconfig_item_t *find_last(const oconfig_item_t *block,
                                       const char *key) {
  for (int i = block->children_num; i-- > 0;)
    if (strcasecmp(block->children[i].key, key) == 0)
      return &block->children[i];
  return NULL;
}

static int refuse(const struct settings *s, const oconfig_item_t *block,
                  const oconfig_item_t *item,
                  const struct config_error *reason) {
  option_log_mistake(s, block, item, -EINVAL, reason);
  return -1;
}

static uint64_t longest_max_lock_hold_ns(const struct settings *s) {
  uint64_t longest_ns = s->policy.max_lock_hold_ns;

  if (s->other.policy.max_lock_hold_ns > longest_ns)
    longest_ns = s->other.policy.max_lock_hold_ns;
  for (size_t i = 0; i < s->n_rules; i++)
    if (s->rules[i].policy.max_lock_hold_ns > longest_ns)
      longest_ns = s->rules[i].policy.max_lock_hold_ns;
  return longest_ns;
}

/* Refuses the option of the two that this block has, or else the block. */
static int check_times(const struct settings *s, const oconfig_item_t *block) {
  const oconfig_item_t *item = find_last(block, "ReadTimeout");
  uint64_t max_lock_hold_ns = longest_max_lock_hold_ns(s);
  struct config_error reason;

  if (max_lock_hold_ns <= s->read_timeout_ns)
    return 0;
  if (!item)
    item = find_last(block, "MaxLockHold");
  config_error_format(&reason,
                      "expected MaxLockHold (%g milliseconds) not above "
                      "ReadTimeout (%g seconds), after which a read counts as "
                      "hung",
                      (double)max_lock_hold_ns / NS_PER_MS,
                      (double)s->read_timeout_ns / NS_PER_S);
  return refuse(s, block, item ? item : block, &reason);
}

/* Each of the two directories would remove the files of the other. */
static int check_directories(const struct settings *s,
                             const oconfig_item_t *block) {
  const oconfig_item_t *item = find_last(block, "StateHistory");
  struct config_error reason;

  if (!item)
    item = find_last(block, "Capture");
  if (!item || !s->state_history || !s->capture.directory ||
      strcmp(s->state_history, s->capture.directory) != 0)
    return 0;
  config_error_format(&reason,
                      "expected different directories for StateHistory and "
                      "<Capture>");
  return refuse(s, block, item, &reason);
}

int config_add_block(struct settings *s, const oconfig_item_t *block) {
  struct scope scope = {
      .settings = s, .report = &s->report, .policy = &s->policy};

  if (apply_block(&scope, top_options, block) != 0 || check_times(s, block) < 0)
    return -1;
  return check_directories(s, block);
}
