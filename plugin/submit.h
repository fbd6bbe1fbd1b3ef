/* Sends the collector's results to collectd's write chain. */
#ifndef SMAPS_PLUGIN_SUBMIT_H
#define SMAPS_PLUGIN_SUBMIT_H

#include <smaps/collector.h>

/* Dispatches all results of the last cycle, with one timestamp. */
void submit_all(const struct collector *c, const struct settings *settings);

#endif
