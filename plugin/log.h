/* SPDX-License-Identifier: MIT */
/* Logs the problems of a cycle: once, not in every interval. */
#ifndef SMAPS_PLUGIN_LOG_H
#define SMAPS_PLUGIN_LOG_H

#include <daemon/collectd.h>
#include <daemon/plugin.h>

#include <smaps/collector.h>

struct log_state {
  bool is_command;        /* in smaps-report, not in the daemon */
  bool has_hints;         /* check says itself why a PID file is doubted */
  bool is_host_logged;    /* why there are no values of the host */
  cdtime_t logged[DIAGS]; /* time of the last line, or 0 */
  cdtime_t scarce;        /* when ReadBudget was last too small, or 0 */
  bool has_failed;        /* the last cycle failed */
  bool has_no_snapshot;   /* the last snapshot that was due failed */
  bool is_hung;           /* no reader was free in the last cycle */
};

/* Called after each cycle, with the result of collector_cycle(). */
void log_after_cycle(struct log_state *n, const struct cycle_results *r,
                     const struct settings *settings, int cycle_result);

#endif
