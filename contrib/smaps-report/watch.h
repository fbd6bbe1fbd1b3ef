/* SPDX-License-Identifier: MIT */
/* `live --watch`: the memory of this host on a screen that refreshes. */
#ifndef REPORT_WATCH_H
#define REPORT_WATCH_H

#include "options.h"

/*
 * Returns when the user ends it: 0. Returns as probe_new() does if it cannot
 * begin.
 */
int watch_run(const struct options *o, struct config_error *reason);

#endif
