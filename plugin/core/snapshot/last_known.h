/*
 * The last known state of each group, for the capture of a group whose
 * processes have ended: the alarm comes an interval later.
 *
 * A group without members, even a removed group of a template, keeps the state
 * of the last cycle in which it had any, for an hour. If its largest member
 * ended some intervals before the others, as by the OOM killer, the state is
 * from before its end. A restarted group keeps that state for some intervals,
 * too, for the alarm about a kill.
 */
#ifndef SMAPS_LAST_KNOWN_H
#define SMAPS_LAST_KNOWN_H

#include "snapshot/change.h"
#include "snapshot/scene.h"

#define LAST_KNOWN_MEMBERS 8 /* of a group, the largest */
#define LAST_KNOWN_ENDED 100 /* groups without members */
#define LAST_KNOWN_NS (3600 * NS_PER_S)
#define LAST_KNOWN_INTERVALS 10 /* for the state before the end */

struct last_member {
  const struct process *process; /* valid only while they are gathered */
  uint64_t weight;               /* Pss, or the resident size */
  bool has_pss;
  uint32_t pid, parent_pid;
  uint64_t starttime_ticks;
  struct stored_attributes attributes; /* a reference */
  struct usage usage;
};

struct last_state {
  uint64_t cycle_ns; /* monotonic */
  uint64_t time_ns;  /* since the Epoch */
  struct usage usage;
  struct pss_change change;
  uint64_t limit_bytes;                           /* 0: none */
  struct last_member members[LAST_KNOWN_MEMBERS]; /* the largest first */
  size_t n;
};

struct last_known {
  char name[GROUP_NAME_SIZE];
  size_t rule;
  struct last_state state;
  /* The state from before the largest member ended. NULL if that did not happen
   * in the last intervals. */
  struct last_state *before;
  bool has_restarted; /* since then all members were replaced in one cycle */
};

struct last_known_table {
  struct last_known **groups; /* sorted by name */
  size_t n, cap;
};

/* Notes the groups of this cycle that have members. Without memory a group has
 * no state. */
void last_known_note(struct last_known_table *t, const struct scene *s);

/* NULL if there is none. */
const struct last_known *last_known_find(const struct last_known_table *t,
                                         const char *name);

/* The state of a group before all its members ended: it has no members now, or
 * others. NULL if some of them are still there. is_kill: the alarm is about a
 * kill, so the end may be before a restart. */
const struct last_state *last_known_ended(const struct last_known *l,
                                          const struct scene *s,
                                          bool has_members, bool is_kill);

void last_known_done(struct last_known_table *t);

#endif
