#include "report/metric.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum source {
  FROM_ROLLUP,  /* a field of the rollup */
  FROM_DERIVED, /* computed from such fields */
  FROM_PARTS,   /* likewise, one as a percentage of others */
  FROM_STATM,
  FROM_COUNTS,  /* known even if nothing could be read */
  FROM_THREADS, /* likewise, if the size of a kernel stack is known */
  FROM_START,   /* likewise, if the time since boot is */
  FROM_CGROUP,  /* only of a group that is a whole control group */
  /* Likewise; its percentage is the use of it, and always published. */
  FROM_CGROUP_LIMIT,
  FROM_CGROUP_COUNTS,
  FROM_GROWTH,
};

#define VALUES_MAX 2

struct metric {
  const char *name; /* in Report */
  const char *type;
  const char *type_instance;
  enum source source;
  /* Of FROM_ROLLUP; needed by FROM_DERIVED and FROM_PARTS. */
  enum rollup_field field;
  bool is_default;
  bool is_amount; /* for metric_next_amount() */
  size_t n_values;
  /* Not of FROM_ROLLUP and FROM_CGROUP_LIMIT. */
  double (*values[VALUES_MAX])(const struct metric_subject *s);
};

static double processes(const struct metric_subject *s) {
  return s->usage->perhaps ? (double)NAN : (double)s->usage->processes;
}
static double threads(const struct metric_subject *s) {
  return s->usage->perhaps ? (double)NAN : (double)s->usage->threads;
}
static double uss(const struct metric_subject *s) {
  return (double)s->usage->uss;
}
static double shared(const struct metric_subject *s) {
  return (double)s->usage->shared;
}
static double size(const struct metric_subject *s) {
  return (double)s->usage->size;
}
static double text(const struct metric_subject *s) {
  return (double)s->usage->text;
}
static double data(const struct metric_subject *s) {
  return (double)s->usage->data;
}
static double resident(const struct metric_subject *s) {
  return (double)s->usage->resident;
}
static double resident_shared(const struct metric_subject *s) {
  return (double)s->usage->resident_shared;
}
static double unreadable(const struct metric_subject *s) {
  return (double)s->usage->unreadable;
}
static double pss_error(const struct metric_subject *s) {
  return (double)usage_pss_error(s->usage);
}
static double uss_error(const struct metric_subject *s) {
  return (double)usage_uss_error(s->usage);
}
/* types.db takes no more than 100.1, and an error can exceed what it is of. */
static double part_percent(uint64_t part, uint64_t whole) {
  if (part >= whole)
    return part > 0 ? 100 : 0;
  return 100 * (double)part / (double)whole;
}
static double relative_error(const struct metric_subject *s) {
  return part_percent(usage_pss_error(s->usage),
                      s->usage->rollup.bytes[ROLLUP_PSS]);
}
/* Both are divided among the users of each page, which rss is not. */
static double swapped(const struct metric_subject *s) {
  const uint64_t *bytes = s->usage->rollup.bytes;

  return part_percent(bytes[ROLLUP_SWAP_PSS],
                      bytes[ROLLUP_SWAP_PSS] + bytes[ROLLUP_PSS]);
}
static double cgroup_field(const struct metric_subject *s, unsigned field,
                           uint64_t value) {
  return cgroup_memory_has(s->cgroup, field) ? (double)value : (double)NAN;
}
static double cgroup(const struct metric_subject *s) {
  return cgroup_field(s, CGROUP_HAS_BYTES, s->cgroup->bytes);
}
static double cgroup_file(const struct metric_subject *s) {
  return cgroup_field(s, CGROUP_HAS_FILE, s->cgroup->file);
}
static double cgroup_kernel(const struct metric_subject *s) {
  return cgroup_field(s, CGROUP_HAS_KERNEL, s->cgroup->kernel);
}
static double oom_kill(const struct metric_subject *s) {
  return cgroup_field(s, CGROUP_HAS_KILLS, s->cgroup->kills);
}
static double growth(const struct metric_subject *s) {
  return s->growth ? s->growth->bytes_per_second : (double)NAN;
}
static double until_limit(const struct metric_subject *s) {
  return s->growth ? growth_seconds_until(s->growth) : (double)NAN;
}
static double coverage(const struct metric_subject *s) {
  return usage_coverage_percent(s->usage);
}
static double page_tables(const struct metric_subject *s) {
  return usage_has_page_tables(s->usage) ? (double)s->usage->page_tables
                                         : (double)NAN;
}
static double kernel_stack(const struct metric_subject *s) {
  return (double)s->usage->kernel_stack;
}
static double uptime(const struct metric_subject *s) {
  return (double)s->usage->uptime_ns / 1e9;
}
static double age(const struct metric_subject *s) {
  return usage_age_seconds(s->usage);
}

