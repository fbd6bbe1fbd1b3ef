/* SPDX-License-Identifier: MIT */
/*
 * The alarms of a cycle: notes each group's state (report/alarm.h), writes the
 * sentences, and asks for captures.
 */
#ifndef SMAPS_ALARMS_H
#define SMAPS_ALARMS_H

#include "snapshot/recorder.h"
#include <smaps/counts.h>

/* Told in a cycle; others wait for the next. */
#define ALARMS_TOLD_MOST 10

struct alarms {
  bool
      has_begun; /* the first cycle notes nothing: `collectd -T` has no other */
  struct alarm_state host; /* processes that hang or are unidentified */
  struct alarm told[ALARMS_TOLD_MOST]; /* in this cycle */
  size_t n;
  uint64_t last_id;
};

/* Called after the groups are complete, and before recorder_run(). */
void alarms_run(struct alarms *a, const struct scene *s,
                const struct collector_counts *counts, struct recorder *r);

/* Called after recorder_run(): sets has_capture. */
void alarms_note_capture(struct alarms *a, const struct recorder *r);

#endif
