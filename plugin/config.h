/* SPDX-License-Identifier: MIT */
/* Reads collectd's configuration tree into settings. */
#ifndef SMAPS_PLUGIN_CONFIG_H
#define SMAPS_PLUGIN_CONFIG_H

#include <daemon/collectd.h>
#include <liboconfig/oconfig.h>

#include <smaps/settings.h>

/*
 * Applies a <Plugin smaps> block. Returns 0, or -1 after logging one line for
 * each wrong option, with s->source, its value and the expected value.
 */
int config_add_block(struct settings *s, const oconfig_item_t *block);

/* Formats an item as in the file, on one line, for messages. */
void config_describe(const oconfig_item_t *item, char *ret, size_t size);

/* The blocks that have options. */
enum config_block {
  CONFIG_PLUGIN,
  CONFIG_GROUP,
  CONFIG_IGNORE,
  CONFIG_CAPTURE,
  CONFIG_ALARMS,
};

/* The name of option n of a block, without selectors; NULL after the last. */
const char *config_option(enum config_block block, size_t n);

/* True if an item with this key belongs in a <Plugin smaps> block. */
bool config_has_option(const char *key);

#endif
