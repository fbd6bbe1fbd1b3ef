/*
 * The smaps plugin of collectd: memory of process groups as PSS, USS, swap.
 *
 *   smaps.c          the callbacks of collectd: configure, start, read, stop
 *   config.c         <Plugin smaps> to settings
 *   submit.c         results to value lists
 *   log.c            problems of a cycle to log lines
 *   notification.c   notifications to captures, captures to notifications
 *   core/            all other code; collector.h has the map
 */
#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>

#include "config.h"
#include "log.h"
#include "notification.h"
#include "submit.h"

#include <smaps/collector.h>
#include <smaps/kernel.h>

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
  return 0;
}

/* A snapshot contains the host name and the interval. */
static int set_host(struct settings *s) {
  s->interval_ns = CDTIME_T_TO_NS(plugin_get_interval());
  free(s->host);
  s->host = strdup(hostname_g);
  return s->host ? 0 : -ENOMEM;
}

static void log_version(void) {
  unsigned major = 0, minor = 0;

  kernel_release(&major, &minor);
  INFO("smaps plugin: version " SMAPS_VERSION ", collectd " PACKAGE_VERSION
       ", Linux %u.%u, ProcRoot \"%s\", %zu rules",
       major, minor, plugin.settings.proc_root, plugin.settings.n_rules);
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
        strerror(rc < 0 ? -rc : ENOENT));
  smaps_shutdown();
  return -1;
}

/*
 * The only symbol that the daemon looks up. These registrations also work with
 * collectd 6; submit.c describes the changes for it.
 */
__attribute__((visibility("default"))) void module_register(void) {
  plugin_register_complex_config("smaps", smaps_config);
  plugin_register_init("smaps", smaps_init);
  plugin_register_shutdown("smaps", smaps_shutdown);
}
