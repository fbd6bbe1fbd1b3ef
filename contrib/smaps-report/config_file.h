/* SPDX-License-Identifier: MIT */
/*
 * Reads a configuration of collectd as the daemon does: liboconfig parses each
 * file, and Include is expanded by wordexp(3), into files and directories.
 *
 * Mistakes are logged with plugin_log(), as in the daemon.
 */
#ifndef REPORT_CONFIG_FILE_H
#define REPORT_CONFIG_FILE_H

#include <daemon/collectd.h>
#include <liboconfig/oconfig.h>

/* How deep Include may nest, the first file included. */
#define CONFIG_FILE_DEPTH 8

struct config_visitor {
  /* Called for each item of the top level but Include, in the order in which
   * the daemon sees them, with the file that it is in. */
  void (*item)(void *context, const oconfig_item_t *item, const char *path);
  void *context;
};

/* True if all was read and parsed. Each failure has been logged. */
bool config_file_read(const char *path, const struct config_visitor *visitor);

/* True if a warning was about a backslash that the daemon removes. The parser
 * has no place for more than one configuration. */
bool config_file_lost_backslash(void);

#endif
