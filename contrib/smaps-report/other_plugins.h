/* SPDX-License-Identifier: MIT */
/* The other plugins of a configuration: one that collectd cannot load keeps it
 * from starting, and ours with it (collectd 5.12). */
#ifndef REPORT_OTHER_PLUGINS_H
#define REPORT_OTHER_PLUGINS_H

#include <daemon/collectd.h>
#include <liboconfig/oconfig.h>

#include <stdbool.h>

/* Begins zeroed; end with other_plugins_done(). */
struct other_plugins {
  char *directory; /* of PluginDir; NULL: collectd's own */
  bool loads_all;  /* AutoLoadPlugin */
};

/*
 * Takes the items of the top level in their order, with the file that each is
 * in. Logs an error for a plugin without a file, and for one that needs a
 * library which is not installed. ldd(1) looks for these; no code of the plugin
 * runs.
 *
 * Nothing is checked where the directory does not exist: collectd is elsewhere.
 */
void other_plugins_add(struct other_plugins *o, const oconfig_item_t *item,
                       const char *path);
void other_plugins_done(struct other_plugins *o);

/* True if the directory of plugins exists: collectd is on this host. */
bool other_plugins_has_daemon(const struct other_plugins *o);

/* True if the item is AutoLoadPlugin, and sets it. */
bool other_plugins_loads_all(const oconfig_item_t *item);

#endif
