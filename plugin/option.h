/* Options of a configuration block: lookup, parsing of values, error lines. */
#ifndef SMAPS_PLUGIN_OPTION_H
#define SMAPS_PLUGIN_OPTION_H

#include <collectd/core/daemon/collectd.h>
#include <collectd/liboconfig/oconfig.h>

#include <smaps/settings.h>

/* The block of an option, and the settings that the option may change. */
struct scope {
  struct settings *settings;
  struct rule *rule; /* NULL at the top level */
  struct report *report;
  struct policy *policy;
  struct config_error reason;
};

struct option {
  const char *name;
  /* 0, -EINVAL with scope->reason set, or -ENOMEM. */
  int (*apply)(struct scope *scope, const oconfig_item_t *item);
};

/* Finds an option in a table that ends with a NULL name; NULL if absent. */
const struct option *option_find(const struct option *options, const char *key);

/*
 * Get the only value of an item. They return 0, or -EINVAL with scope->reason
 * set and *ret unchanged. The item owns a string. A time is in units of
 * `unit_ns`; a count is a whole number; both ends of a range are allowed.
 */
int option_string(struct scope *scope, const oconfig_item_t *item,
                  const char **ret);
int option_number(struct scope *scope, const oconfig_item_t *item, double *ret);
int option_boolean(struct scope *scope, const oconfig_item_t *item, bool *ret);
int option_choice(struct scope *scope, const oconfig_item_t *item,
                  enum choice *ret);
int option_time(struct scope *scope, const oconfig_item_t *item,
                const char *unit, uint64_t unit_ns, double least, double most,
                uint64_t *ret_ns);
int option_count(struct scope *scope, const oconfig_item_t *item, unsigned most,
                 uint64_t *ret);

/* Formats an item as in the file, on one line, for messages. */
void option_describe(const oconfig_item_t *item, char *ret, size_t size);

/* Logs the error line of an item in `block`, with s->source before it. */
void option_log_mistake(const struct settings *s, const oconfig_item_t *block,
                        const oconfig_item_t *item, int rc,
                        const struct config_error *reason);

#endif
