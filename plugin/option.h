/* Options of a configuration block: lookup, parsing of values, error lines. */
#ifndef SMAPS_PLUGIN_OPTION_H
#define SMAPS_PLUGIN_OPTION_H

#include <collectd/core/daemon/collectd.h>
#include <collectd/liboconfig/oconfig.h>

#include <stddef.h>

#include <smaps/settings.h>

/* The block of an option, and the settings that the option may change. */
struct scope {
  struct settings *settings;
  struct rule *rule; /* NULL at the top level */
  struct report *report;
  struct policy *policy;
  struct config_error reason;
};

/* What an option sets: the type of a field. */
enum option_kind {
  OPTION_bool,
  OPTION_choice,
  OPTION_seconds, /* from least to most; the field is in nanoseconds */
  OPTION_count    /* a whole number from 1 to most */
};

/* The member of struct scope that has the field. */
enum option_place {
  OPTION_IN_settings,
  OPTION_IN_rule,
  OPTION_IN_report,
  OPTION_IN_policy
};

/* One of apply, set and a field. */
struct option {
  const char *name;
  /* 0, -EINVAL with scope->reason set, or -ENOMEM. */
  int (*apply)(struct scope *scope, const oconfig_item_t *item);
  bool is_block; /* it may be one */
  /* The same for an option with one string. */
  int (*set)(struct settings *s, const char *value,
             struct config_error *reason);
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
#define SECONDS(name_, struct_, field_, least_, most_)                         \
  OPTION(name_, uint64_t, seconds, struct_, field_, least_, most_)
#define COUNT(name_, struct_, field_, most_)                                   \
  OPTION(name_, uint64_t, count, struct_, field_, 1, most_)
/* clang-format on */

/* Applies an item that has no block. Returns as apply() does. */
int option_apply(struct scope *scope, const struct option *option,
                 const oconfig_item_t *item);

/* Finds an option in a table that ends with a NULL name; NULL if absent. */
const struct option *option_find(const struct option *options, const char *key);

/*
 * Get the only value of an item. They return 0, or -EINVAL with scope->reason
 * set and *ret unchanged. The item owns a string. A time is in units of
 * `unit_ns`; both ends of its range are allowed.
 */
int option_string(struct scope *scope, const oconfig_item_t *item,
                  const char **ret);
int option_number(struct scope *scope, const oconfig_item_t *item, double *ret);
int option_time(struct scope *scope, const oconfig_item_t *item,
                const char *unit, uint64_t unit_ns, double least, double most,
                uint64_t *ret_ns);

/* Formats an item as in the file, on one line, for messages. */
void option_describe(const oconfig_item_t *item, char *ret, size_t size);

/* Logs the error line of an item in `block`, with s->source before it. */
void option_log_mistake(const struct settings *s, const oconfig_item_t *block,
                        const oconfig_item_t *item, int rc,
                        const struct config_error *reason);

#endif
