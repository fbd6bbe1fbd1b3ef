/* SPDX-License-Identifier: MIT */
/*
 * The metrics of a group: their names, their types (stock types of collectd),
 * and their selection by Report, ValuesAbsolute and ValuesPercentage.
 */
#ifndef SMAPS_METRIC_H
#define SMAPS_METRIC_H

#include "cgroup/memory_cgroup.h"
#include "report/alarm.h"
#include "report/growth.h"
#include "report/usage.h"
#include <smaps/config_error.h>

/* Bit per metric, in the order of the table in metric.c. */
typedef uint64_t metric_set;

/* Report, ValuesAbsolute, ValuesPercentage, GrowthWindow and Alarms of one
 * group or of all. */
struct report {
  metric_set metrics;        /* 0: not set */
  uint64_t growth_window_ns; /* likewise */
  enum choice absolute;
  enum choice percentage;
  struct alarm_policy alarms;
  unsigned cgroup_wants; /* CGROUP_WANTS_ of what is read for it alone */
};

/*
 * The metrics that a word of Report names: "default", "detail" (all metrics) or
 * the name of one metric; the case is ignored. "age" comes with a metric that
 * is as old as the readings, because no error says so. Returns 0 for another
 * word, with the expected words in *reason.
 */
metric_set metric_find(const char *word, struct config_error *reason);

/* The CGROUP_WANTS_ of what is read only because of these metrics. */
unsigned metric_cgroup_wants(metric_set metrics);

/* One value list, without host, plugin and plugin instance. */
struct metric_value {
  metric_set metric; /* the bit of its metric */
  bool is_percentage;
  const char *type;
  char type_instance[32]; /* may be empty */
  double values[2];       /* NaN: unknown */
  size_t n;
};

struct metric_context {
  uint32_t kernel_fields; /* bit per rollup_field that this kernel has */
  uint64_t mem_total;     /* 0: unknown */
  bool has_uptime;        /* the times since start are known */
};

/* A group: the sums of its members, its control group and its growth. */
struct metric_subject {
  const struct usage *usage;
  const struct cgroup_memory *cgroup; /* NULL: it has no control group */
  const struct growth *growth;        /* NULL: not followed */
  uint64_t mem_total; /* metric_next() takes it from the context */
};

/* Gets the next value to publish. *cursor starts at 0. False at the end. */
bool metric_next(const struct metric_subject *s, const struct report *r,
                 const struct metric_context *context, unsigned *cursor,
                 struct metric_value *ret);

/* Gets the next known amount of the rollup and its name in Report. *cursor
 * starts at 0. False at the end. */
bool metric_next_amount(const struct usage *u, uint32_t kernel_fields,
                        unsigned *cursor, const char **ret_name,
                        uint64_t *ret_bytes);

#endif
