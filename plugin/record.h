/* Notifications that ask for a capture, and what is said of snapshots. */
#ifndef SMAPS_PLUGIN_RECORD_H
#define SMAPS_PLUGIN_RECORD_H

#include <smaps/collector.h>

/* Hands alarms to the collector from now on. 0, or -EIO where the daemon does
 * not take us. */
int record_start(const struct settings *settings, struct collector *collector);

/* To be called before the collector is freed. */
void record_stop(void);

/* For collector_hooks: logs a failure, tells of a capture. */
void record_written(const struct written *w);

#endif
