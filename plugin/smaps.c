/*
 * The smaps plugin of collectd: memory of process groups as PSS, USS, swap.
 *
 *   smaps.c    what collectd calls: configure, start, read, stop
 *   config.c   <Plugin smaps> to settings
 *   submit.c   results to value lists
 *   notice.c   troubles to log lines
 *   record.c   notifications to captures, captures to notifications
 *   core/      everything else; collector.h has the map
 */
#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>

#include "config.h"
#include "notice.h"
#include "record.h"
#include "submit.h"

#include <smaps/collector.h>
#include <smaps/kernel.h>

/* What this build can do and another may not. */
#define FEATURES "adaptive reading, snapshots"

struct plugin {
  struct settings settings;
  struct collector *collector;
  struct notices notices;
};

static struct plugin *plugin;

static struct plugin *plugin_get(void) {
  if (!plugin && (plugin = calloc(1, sizeof(*plugin))))
    settings_init(&plugin->settings);
  return plugin;
}

static int smaps_shutdown(void) {
  if (!plugin)
    return 0;
  record_stop();
  collector_free(plugin->collector);
  settings_done(&plugin->settings);
  free(plugin);
  plugin = NULL;
  return 0;
}

/* Called for each <Plugin smaps>; an error keeps the daemon from starting. */
static int smaps_config(oconfig_item_t *block) {
  if (!plugin_get()) {
    ERROR("smaps plugin: out of memory");
    return -1;
  }
  return config_add_block(&plugin->settings, block);
}

static int smaps_read(user_data_t *data) {
  int r = collector_cycle(plugin->collector);

  (void)data;
  notices_after_cycle(&plugin->notices, plugin->collector,
                      plugin->settings.proc_root, r);
  if (r < 0)
    return -1;
  submit_all(plugin->collector);
  return 0;
}

/* For snapshots, which say where and how often they are made. */
static int name_host(struct settings *s) {
  s->interval_ns = CDTIME_T_TO_NS(plugin_get_interval());
  free(s->host);
  s->host = strdup(hostname_g);
  return s->host ? 0 : -ENOMEM;
}

/* Tells from a log, months later, what has made the values. */
static void say_version(void) {
  unsigned major = 0, minor = 0;

  kernel_release(&major, &minor);
  INFO("smaps plugin: version " SMAPS_VERSION ", collectd " PACKAGE_VERSION
       ", Linux %u.%u, ProcRoot \"%s\", %zu rules; with " FEATURES,
       major, minor, plugin->settings.proc_root, plugin->settings.n_rules);
}

static int start(void) {
  static const struct collector_hooks hooks = {.written = record_written};
  int r;

  if (!plugin_get())
    return -ENOMEM;
  r = name_host(&plugin->settings);
  if (r == 0)
    r = settings_finish(&plugin->settings);
  if (r == 0)
    r = collector_new(&plugin->settings, &hooks, &plugin->collector);
  if (r == 0)
    r = record_start(&plugin->settings, plugin->collector);
  if (r == 0 &&
      plugin_register_complex_read(NULL, "smaps", smaps_read, 0, NULL) != 0)
    r = -EIO;
  return r;
}

static int smaps_init(void) {
  int r;

  /* The daemon may call init again for a plugin that stands. */
  if (plugin && plugin->collector)
    return 0;
  r = start();
  if (r == 0) {
    say_version();
    return 0;
  }
  ERROR("smaps plugin: cannot start with ProcRoot \"%s\": %s",
        plugin && plugin->settings.proc_root ? plugin->settings.proc_root
                                             : "/proc",
        strerror(r < 0 ? -r : ENOENT));
  smaps_shutdown();
  return -1;
}

/*
 * The one symbol that the daemon looks for. For collectd 6 these registrations
 * can stay as they are; submit.c says what changes.
 */
__attribute__((visibility("default"))) void module_register(void) {
  plugin_register_complex_config("smaps", smaps_config);
  plugin_register_init("smaps", smaps_init);
  plugin_register_shutdown("smaps", smaps_shutdown);
}
