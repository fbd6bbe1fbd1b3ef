/* This host as it is now. */
#ifndef REPORT_LIVE_H
#define REPORT_LIVE_H

#include "document.h"
#include "mirror.h"
#include "options.h"
#include "probe.h"

/*
 * Runs the plugin's core for one cycle and loads its snapshot. Returns 0, or
 * LIVE_MISTAKES if the configuration has mistakes, or a negative errno with the
 * reason. What the plugin tells is left for told_print().
 */
#define LIVE_MISTAKES PROBE_MISTAKES
int live_load(const struct options *o, struct document *ret,
              struct config_error *reason);

/* Makes the probe for the options, with that interval, of this host or (not
 * NULL) of a mirror; the same outcomes. */
int live_probe(const struct options *o, uint64_t interval_ns,
               const struct mirror *mirror, struct probe **ret,
               struct config_error *reason);

#endif
