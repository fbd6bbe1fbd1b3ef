/* SPDX-License-Identifier: MIT */
/*
 * The smaps plugin of collectd: memory of process groups as PSS, USS, swap.
 *
 *   smaps.c          the callbacks of collectd: configure, start, read, stop;
 *                    results to values
 *   values.c         a value to the daemon
 *   config.c         <Plugin smaps> to settings
 *   log.c            problems of a cycle to log lines
 *   notification.c   notifications to captures, alarms and captures to
 *                    notifications
 *   core/            all other code; contrib/HACKING has the map
 */
#include <daemon/collectd.h>
#include <daemon/plugin.h>

#include "config.h"
#include "log.h"
#include "notification.h"
#include "values.h"

#include <smaps/collector.h>

#include <sys/utsname.h>

/* --- the values of groups --- */

static void submit_group(cdtime_t now, const struct group *g,
                         const struct metric_context *context) {
  const struct metric_subject subject = {
      .usage = &g->usage, .cgroup = g->cgroup, .growth = g->growth};
  struct metric_value value;
  unsigned cursor = 0;

  while (metric_next(&subject, g->report, context, &cursor, &value))
    values_submit(now, g->name, value.type, value.type_instance, value.values,
                  value.n);
}

/* --- the values of the host and of the plugin --- */

/* The parts have a type of their own: they add up to MemTotal. */
static void submit_host(cdtime_t now, const struct host_account *host,
                        const struct report *report, uint64_t mem_total) {
  struct host_value v;
  unsigned cursor = 0;

  while (host_next(host, &cursor, &v)) {
    double bytes = (double)v.bytes, percent = 100 * bytes / (double)mem_total;

    if (report->absolute != CHOICE_NO)
      values_submit(now, GROUP_NAME_OF_HOST, v.is_part ? "memory" : "bytes",
                    v.name, &bytes, 1);
    if (report->percentage == CHOICE_YES && v.is_part)
      values_submit(now, GROUP_NAME_OF_HOST, "percent", v.name, &percent, 1);
  }
}

static double seconds(uint64_t ns) { return (double)ns / 1e9; }

static void submit_counts(cdtime_t now, const struct collector_counts *c,
                          bool has_state_file) {
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
      {"duration", "state_age", seconds(c->state_age_ns)}, /* the last */
  };
  size_t n = sizeof(values) / sizeof(*values) - !has_state_file;

  for (size_t i = 0; i < n; i++)
    values_submit(now, "", values[i].type, values[i].type_instance,
                  &values[i].value, 1);
}

/* Dispatches all results of the last cycle, with one timestamp. */
static void submit_all(const struct collector *c,
                       const struct settings *settings) {
  const struct cycle_results *r = collector_results(c);
  const struct group *g;
  cdtime_t now = cdtime();
  size_t cursor = 0;

  while ((g = collector_next_group(c, &cursor)))
    submit_group(now, g, &r->context);
  if (r->host.known)
    submit_host(now, &r->host, &settings->report, r->context.mem_total);
  submit_counts(now, &r->counts, settings->state_file != NULL);
}

/* --- callbacks --- */

static struct {
  bool has_settings;
  struct settings settings;
  struct collector *collector;
  struct log_state log;
} plugin;

static void init_settings(void) {
  if (!plugin.has_settings)
    settings_init(&plugin.settings);
  plugin.has_settings = true;
}

static int smaps_shutdown(void) {
  if (!plugin.has_settings)
    return 0;
  notification_stop();
  collector_free(plugin.collector);
  settings_done(&plugin.settings);
  memset(&plugin, 0, sizeof(plugin));
  return 0;
}

/* Called for each <Plugin smaps>; an error keeps the daemon from starting. */
static int smaps_config(oconfig_item_t *block) {
  init_settings();
  return config_add_block(&plugin.settings, block);
}

static int smaps_read(user_data_t *data) {
  int rc = collector_cycle(plugin.collector);

  (void)data;
  log_after_cycle(&plugin.log, collector_results(plugin.collector),
                  &plugin.settings, rc);
  if (rc < 0)
    return -1;
  submit_all(plugin.collector, &plugin.settings);
  notification_send(collector_results(plugin.collector)->alarms,
                    collector_results(plugin.collector)->n_alarms);
  return 0;
}

/* A snapshot contains the host name and the interval. */
static int set_host(struct settings *s) {
  s->interval_ns = CDTIME_T_TO_NS(plugin_get_interval());
  free(s->host);
  s->host = strdup(hostname_g);
  return s->host ? 0 : -ENOMEM;
}

/* Other is a rule too, as in smaps-report check. */
static void log_version(void) {
  struct utsname kernel;

  uname(&kernel);
  INFO("smaps plugin: version " SMAPS_VERSION ", collectd " PACKAGE_VERSION
       ", Linux %s, ProcRoot \"%s\", %zu rules",
       kernel.release, plugin.settings.proc_root,
       plugin.settings.n_rules + (plugin.settings.other.name ? 1 : 0));
}

static int start(void) {
  static const struct collector_hooks hooks = {.written = notification_written};
  int rc;

  init_settings();
  rc = set_host(&plugin.settings);
  if (rc == 0)
    rc = settings_finish(&plugin.settings);
  if (rc == 0)
    rc = collector_new(&plugin.settings, &hooks, &plugin.collector);
  if (rc == 0)
    rc = notification_start(&plugin.settings, plugin.collector);
  if (rc == 0 &&
      plugin_register_complex_read(NULL, "smaps", smaps_read, 0, NULL) != 0)
    rc = -EIO;
  return rc;
}

static int smaps_init(void) {
  int rc;

  /* The daemon may call init again after it has succeeded. */
  if (plugin.collector)
    return 0;
  rc = start();
  if (rc == 0) {
    log_version();
    return 0;
  }
  ERROR("smaps plugin: cannot start with ProcRoot \"%s\": %s",
        plugin.settings.proc_root ? plugin.settings.proc_root : "/proc",
        rc == -EBADMSG ? "its file getconf is malformed"
                       : strerror(rc < 0 ? -rc : ENOENT));
  smaps_shutdown();
  return -1;
}

/* The only symbol that the daemon looks up. */
__attribute__((visibility("default"))) void module_register(void) {
  plugin_register_complex_config("smaps", smaps_config);
  plugin_register_init("smaps", smaps_init);
  plugin_register_shutdown("smaps", smaps_shutdown);
}
