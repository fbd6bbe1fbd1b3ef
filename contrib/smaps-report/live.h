/* SPDX-License-Identifier: MIT */
/* This host as it is now. */
#ifndef REPORT_LIVE_H
#define REPORT_LIVE_H

#include "document.h"
#include "options.h"
#include "probe.h"

/* Runs the plugin's core for one cycle and loads its snapshot. Returns as
 * probe_new() does. messages_print() then prints what the plugin logged. */
int live_load(const struct options *o, struct document *ret,
              struct config_error *reason);

/* Reads the processes, and loads the snapshot of that. Returns 0, or a negative
 * errno with the reason. */
int live_refresh(struct probe *p, struct document *ret,
                 struct config_error *reason);

/* Loads one process of the last refresh, with its mappings, into the pool, or
 * with NULL into its own. */
int live_close_up(struct probe *p, uint64_t pid, struct pool *pool,
                  struct document *ret, struct config_error *reason);

#endif