#define METRIC(name_, type_, instance_, source_, field_, is_default_,          \
               is_amount_, n_, ...)                                            \
  {                                                                            \
    .name = name_, .type = type_, .type_instance = instance_,                  \
    .source = source_, .field = field_, .is_default = is_default_,             \
    .is_amount = is_amount_, .n_values = n_, .values = {                       \
      __VA_ARGS__                                                              \
    }                                                                          \
  }
#define KERNEL(name_, field_, is_default_)                                     \
  METRIC(name_, "memory", name_, FROM_ROLLUP, field_, is_default_, true, 1,    \
         NULL)

static const struct metric metrics[] = {
    KERNEL("pss", ROLLUP_PSS, true),
    METRIC("uss", "memory", "uss", FROM_DERIVED, ROLLUP_PRIVATE_DIRTY, true,
           true, 1, uss),
    KERNEL("rss", ROLLUP_RSS, true),
    METRIC("shared", "memory", "shared", FROM_DERIVED, ROLLUP_SHARED_DIRTY,
           true, true, 1, shared),
    KERNEL("swap", ROLLUP_SWAP_PSS, true),
    METRIC("pss_error", "memory", "pss_error", FROM_DERIVED, ROLLUP_PSS, true,
           false, 1, pss_error),
    METRIC("ps_count", "ps_count", "", FROM_COUNTS, 0, true, false, 2,
           processes, threads),
    METRIC("coverage", "percent", "coverage", FROM_COUNTS, 0, true, false, 1,
           coverage),
    METRIC("age", "duration", "age", FROM_COUNTS, 0, true, false, 1, age),
    METRIC("unreadable", "count", "unreadable", FROM_COUNTS, 0, true, false, 1,
           unreadable),
    KERNEL("pss_anon", ROLLUP_PSS_ANON, false),
    KERNEL("pss_file", ROLLUP_PSS_FILE, false),
    KERNEL("pss_shmem", ROLLUP_PSS_SHMEM, false),
    KERNEL("pss_dirty", ROLLUP_PSS_DIRTY, false),
    KERNEL("private_clean", ROLLUP_PRIVATE_CLEAN, false),
    KERNEL("private_dirty", ROLLUP_PRIVATE_DIRTY, false),
    KERNEL("shared_clean", ROLLUP_SHARED_CLEAN, false),
    KERNEL("shared_dirty", ROLLUP_SHARED_DIRTY, false),
    KERNEL("referenced", ROLLUP_REFERENCED, false),
    KERNEL("anonymous", ROLLUP_ANONYMOUS, false),
    KERNEL("lazy_free", ROLLUP_LAZY_FREE, false),
    KERNEL("ksm", ROLLUP_KSM, false),
    KERNEL("anon_huge_pages", ROLLUP_ANON_HUGE_PAGES, false),
    KERNEL("shmem_pmd_mapped", ROLLUP_SHMEM_PMD_MAPPED, false),
    KERNEL("file_pmd_mapped", ROLLUP_FILE_PMD_MAPPED, false),
    KERNEL("shared_hugetlb", ROLLUP_SHARED_HUGETLB, false),
    KERNEL("private_hugetlb", ROLLUP_PRIVATE_HUGETLB, false),
    KERNEL("swap_total", ROLLUP_SWAP, false),
    KERNEL("locked", ROLLUP_LOCKED, false),
    METRIC("uss_error", "memory", "uss_error", FROM_DERIVED,
           ROLLUP_PRIVATE_DIRTY, false, false, 1, uss_error),
    METRIC("relative_error", "percent", "relative_error", FROM_PARTS,
           ROLLUP_PSS, false, false, 1, relative_error),
    METRIC("swapped", "percent", "swapped", FROM_PARTS, ROLLUP_SWAP_PSS, false,
           false, 1, swapped),
    METRIC("ps_vm", "ps_vm", "", FROM_STATM, 0, false, false, 1, size),
    METRIC("ps_code", "ps_code", "", FROM_STATM, 0, false, false, 1, text),
    METRIC("ps_data", "ps_data", "", FROM_STATM, 0, false, false, 1, data),
    METRIC("resident", "memory", "resident", FROM_STATM, 0, false, false, 1,
           resident),
    METRIC("resident_shared", "memory", "resident_shared", FROM_STATM, 0, false,
           false, 1, resident_shared),
    METRIC("cgroup", "memory", "cgroup", FROM_CGROUP, 0, true, false, 1,
           cgroup),
    METRIC("cgroup_limit", "memory", "cgroup_limit", FROM_CGROUP_LIMIT, 0, true,
           false, 1, NULL),
    METRIC("oom_kill", "count", "oom_kill", FROM_CGROUP_COUNTS, 0, true, false,
           1, oom_kill),
    METRIC("cgroup_file", "memory", "cgroup_file", FROM_CGROUP, 0, false, false,
           1, cgroup_file),
    METRIC("cgroup_kernel", "memory", "cgroup_kernel", FROM_CGROUP, 0, false,
           false, 1, cgroup_kernel),
    METRIC("page_tables", "memory", "page_tables", FROM_STATM, 0, false, false,
           1, page_tables),
    METRIC("kernel_stack", "memory", "kernel_stack", FROM_THREADS, 0, false,
           false, 1, kernel_stack),
    METRIC("uptime", "uptime", "", FROM_START, 0, true, false, 1, uptime),
    METRIC("growth", "gauge", "growth", FROM_GROWTH, 0, true, false, 1, growth),
    METRIC("until_limit", "duration", "until_limit", FROM_GROWTH, 0, true,
           false, 1, until_limit),
};
#define METRICS (sizeof(metrics) / sizeof(*metrics))
_Static_assert(METRICS < 64, "metric_set has a bit per metric");

