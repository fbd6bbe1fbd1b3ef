/* SPDX-License-Identifier: MIT */
#include "report/metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The first two are amounts, and the first five need fields of the rollup. */
enum source {
  FROM_ROLLUP,  /* a field of the rollup */
  FROM_DERIVED, /* computed from such fields */
  FROM_SUM,     /* likewise, a sum of amounts; documents have the amounts */
  FROM_ERRORS,  /* likewise, the error of a field */
  FROM_GROUP,   /* likewise, but only of a whole group */
  FROM_PARTS,   /* likewise, as a percentage of others */
  FROM_STATM,
  FROM_COUNTS,  /* known even if nothing could be read */
  FROM_THREADS, /* likewise, but memory */
  FROM_START,   /* likewise, if the time since boot is known */
  FROM_CGROUP,  /* only of a group that is a whole control group */
  /* Likewise; the percentage is how much is used, and is always published. */
  FROM_CGROUP_LIMIT,
  FROM_CGROUP_COUNTS,
  FROM_GROWTH,
};

/* The type instance is the name, or empty if the type has that name. */
struct metric {
  const char *name; /* in Report */
  const char *type;
  enum source source;
  /* The field of FROM_ROLLUP; for others, the field that the value needs. Of a
   * control group: CGROUP_WANTS_ of what is read only for this value. */
  unsigned field;
  bool is_default;
  /* NULL for FROM_ROLLUP. */
  double (*value)(const struct metric_subject *s);
};

#define UNKNOWN ((double)NAN)

static double count(const struct usage *u, uint64_t n) {
  return u->perhaps ? UNKNOWN : (double)n;
}

/* At most 100, because an error can exceed its value, and types.db allows no
 * more than 100.1. */
static double percent(uint64_t part, uint64_t whole) {
  if (part >= whole)
    return part > 0 ? 100 : 0;
  return 100 * (double)part / (double)whole;
}

static double cgroup_field(const struct metric_subject *s, unsigned field,
                           uint64_t value) {
  return cgroup_memory_has(s->cgroup, field) ? (double)value : UNKNOWN;
}

static double pressure(const struct metric_subject *s, double percent) {
  return cgroup_memory_has(s->cgroup, CGROUP_HAS_PRESSURE) ? percent : UNKNOWN;
}

static double limit(const struct metric_subject *s) {
  uint64_t bytes;

  return cgroup_memory_limit(s->cgroup, s->mem_total, &bytes) ? (double)bytes
                                                              : UNKNOWN;
}

/* clang-format off */
#define VALUE(name, expression)                                                \
  static double name(const struct metric_subject *s) {                         \
    const struct usage *u = s->usage;                                          \
                                                                               \
    (void)u;                                                                   \
    return (double)(expression);                                               \
  }
VALUE(uss, u->uss)
VALUE(shared, u->rollup.bytes[ROLLUP_RSS] - u->uss)
VALUE(epss, u->rollup.bytes[ROLLUP_PSS] + u->rollup.bytes[ROLLUP_SWAP_PSS])
VALUE(size, u->size)
VALUE(text, u->text)
VALUE(data, u->data)
VALUE(resident, u->resident)
VALUE(resident_shared, u->resident_shared)
VALUE(unreadable, u->unreadable)
VALUE(kernel_stack, u->kernel_stack)
VALUE(page_tables,
      usage_has_page_tables(u) ? (double)u->page_tables : UNKNOWN)
VALUE(pss_error, usage_pss_error(u))
VALUE(uss_error, usage_uss_error(u))
VALUE(freed, u->freed.bytes)
VALUE(freed_error, usage_freed_error(u))
VALUE(coverage, usage_coverage_percent(u))
VALUE(age, usage_age_seconds(u))
VALUE(uptime, (double)u->uptime_ns / 1e9)
VALUE(processes, count(u, u->processes))
VALUE(threads, count(u, u->threads))
VALUE(relative_error, percent(usage_pss_error(u), u->rollup.bytes[ROLLUP_PSS]))
/* Swap and PSS are divided among the users of each page; rss is not. */
VALUE(swapped, percent(u->rollup.bytes[ROLLUP_SWAP_PSS],
                       u->rollup.bytes[ROLLUP_SWAP_PSS] +
                           u->rollup.bytes[ROLLUP_PSS]))
