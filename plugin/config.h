/* From collectd's configuration tree to settings. */
#ifndef SMAPS_PLUGIN_CONFIG_H
#define SMAPS_PLUGIN_CONFIG_H

#include <collectd/core/daemon/collectd.h>
#include <collectd/liboconfig/oconfig.h>

#include <smaps/settings.h>

/*
 * Adds what a <Plugin smaps> block says. Returns 0, or -1 after logging the one
 * line that says which option, with which value, is not as expected.
 */
int config_add_block(struct settings *s, const oconfig_item_t *block);

#endif
