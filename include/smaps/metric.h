/*
 * What is published of a group, under which of collectd's stock types, and how
 * a user chooses from it.
 */
#ifndef SMAPS_METRIC_H
#define SMAPS_METRIC_H

#include <smaps/reason.h>
#include <smaps/usage.h>

/* Bit per metric, in an order of our own. */
typedef uint64_t metric_set;

enum choice { CHOICE_UNSET, CHOICE_NO, CHOICE_YES };

/* Report, ValuesAbsolute and ValuesPercentage, of a group or of all. */
struct report {
  metric_set metrics; /* 0 where not set */
  enum choice absolute;
  enum choice percentage;
};

/* Fills what is unset from a report that is set higher up. */
void report_inherit(struct report *r, const struct report *from);

/* The set that collectd-smaps publishes where nothing is said. */
metric_set metric_default_set(void);

/*
 * The metrics that a word of `Report` stands for: "default", "detail" (which
 * takes in the default ones) or a metric's name, case apart. Returns 0 for any
 * other, with what was expected in *reason.
 */
metric_set metric_find(const char *word, struct reason *reason);

/* One value list, without the names of host, plugin and group. */
struct metric_value {
  const char *type;
  char type_instance[32]; /* may be empty */
  double values[2];       /* NaN where not known */
  size_t n;
};

struct metric_context {
  uint32_t kernel_fields; /* bit per rollup_field that this kernel has */
  uint64_t mem_total;     /* 0 where not known */
};

/*
 * The next value to publish, from *cursor, which is 0 at first. False behind
 * the last one.
 */
bool metric_next(const struct usage *u, const struct report *r,
                 const struct metric_context *context, unsigned *cursor,
                 struct metric_value *ret);

/* The next of the amounts that come from the rollup, under its name in Report,
 * from *cursor as above. Those that are not known are passed over. */
bool metric_next_amount(const struct usage *u, uint32_t kernel_fields,
                        unsigned *cursor, const char **ret_name,
                        uint64_t *ret_bytes);

#endif
