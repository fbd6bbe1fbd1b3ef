/* SPDX-License-Identifier: MIT */
/*
 * The last known state of each group, for its capture: the summary, and what it
 * was if its processes have ended, because the alarm comes an interval later.
 *
 * A group without members keeps the state of the last cycle in which it had
 * any, for an hour. If its largest member ended some intervals before the
 * others, as by the OOM killer, the state is from before its end. A restarted
 * group keeps that state for some intervals, too, for the alarm about a kill.
 */
#ifndef SMAPS_LAST_KNOWN_H
#define SMAPS_LAST_KNOWN_H

#include "match/group.h"
#include "measure/aggregate.h"
#include "proc/meminfo.h"
#include "read/quarantine.h"
#include "schedule/read_time.h"
#include "snapshot/document.h"
#include <smaps/settings.h>

#define LAST_KNOWN_MEMBERS 8 /* of a group, the largest */
#define LAST_KNOWN_NS (3600 * NS_PER_S)
#define LAST_KNOWN_INTERVALS 10 /* for the state before the end */

/* What a cycle hands to snapshots: its results. */
struct scene {
  const struct settings *settings;
  const struct process_table *processes;
  const struct group_table *groups;
  const struct cycle *cycle;
  const struct aggregate *aggregate;
  struct meminfo_sample meminfo;
  const struct host_account *host;
  uint64_t time_ns; /* of the cycle, since the Epoch */
};

struct last_member {
  const struct process *process; /* valid only while they are gathered */
  uint64_t weight;               /* Pss, or the resident size */
  uint32_t pid, parent_pid;
  uint64_t starttime_ticks;
  struct stored_attributes attributes; /* a reference */
  struct usage usage;
};

struct last_state {
  const struct group *group;
  uint64_t cycle_ns; /* monotonic */
  uint64_t time_ns;  /* since the Epoch */
  struct usage usage;
  struct summary summary;                         /* without processes */
  struct last_member members[LAST_KNOWN_MEMBERS]; /* the largest first */
  size_t n;
};

struct last_known {
  struct last_state state;
  /* The state from before the largest member ended. NULL if that did not happen
   * in the last intervals. */
  struct last_state *before;
  bool has_restarted; /* since then all members were replaced in one cycle */
  /* The largest member that has ended around kills; pid 0: none is known. The
   * caller clears it when the kills were told. */
  struct summary_process gone;
};

/* Notes the groups of this cycle that have members, and forgets those that had
 * none for an hour. Without memory a group has no state. */
void last_known_note(const struct scene *s);

/* The sums of a group in this cycle, without its change. */
struct summary last_known_sum_up(const struct group *g, const struct scene *s);

/* The same with its largest members, for a group that was not noted. */
struct summary last_known_now(const struct group *g, const struct scene *s);

/* Called before last_known_note(), around a kill: sets `gone` if a larger
 * member than that was there in the cycle before, and is not any more. */
void last_known_note_gone(const struct group *g, const struct scene *s);

/* The same of a state, with its change and its largest members. */
struct summary last_known_summary(const struct last_state *l);

/* The same of a state before the end. */
struct summary last_known_past(const struct last_state *l,
                               const struct scene *s);

/* The bytes by which members are sorted: Pss, or the resident size if Pss is
 * unknown. */
uint64_t last_known_weigh(const struct scene *s, const struct process *p);

/* The state of a group before all its members ended, if a capture has to show
 * that: it has no members now, or others, and the alarm is about a kill. Only
 * such an alarm is about members from before a restart. NULL for the members of
 * now. */
const struct last_state *last_known_ended(const struct group *g,
                                          const struct scene *s, bool is_kill);

/* Forgets all. */
void last_known_done(const struct group_table *groups);

#endif