VALUE(cgroup, cgroup_field(s, CGROUP_HAS_BYTES, s->cgroup->bytes))
VALUE(cgroup_limit, limit(s))
VALUE(cgroup_file, cgroup_field(s, CGROUP_HAS_FILE, s->cgroup->file))
VALUE(cgroup_kernel, cgroup_field(s, CGROUP_HAS_KERNEL, s->cgroup->kernel))
VALUE(oom_kill, cgroup_field(s, CGROUP_HAS_KILLS, s->cgroup->kills))
VALUE(oomd_kill,
      cgroup_field(s, CGROUP_HAS_OOMD_KILLS, s->cgroup->oomd_kills))
VALUE(cgroup_peak, cgroup_field(s, CGROUP_HAS_PEAK, s->cgroup->peak))
VALUE(cgroup_peak_ever,
      cgroup_field(s, CGROUP_HAS_PEAK_EVER, s->cgroup->peak_ever))
VALUE(events_high,
      cgroup_field(s, CGROUP_HAS_EVENTS_HIGH, s->cgroup->events_high))
VALUE(events_max,
      cgroup_field(s, CGROUP_HAS_EVENTS_MAX, s->cgroup->events_max))
VALUE(pressure_some, pressure(s, s->cgroup->pressure_some))
VALUE(pressure_full, pressure(s, s->cgroup->pressure_full))
VALUE(growth, s->growth ? s->growth->bytes_per_second : UNKNOWN)
VALUE(until_limit, s->growth ? growth_seconds_until(s->growth) : UNKNOWN)

