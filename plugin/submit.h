/* From the collector's results to value lists in collectd's write chain. */
#ifndef SMAPS_PLUGIN_SUBMIT_H
#define SMAPS_PLUGIN_SUBMIT_H

#include <smaps/collector.h>

/* Dispatches all that the last cycle found, under one timestamp. */
void submit_all(const struct collector *c);

#endif
