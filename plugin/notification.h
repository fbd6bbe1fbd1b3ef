/* SPDX-License-Identifier: MIT */
/* Notifications that ask for a capture, and the results of snapshots. */
#ifndef SMAPS_PLUGIN_NOTIFICATION_H
#define SMAPS_PLUGIN_NOTIFICATION_H

#include <smaps/collector.h>

/* Hands alarms to the collector from now on. 0, or -EIO if the daemon refuses
 * the registration. */
int notification_start(const struct settings *settings,
                       struct collector *collector);

/* Called before the collector is freed. */
void notification_stop(void);

/* Sends the alarms of a cycle; one with a capture that is not written yet by
 * the next call at the latest. */
void notification_send(const struct alarm *alarms, size_t n);

/* For collector_hooks: logs a failure, sends a notification for a capture,
 * and the alarm that it was made for. */
void notification_written(const struct document *w);

#endif
