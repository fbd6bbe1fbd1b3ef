/* Options of a block of the configuration: how they are found, how their values
 * are taken, and what is said of one that is wrong. */
#ifndef SMAPS_PLUGIN_OPTION_H
#define SMAPS_PLUGIN_OPTION_H

#include <collectd/core/daemon/collectd.h>
#include <collectd/liboconfig/oconfig.h>

#include <smaps/settings.h>

/* Where an option stands, and what it may change there. */
struct scope {
  struct settings *settings;
  struct rule *rule; /* NULL at the top level */
  struct report *report;
  struct policy *policy;
  struct reason reason;
};

struct option {
  const char *name;
  /* 0, -EINVAL with scope->reason set, or -ENOMEM. */
  int (*apply)(struct scope *scope, const oconfig_item_t *item);
};

/* In a table that ends with a NULL name; NULL if it is not there. */
const struct option *option_find(const struct option *options, const char *key);

/*
 * The one value of an item: 0, or -EINVAL with scope->reason set and *ret as it
 * was. A string belongs to the item. A time is in units of `unit_ns`, and a
 * count is whole; each in a range, whose ends are in it.
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

/* An item as it stands in the file, on one line, for messages. */
void option_describe(const oconfig_item_t *item, char *ret, size_t size);

/* Logs the one line for a mistake; `block` is what the item stands in. */
void option_log_mistake(const oconfig_item_t *block, const oconfig_item_t *item,
                        int r, const struct reason *reason);

#endif
