/* Runs the plugin to make a snapshot of this host. */
#ifndef REPORT_LIVE_H
#define REPORT_LIVE_H

#include "options.h"

/*
 * Runs `collectd -T` with only this plugin, in a temporary directory that is
 * removed before this returns. The caller reads and closes *ret, the snapshot.
 * Returns 0, or a negative errno with the reason. Copies collectd's log to
 * stderr; or, for COMMAND_CHECK, prints the mistakes that it tells and returns
 * LIVE_MISTAKES.
 */
#define LIVE_MISTAKES 1
int live_run(const struct options *o, FILE **ret, struct config_error *reason);

#endif
