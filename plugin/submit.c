#include "submit.h"

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>
#include <collectd/core/daemon/utils_cache.h>

#define VALUES_MAX 2

/*
 * Only this function and is_alarmed() have to change for collectd 6. There a
 * value is a metric of a family (metric_family_t,
 * plugin_dispatch_metric_family()) with a name and labels, instead of a list
 * with a type and four instances. The group would be a label, type and type
 * instance the name, and ps_count two metrics.
 */
static value_list_t name_values(const char *group, const char *type,
                                const char *type_instance) {
  value_list_t vl = VALUE_LIST_INIT;

  snprintf(vl.host, sizeof(vl.host), "%s", hostname_g);
  snprintf(vl.plugin, sizeof(vl.plugin), "smaps");
  snprintf(vl.plugin_instance, sizeof(vl.plugin_instance), "%s", group);
  snprintf(vl.type, sizeof(vl.type), "%s", type);
  snprintf(vl.type_instance, sizeof(vl.type_instance), "%s", type_instance);
  return vl;
}

static void submit(cdtime_t now, const char *group, const char *type,
                   const char *type_instance, const double *values, size_t n) {
  value_list_t vl = name_values(group, type, type_instance);
  value_t list[VALUES_MAX];

  for (size_t i = 0; i < n; i++)
    list[i].gauge = values[i];
  vl.values = list;
  vl.values_len = n;
  vl.time = now;
  plugin_dispatch_values(&vl);
}

/* --- groups --------------------------------------------------------------- */

/* True if the threshold plugin of this daemon has raised an alarm for the value
 * that was dispatched before. uc_get_state() is STATE_ERROR for a missing value
 * as well, so its rate is asked for first. */
static bool is_alarmed(const struct group *g, const struct metric_value *v) {
  value_list_t vl = name_values(g->name, v->type, v->type_instance);
  const data_set_t *ds = plugin_get_ds(v->type);
  gauge_t *rates = ds ? uc_get_rate(ds, &vl) : NULL;
  int state = rates ? uc_get_state(ds, &vl) : STATE_UNKNOWN;

  free(rates);
  return state == STATE_WARNING || state == STATE_ERROR;
}

/* Alarms are raised for these, when the group ends: ps_count 0 and kills. */
static bool is_count(const struct metric_value *v) {
  return strcmp(v->type, "ps_count") == 0 || strcmp(v->type, "count") == 0;
}

/*
 * The threshold plugin takes 0 and NaN to be within range, and would say OKAY
 * of a service in the moment in which it was killed. A value whose alarm is on
 * when its group ends is missing until the group has members again.
 */
static bool is_withheld(struct group *g, const struct metric_value *v,
                        bool has_ended) {
  metric_set *withheld = &g->submission.withheld[v->is_percentage];

  if (has_ended && !is_count(v) && is_alarmed(g, v))
    *withheld |= v->metric;
  return *withheld & v->metric;
}

static void submit_group(cdtime_t now, struct group *g,
                         const struct metric_context *context) {
  const struct metric_subject subject = {
      .usage = &g->usage, .cgroup = g->cgroup, .growth = g->growth};
  bool has_members = g->usage.processes > 0;
  bool has_ended = g->submission.had_members && !has_members;
  struct metric_value value;
  unsigned cursor = 0;

  if (has_members)
    g->submission = (struct submission){.had_members = true};
  while (metric_next(&subject, g->report, context, &cursor, &value))
    if (!is_withheld(g, &value, has_ended))
      submit(now, g->name, value.type, value.type_instance, value.values,
             value.n);
  g->submission.had_members = has_members;
}

/* --- the host ------------------------------------------------------------- */

/* The parts have a type of their own: they add up to MemTotal. */
static void submit_host(cdtime_t now, const struct host_account *host,
                        const struct report *report, uint64_t mem_total) {
  struct host_value v;
  unsigned cursor = 0;

  while (host_next(host, &cursor, &v)) {
    double bytes = (double)v.bytes, percent = 100 * bytes / (double)mem_total;

    if (report->absolute != CHOICE_NO)
      submit(now, GROUP_NAME_OF_HOST, v.is_part ? "memory" : "bytes", v.name,
             &bytes, 1);
    if (report->percentage == CHOICE_YES && v.is_part)
      submit(now, GROUP_NAME_OF_HOST, "percent", v.name, &percent, 1);
  }
}

static double seconds(uint64_t ns) { return (double)ns / 1e9; }

/* The plugin's own metrics. */
static void submit_counts(cdtime_t now, const struct collector_counts *c) {
  const struct {
    const char *type, *type_instance;
    double value;
  } values[] = {
      {"duration", "cycle", seconds(c->cycle_ns)},
      {"duration", "rollup", seconds(c->rollup_ns)},
      {"duration", "longest_read", seconds(c->longest_read_ns)},
      {"count", "processes", (double)c->processes},
      {"count", "matched", (double)c->matched},
      {"count", "groups", (double)c->groups},
      {"count", "rollup_reads", (double)c->rollup_reads},
      {"count", "sampled", (double)c->sampled},
      {"count", "deferred", (double)c->deferred},
      {"count", "overdue", (double)c->overdue},
      {"count", "vanished", (double)c->vanished},
      {"count", "denied", (double)c->denied},
      {"count", "hung", (double)c->hung},
      {"count", "unidentified", (double)c->unidentified},
      {"count", "groups_refused", (double)c->groups_refused},
  };

  for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
    submit(now, "", values[i].type, values[i].type_instance, &values[i].value,
           1);
}

void submit_all(const struct collector *c, const struct settings *settings) {
  const struct cycle_results *r = collector_results(c);
  struct group *g;
  cdtime_t now = cdtime();
  size_t cursor = 0;

  while ((g = collector_next_group(c, &cursor)))
    submit_group(now, g, &r->context);
  if (r->host.absence == HOST_IS_SEEN)
    submit_host(now, &r->host.account, &settings->report, r->context.mem_total);
  submit_counts(now, &r->counts);
}