/* Rows of amounts. */
#define BY_DEFAULT(name, key, field)                                           \
  {#key, "memory", FROM_ROLLUP, ROLLUP_##field, true, NULL},
#define DERIVED(name, key, field)                                              \
  {#key, "memory", FROM_DERIVED, ROLLUP_##field, true, key},
#define IN_DETAIL(name, key, field)                                            \
  {#key, "memory", FROM_ROLLUP, ROLLUP_##field, false, NULL},

static const struct metric metrics[] = {
    AMOUNTS_BY_DEFAULT(BY_DEFAULT, DERIVED)
    {"pss_error", "memory", FROM_ERRORS, ROLLUP_PSS, true, pss_error},
    {"freed", "memory", FROM_GROUP, ROLLUP_PSS, true, freed},
    {"freed_error", "memory", FROM_GROUP, ROLLUP_PSS, true, freed_error},
    {"ps_count", "ps_count", FROM_COUNTS, 0, true, processes},
    {"coverage", "percent", FROM_COUNTS, 0, true, coverage},
    {"age", "duration", FROM_COUNTS, 0, true, age},
    {"unreadable", "count", FROM_COUNTS, 0, true, unreadable},
    AMOUNTS_IN_DETAIL(IN_DETAIL)
    SWAP_TOTAL_ROW(IN_DETAIL)
    LOCKED_ROW(IN_DETAIL)
    {"epss", "memory", FROM_SUM, ROLLUP_SWAP_PSS, false, epss},
    {"uss_error", "memory", FROM_ERRORS, ROLLUP_PRIVATE_DIRTY, false,
     uss_error},
    {"relative_error", "percent", FROM_PARTS, ROLLUP_PSS, false,
     relative_error},
    {"swapped", "percent", FROM_PARTS, ROLLUP_SWAP_PSS, false, swapped},
    {"ps_vm", "ps_vm", FROM_STATM, 0, false, size},
    {"ps_code", "ps_code", FROM_STATM, 0, false, text},
    {"ps_data", "ps_data", FROM_STATM, 0, false, data},
    {"resident", "memory", FROM_STATM, 0, false, resident},
    {"resident_shared", "memory", FROM_STATM, 0, false, resident_shared},
    {"cgroup", "memory", FROM_CGROUP, 0, true, cgroup},
    {"cgroup_limit", "memory", FROM_CGROUP_LIMIT, 0, true, cgroup_limit},
    {"oom_kill", "count", FROM_CGROUP_COUNTS, 0, true, oom_kill},
    {"cgroup_file", "memory", FROM_CGROUP, 0, false, cgroup_file},
    {"cgroup_kernel", "memory", FROM_CGROUP, 0, false, cgroup_kernel},
    {"cgroup_peak", "memory", FROM_CGROUP, CGROUP_WANTS_PEAK, false,
     cgroup_peak},
    {"cgroup_peak_ever", "memory", FROM_CGROUP, CGROUP_WANTS_PEAK_EVER, false,
     cgroup_peak_ever},
    {"pressure_some", "percent", FROM_CGROUP_COUNTS, CGROUP_WANTS_PRESSURE,
     false, pressure_some},
    {"pressure_full", "percent", FROM_CGROUP_COUNTS, CGROUP_WANTS_PRESSURE,
     false, pressure_full},
    {"events_high", "total_events", FROM_CGROUP_COUNTS, CGROUP_WANTS_EVENTS,
     false, events_high},
    {"events_max", "total_events", FROM_CGROUP_COUNTS, CGROUP_WANTS_EVENTS,
     false, events_max},
    {"oomd_kill", "count", FROM_CGROUP_COUNTS, CGROUP_WANTS_OOMD, false,
     oomd_kill},
    {"page_tables", "memory", FROM_STATM, 0, false, page_tables},
    {"kernel_stack", "memory", FROM_THREADS, 0, false, kernel_stack},
    {"uptime", "uptime", FROM_START, 0, true, uptime},
    {"growth", "gauge", FROM_GROWTH, 0, true, growth},
    {"until_limit", "duration", FROM_GROWTH, 0, true, until_limit},
};
/* clang-format on */
#define METRICS (sizeof(metrics) / sizeof(*metrics))
_Static_assert(METRICS < 64, "metric_set has a bit per metric");

#define BIT(name, key, field) | 1U << ROLLUP_##field
#define NO_BIT(name, key, field)
_Static_assert((0 AMOUNTS_OF_ROLLUP(BIT, NO_BIT)) == (1U << ROLLUP_FIELDS) - 1,
               "each field of the rollup has a row in words.h");

static bool is_of_cgroup(const struct metric *m) {
  return m->source == FROM_CGROUP || m->source == FROM_CGROUP_LIMIT ||
         m->source == FROM_CGROUP_COUNTS;
}

unsigned metric_cgroup_wants(metric_set asked) {
  unsigned wants = 0;

  for (size_t i = 0; i < METRICS; i++)
    if ((asked >> i) & 1 && is_of_cgroup(&metrics[i]))
      wants |= metrics[i].field;
  return wants;
}

static metric_set default_set(void) {
  metric_set set = 0;

  for (size_t i = 0; i < METRICS; i++)
    if (metrics[i].is_default)
      set |= (metric_set)1 << i;
  return set;
}

/* What the cheap files show between readings. */
#define FOLLOWED                                                               \
  (1U << ROLLUP_RSS | 1U << ROLLUP_PSS | 1U << ROLLUP_PSS_ANON |               \
   1U << ROLLUP_PSS_FILE | 1U << ROLLUP_PSS_SHMEM | 1U << ROLLUP_ANONYMOUS |   \
   1U << ROLLUP_SWAP | 1U << ROLLUP_SWAP_PSS)

/* Only a reading shows that it has changed. */
static bool is_of_readings(const struct metric *m) {
  return m->source == FROM_ROLLUP && !(FOLLOWED >> m->field & 1);
}

metric_set metric_find(const char *word, struct config_error *reason) {
  if (strcasecmp(word, "default") == 0)
    return default_set();
  if (strcasecmp(word, "detail") == 0)
    return ((metric_set)1 << METRICS) - 1;
  for (size_t i = 0; i < METRICS; i++)
    if (strcasecmp(word, metrics[i].name) == 0)
      return (metric_set)1 << i |
             (is_of_readings(&metrics[i]) ? metric_find("age", reason) : 0);
  config_error_format(reason, "expected \"default\", \"detail\" or names of "
                              "values, such as \"pss\" or \"private_dirty\"; "
                              "collectd-smaps(5) lists them");
  return 0;
}

static bool is_of_rollup(const struct metric *m) {
  return m->source <= FROM_PARTS;
}

static bool is_of_kernel(const struct metric *m, uint32_t kernel_fields) {
  return !is_of_rollup(m) || ((kernel_fields >> m->field) & 1);
}

/* Zero for a group without members. An unknown Rss is replaced by the resident
 * memory of statm. */
static double rollup_value(const struct metric *m,
                           const struct metric_subject *s) {
  const struct usage *u = s->usage;

  if (!usage_is_known(u))
    return m->field == ROLLUP_RSS && !u->unknown ? resident(s) : UNKNOWN;
  if (u->rolled_up && !rollup_has(&u->rollup, m->field))
    return UNKNOWN;
  return m->value ? m->value(s) : (double)u->rollup.bytes[m->field];
}

static double value_of(const struct metric *m, const struct metric_subject *s) {
  if (s->usage->is_unseen && m->source != FROM_CGROUP_LIMIT)
    return UNKNOWN;
  if (is_of_rollup(m))
    return rollup_value(m, s);
  if (m->source == FROM_STATM && s->usage->unknown)
    return UNKNOWN;
  return m->value(s);
}

static bool is_bytes(const struct metric *m) {
  return m->source != FROM_PARTS && m->source != FROM_COUNTS &&
         m->source != FROM_START && m->source != FROM_CGROUP_COUNTS &&
         m->source != FROM_GROWTH;
}

/* At most 100: memory.high can be exceeded, but types.db allows 100.1. */
static double limit_percent(const struct metric_subject *s) {
  double used = cgroup_memory_used_percent(s->cgroup, s->mem_total);

  return used > 100 ? 100 : used;
}

static double percent_of(const struct metric *m,
                         const struct metric_subject *s) {
  if (m->source == FROM_CGROUP_LIMIT)
    return limit_percent(s);
  return s->mem_total ? 100 * value_of(m, s) / (double)s->mem_total : UNKNOWN;
}

static bool is_of_host(const struct metric *m,
                       const struct metric_context *context) {
  return is_of_kernel(m, context->kernel_fields) &&
         (m->source != FROM_START || context->has_uptime);
}

static void fill(const struct metric *m, const struct metric_subject *s,
                 bool is_percentage, struct metric_value *ret) {
  bool has_name = is_percentage || strcmp(m->type, m->name) != 0;

  ret->type = is_percentage ? "percent" : m->type;
  snprintf(ret->type_instance, sizeof(ret->type_instance), "%s",
           has_name ? m->name : "");
  ret->n = 1;
  ret->values[0] = is_percentage ? percent_of(m, s) : value_of(m, s);
  if (m->value == processes) /* ps_count alone has a second value */
    ret->values[ret->n++] = s->usage->is_unseen ? UNKNOWN : threads(s);
}

static bool is_published(const struct metric *m, const struct report *r,
                         bool is_percentage) {
  if (!is_percentage)
    return !is_bytes(m) || r->absolute != CHOICE_NO;
  return m->source == FROM_CGROUP_LIMIT ||
         (is_bytes(m) && r->percentage == CHOICE_YES);
}

bool metric_next(const struct metric_subject *s, const struct report *r,
                 const struct metric_context *context, unsigned *cursor,
                 struct metric_value *ret) {
  struct metric_subject subject = *s;

  subject.mem_total = context->mem_total;
  /* Each metric takes two steps: the value and its percentage. */
  while (*cursor < 2 * METRICS) {
    unsigned i = *cursor / 2;
    const struct metric *m = &metrics[i];

    ret->metric = (metric_set)1 << i;
    ret->is_percentage = (*cursor)++ & 1;
    if (!((r->metrics >> i) & 1) || !is_of_host(m, context) ||
        (!s->cgroup && is_of_cgroup(m)) ||
        !is_published(m, r, ret->is_percentage))
      continue;
    fill(m, &subject, ret->is_percentage, ret);
    return true;
  }
  return false;
}

bool metric_next_amount(const struct usage *u, uint32_t kernel_fields,
                        unsigned *cursor, const char **ret_name,
                        uint64_t *ret_bytes) {
  while (*cursor < METRICS) {
    const struct metric *m = &metrics[(*cursor)++];
    double value;

    if (m->source > FROM_DERIVED || !is_of_kernel(m, kernel_fields))
      continue;
    value = value_of(m, &(struct metric_subject){.usage = u});
    if (isnan(value))
      continue;
    *ret_name = m->name;
    *ret_bytes = (uint64_t)value;
    return true;
  }
  return false;
}
