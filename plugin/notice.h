/* Says in the log what went wrong, once and not each interval. */
#ifndef SMAPS_PLUGIN_NOTICE_H
#define SMAPS_PLUGIN_NOTICE_H

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>

#include <smaps/collector.h>

struct notices {
  bool is_denial_said;
  cdtime_t said[TROUBLES]; /* when, or 0 */
  bool has_failed;         /* the last cycle */
  bool has_no_snapshot;    /* the last that was due */
  bool is_stuck;           /* likewise: no reader was free */
};

/* To be called after each cycle, with what collector_cycle() has returned. */
void notices_after_cycle(struct notices *n, const struct collector *c,
                         const char *proc_root, int cycle_result);

#endif
