/* A snapshot of this host, now, by the plugin itself. */
#ifndef REPORT_LIVE_H
#define REPORT_LIVE_H

#include "options.h"

/*
 * Runs `collectd -T` with the plugin alone, in a directory of its own that is
 * gone when this returns. *ret is the snapshot, to be read and closed. Returns
 * 0, or negative with the reason; what collectd had to say is on stderr by
 * then.
 */
int live_run(const struct options *o, FILE **ret, struct reason *reason);

#endif