static bool is_of_cgroup(const struct metric *m) {
  return m->source == FROM_CGROUP || m->source == FROM_CGROUP_LIMIT ||
         m->source == FROM_CGROUP_COUNTS;
}

static const char set_default[] = "default";
static const char set_detail[] = "detail";

void report_inherit(struct report *r, const struct report *from) {
  if (!r->metrics)
    r->metrics = from->metrics;
  if (!r->growth_window_ns)
    r->growth_window_ns = from->growth_window_ns;
  if (r->absolute == CHOICE_UNSET)
    r->absolute = from->absolute;
  if (r->percentage == CHOICE_UNSET)
    r->percentage = from->percentage;
}

metric_set metric_default_set(void) {
  metric_set set = 0;

  for (size_t i = 0; i < METRICS; i++)
    if (metrics[i].is_default)
      set |= (metric_set)1 << i;
  return set;
}

metric_set metric_find(const char *word, struct config_error *reason) {
  const char *names[METRICS + 2];
  const char *nearest;

  if (strcasecmp(word, set_default) == 0)
    return metric_default_set();
  if (strcasecmp(word, set_detail) == 0)
    return ((metric_set)1 << METRICS) - 1;
  for (size_t i = 0; i < METRICS; i++) {
    if (strcasecmp(word, metrics[i].name) == 0)
      return (metric_set)1 << i;
    names[i] = metrics[i].name;
  }
  names[METRICS] = set_default;
  names[METRICS + 1] = set_detail;
  nearest = config_error_nearest(word, names, METRICS + 2);
  config_error_format(
      reason,
      "expected \"default\", \"detail\" or names of values, such as "
      "\"pss\" or \"private_dirty\"%s%s%s",
      nearest ? "; did you mean \"" : "", nearest ? nearest : "",
      nearest ? "\"?" : "");
  return 0;
}

static bool is_of_rollup(const struct metric *m) {
  return m->source == FROM_ROLLUP || m->source == FROM_DERIVED ||
         m->source == FROM_PARTS;
}

static bool is_of_kernel(const struct metric *m, uint32_t kernel_fields) {
  return !is_of_rollup(m) || ((kernel_fields >> m->field) & 1);
}

/* Rss has the resident memory of statm in the place of what is unknown. */
static double unknown_value(const struct metric *m,
                            const struct metric_subject *s) {
  bool is_rss = m->source == FROM_ROLLUP && m->field == ROLLUP_RSS;

  return is_rss && s->usage->unknown == 0 ? resident(s) : (double)NAN;
}

/* Zero for a group without members. */
static double rollup_value(const struct metric *m,
                           const struct metric_subject *s) {
  const struct usage *u = s->usage;

  if (!usage_is_known(u))
    return unknown_value(m, s);
  if (m->source == FROM_DERIVED)
    return m->values[0](s);
  if (u->rolled_up && !rollup_has(&u->rollup, m->field))
    return (double)NAN;
  return m->source == FROM_PARTS ? m->values[0](s)
                                 : (double)u->rollup.bytes[m->field];
}

