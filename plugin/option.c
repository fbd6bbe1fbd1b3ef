#include "option.h"

#include <collectd/core/daemon/plugin.h>

#include <strings.h>

#include <smaps/text.h>

void option_describe(const oconfig_item_t *item, char *ret, size_t size) {
  size_t len = (size_t)snprintf(ret, size, "%s", item->key);

  for (int i = 0; i < item->values_num && len < size; i++) {
    const oconfig_value_t *v = &item->values[i];
    char text[200];
    int n = 0;

    if (v->type == OCONFIG_TYPE_STRING)
      n = snprintf(ret + len, size - len, " \"%s\"",
                   escape_text(v->value.string, strlen(v->value.string), text,
                               sizeof(text)));
    else if (v->type == OCONFIG_TYPE_NUMBER)
      n = snprintf(ret + len, size - len, " %.15g", v->value.number);
    else
      n = snprintf(ret + len, size - len, " %s",
                   v->value.boolean ? "true" : "false");
    len += (size_t)n;
  }
}

/* "SOURCE: <BLOCK>: ", or the part of it that is known. */
static void describe_place(const struct settings *s,
                           const oconfig_item_t *block, char *ret,
                           size_t size) {
  char text[256];
  size_t len = 0;

  *ret = '\0';
  if (s->source)
    len = (size_t)snprintf(
        ret, size,
        "%s: ", escape_text(s->source, strlen(s->source), text, sizeof(text)));
  if (strcasecmp(block->key, "Plugin") == 0)
    return;
  option_describe(block, text, sizeof(text));
  snprintf(ret + len, size - len, "<%s>: ", text);
}

/* Standard error has the line too, because the daemon ends after it, and a
 * minimal system has no syslog where the line could be read. If the log is
 * standard error itself, the line is written once: glibc's stderr is a
 * variable, so it can be replaced for the time of the log. */
static void log_line(const struct settings *s, const char *line) {
  char seen[2048] = "";
  FILE *real = stderr;
  FILE *kept = s->logs_to_stderr ? fmemopen(seen, sizeof(seen), "w") : NULL;

  if (kept)
    stderr = kept;
  ERROR("%s", line);
  stderr = real;
  if (!kept)
    return;
  fclose(kept);
  if (*seen)
    fputs(seen, stderr);
  else
    fprintf(stderr, "%s\n", line);
}

void option_log_mistake(const struct settings *s, const oconfig_item_t *block,
                        const oconfig_item_t *item, int rc,
                        const struct config_error *reason) {
  char where[640], what[512], line[1536];

  option_describe(item, what, sizeof(what));
  describe_place(s, block, where, sizeof(where));
  snprintf(line, sizeof(line), "smaps plugin: %s%s: %s", where, what,
           rc == -ENOMEM ? "out of memory" : reason->text);
  log_line(s, line);
}

int option_string(struct scope *scope, const oconfig_item_t *item,
                  const char **ret) {
  if (item->values_num != 1 || item->values[0].type != OCONFIG_TYPE_STRING)
    return config_error_set(&scope->reason, "expected one string in quotes");
  *ret = item->values[0].value.string;
  return 0;
}

int option_number(struct scope *scope, const oconfig_item_t *item,
                  double *ret) {
  if (item->values_num != 1 || item->values[0].type != OCONFIG_TYPE_NUMBER)
    return config_error_set(&scope->reason,
                            "expected a number, without quotes and unit");
  *ret = item->values[0].value.number;
  return 0;
}

static int option_boolean(struct scope *scope, const oconfig_item_t *item,
                          bool *ret) {
  if (item->values_num != 1 || item->values[0].type != OCONFIG_TYPE_BOOLEAN)
    return config_error_set(&scope->reason,
                            "expected true or false, without quotes");
  *ret = item->values[0].value.boolean != 0;
  return 0;
}

static int option_choice(struct scope *scope, const oconfig_item_t *item,
                         enum choice *ret) {
  bool value;
  int rc = option_boolean(scope, item, &value);

  if (rc == 0)
    *ret = value ? CHOICE_YES : CHOICE_NO;
  return rc;
}

int option_time(struct scope *scope, const oconfig_item_t *item,
                const char *unit, uint64_t unit_ns, double least, double most,
                uint64_t *ret_ns) {
  double value;

  if (option_number(scope, item, &value) < 0)
    return config_error_set(&scope->reason,
                            "expected a number of %s, without quotes and unit",
                            unit);
  if (!(value >= least && value <= most))
    return config_error_set(&scope->reason,
                            "expected a number of %s from %g to %g", unit,
                            least, most);
  *ret_ns = (uint64_t)(value * (double)unit_ns);
  return 0;
}

static int option_count(struct scope *scope, const oconfig_item_t *item,
                        unsigned most, uint64_t *ret) {
  double n;
  int rc = option_number(scope, item, &n);

  if (rc < 0)
    return rc;
  if (!(n >= 1 && n <= most) || n != (double)(uint64_t)n)
    return config_error_set(&scope->reason,
                            "expected a whole number from 1 to %u", most);
  *ret = (uint64_t)n;
  return 0;
}

const struct option *option_find(const struct option *options,
                                 const char *key) {
  for (; options->name; options++)
    if (strcasecmp(options->name, key) == 0)
      return options;
  return NULL;
}

static int set_text(struct scope *scope, const struct option *o,
                    const oconfig_item_t *item) {
  const char *value;
  int rc = option_string(scope, item, &value);

  return rc < 0 ? rc : o->set(scope->settings, value, &scope->reason);
}

static int set_field(struct scope *scope, const struct option *o,
                     const oconfig_item_t *item, void *field) {
  switch (o->kind) {
  case OPTION_bool:
    return option_boolean(scope, item, field);
  case OPTION_choice:
    return option_choice(scope, item, field);
  case OPTION_seconds:
    return option_time(scope, item, "seconds", NS_PER_S, o->least, o->most,
                       field);
  case OPTION_count:
    break;
  }
  return option_count(scope, item, (unsigned)o->most, field);
}

int option_apply(struct scope *scope, const struct option *o,
                 const oconfig_item_t *item) {
  void *const places[] = {[OPTION_IN_settings] = scope->settings,
                          [OPTION_IN_rule] = scope->rule,
                          [OPTION_IN_report] = scope->report,
                          [OPTION_IN_policy] = scope->policy};

  if (o->apply)
    return o->apply(scope, item);
  if (o->set)
    return set_text(scope, o, item);
  return set_field(scope, o, item, (char *)places[o->place] + o->offset);
}