static double value_of(const struct metric *m, size_t i,
                       const struct metric_subject *s) {
  if (s->usage->is_unseen)
    return (double)NAN;
  if (is_of_rollup(m))
    return rollup_value(m, s);
  if (m->source == FROM_STATM && s->usage->unknown)
    return (double)NAN;
  return m->values[i](s);
}

static bool is_bytes(const struct metric *m) {
  return m->source != FROM_PARTS && m->source != FROM_COUNTS &&
         m->source != FROM_START && m->source != FROM_CGROUP_COUNTS &&
         m->source != FROM_GROWTH;
}

static double cgroup_limit(const struct metric_subject *s, uint64_t mem_total) {
  uint64_t bytes;

  assert(s->cgroup);
  return cgroup_memory_limit(s->cgroup, mem_total, &bytes) ? (double)bytes
                                                           : (double)NAN;
}

static double limit_percent(const struct metric_subject *s,
                            uint64_t mem_total) {
  double limit = cgroup_limit(s, mem_total);
  double used =
      cgroup_field(s, CGROUP_HAS_BYTES, cgroup_memory_working_set(s->cgroup));

  /* memory.high can be exceeded; types.db takes no more than 100.1. */
  return limit > 0 ? fmin(100 * used / limit, 100) : (double)NAN;
}

static bool is_of_host(const struct metric *m,
                       const struct metric_context *context) {
  return is_of_kernel(m, context->kernel_fields) &&
         (m->source != FROM_THREADS || context->has_kernel_stack) &&
         (m->source != FROM_START || context->has_uptime);
}

static void fill_absolute(const struct metric *m,
                          const struct metric_subject *s, uint64_t mem_total,
                          struct metric_value *ret) {
  ret->type = m->type;
  snprintf(ret->type_instance, sizeof(ret->type_instance), "%s",
           m->type_instance);
  assert(m->n_values <= VALUES_MAX);
  ret->n = m->n_values;
  for (size_t i = 0; i < ret->n; i++)
    ret->values[i] = m->source == FROM_CGROUP_LIMIT ? cgroup_limit(s, mem_total)
                                                    : value_of(m, i, s);
}

static void fill_percentage(const struct metric *m,
                            const struct metric_subject *s, uint64_t mem_total,
                            struct metric_value *ret) {
  ret->type = "percent";
  snprintf(ret->type_instance, sizeof(ret->type_instance), "%s", m->name);
  ret->n = 1;
  if (m->source == FROM_CGROUP_LIMIT)
    ret->values[0] = limit_percent(s, mem_total);
  else
    ret->values[0] =
        mem_total ? 100 * value_of(m, 0, s) / (double)mem_total : (double)NAN;
}

static bool has_percentage(const struct metric *m, const struct report *r) {
  return m->source == FROM_CGROUP_LIMIT ||
         (is_bytes(m) && r->percentage == CHOICE_YES);
}

bool metric_next(const struct metric_subject *s, const struct report *r,
                 const struct metric_context *context, unsigned *cursor,
                 struct metric_value *ret) {
  /* Each metric takes two steps: the value and its percentage. */
  while (*cursor < 2 * METRICS) {
    const struct metric *m = &metrics[*cursor / 2];
    bool is_percentage = *cursor & 1;
    bool is_wanted = (r->metrics >> (*cursor / 2)) & 1 &&
                     is_of_host(m, context) && (s->cgroup || !is_of_cgroup(m));

    ret->metric = (metric_set)1 << *cursor / 2;
    ret->is_percentage = is_percentage;
    ++*cursor;
    if (!is_wanted)
      continue;
    if (is_percentage && has_percentage(m, r)) {
      fill_percentage(m, s, context->mem_total, ret);
      return true;
    }
    if (!is_percentage && (!is_bytes(m) || r->absolute != CHOICE_NO)) {
      fill_absolute(m, s, context->mem_total, ret);
      return true;
    }
  }
  return false;
}

bool metric_next_amount(const struct usage *u, uint32_t kernel_fields,
                        unsigned *cursor, const char **ret_name,
                        uint64_t *ret_bytes) {
  while (*cursor < METRICS) {
    const struct metric *m = &metrics[(*cursor)++];
    double value;

    if (!m->is_amount || !is_of_kernel(m, kernel_fields))
      continue;
    value = value_of(m, 0, &(struct metric_subject){.usage = u});
    if (isnan(value))
      continue;
    *ret_name = m->name;
    *ret_bytes = (uint64_t)value;
    return true;
  }
  return false;
}
