/* SPDX-License-Identifier: MIT */
/* The processes of a proc tree, and the state that is kept of each. */
#ifndef SMAPS_PROCESS_H
#define SMAPS_PROCESS_H

#include "proc/procfs.h"
#include "proc/stat.h"
#include "proc/statm.h"
#include "process/attributes.h"
#include "process/back_off.h"

struct cgroup_node; /* see cgroup_tree.h */
struct group;       /* see group.h */
struct member;      /* see member.h */

/* What this cycle knows of a process. process_set_state() has the transitions.
 */
enum process_state {
  PROCESS_UNSEEN, /* not looked at yet in this cycle */
  PROCESS_KERNEL, /* a kernel thread: not looked at as long as it has the pid */
  PROCESS_GONE,   /* ended, or exiting: it has no memory any more */
  /* Alive, but this cycle does not know its memory or its groups: a file could
   * not be read, or matching it takes too long, or memory has run out. */
  PROCESS_UNKNOWN,
  PROCESS_ALIVE,
};

/* A rule with Children has taken this process or an ancestor: the rule may take
 * its descendants into the same group. */
struct claim {
  struct group *group; /* NULL for Ignore */
  uint16_t rule;
  bool is_inherited;
};

/* Explains why a process is in its groups. */
#define NO_RULE UINT16_MAX
#define EXPLAIN_MAX 32
struct explanation {
  uint16_t rule;     /* index of the rule that took it; n_rules for Other */
  bool is_inherited; /* taken as a descendant */
  uint8_t n_also;
  uint16_t also[EXPLAIN_MAX]; /* other rules that match its own names */
};

/* How far the matcher is with a process in this cycle; see match.h. */
enum match_progress {
  MATCH_OPEN,     /* not reached yet, or to be reached again by the last pass */
  MATCH_RESOLVED, /* it was matched, or is not due */
  MATCH_DEFERRED, /* it is due, but there was no time for it or its parent */
};

/* What only the matcher keeps of a process; match/ changes it. */
struct membership {
  /* Groups with fixed names that it may be in as well, because the kernel
   * refuses an attribute that would decide it. */
  struct group **perhaps;
  struct explanation *why; /* NULL without snapshots */
  /* Names of groups that MaxGroups has refused: a bit of the hash of each. */
  uint64_t refused_names;
  uint16_t n_perhaps;
  uint16_t times_deferred; /* cycles in a row in which it was deferred */
  uint16_t times_refused;  /* cycles in a row in which a name was refused */
  enum match_progress progress : 8;
  bool has_changed_claims; /* in this cycle; or in the last pass of the last */
};

/* Fields are ordered to save padding: there can be tens of thousands. */
struct process {
  uint32_t pid;
  /* The parent at first sight; the reaper of an orphan is not a relative. If
   * is_linked, parent_pid is 0 for no parent, or parent_starttime is valid. */
  uint32_t parent_pid;
  uint64_t parent_starttime;
  /* (pid, starttime) is the identity; the inode is a cheap hint of it. */
  uint64_t starttime_ticks;
  uint32_t ino; /* the low half */

  uint32_t threads;
  uint64_t start_stack;
  struct statm_sample statm;
  struct procfs_file statm_file;

  /* Changes with an exec and with a change of name. */
  uint64_t image;
  uint64_t identified_ns; /* 0 if never */
  struct stored_attributes attributes;

  struct group **groups;
  struct claim *claims;
  uint16_t n_groups, n_claims;
  struct membership membership;
  /* The control group that it was matched in; NULL if that is unknown. */
  struct cgroup_node *cgroup;

  struct member *member; /* owned by member/; NULL at first */
  struct back_off hung;  /* nothing that can hang is read; see quarantine.h */
  uint8_t hung_kind;     /* enum read_kind of the last hang */

  enum process_state state : 8; /* changed by process_set_state() */
  bool is_linked : 1;
  bool has_new_inode : 1;  /* it may be another process; stat has to be read */
  bool is_dead_leader : 1; /* its memory is read through another thread */
  bool is_settled : 1;     /* names were read twice since the last exec */
  bool is_match_due : 1;
  bool is_in_parents_mm : 1; /* its memory is counted with the parent */
  bool is_kcmp_refused : 1;  /* to this program; kcmp is not repeated */
  bool has_own_mm : 1;       /* its memory is never the parent's */
  bool was_hung : 1;         /* the log has named it */
};

struct process_table {
  struct process **processes; /* sorted by pid */
  size_t n;
  /* Called before a process is forgotten; set once. */
  void (*gone)(void *ctx, struct process *p);
  void *ctx;
};

/*
 * Updates the table to the listing, which is sorted by pid: keeps known pids,
 * adds new ones with all fields but pid and ino zero, and frees missing ones.
 * Sets the state to PROCESS_UNSEEN, except for kernel threads with the same
 * inode as before. After -ENOMEM new pids may be missing.
 */
int process_table_update(struct process_table *t,
                         const struct procfs_entry *entries, size_t n);

/* Changes the state. The transition must be one of those that are listed in the
 * function. */
void process_set_state(struct process *p, enum process_state to);

/* True if the process may be in any group: it could not be identified or
 * matched yet. A process that was identified before stays in its groups. */
bool process_is_unidentified(const struct process *p);

/* True if the process started then: a pid alone is used again, and (pid, start)
 * is not. */
static inline bool process_is_same(const struct process *p,
                                   uint64_t starttime_ticks) {
  return p->starttime_ticks == starttime_ticks;
}

/* True if it is a living member that the group counts for itself. */
static inline bool process_counts_in(const struct process *p,
                                     const struct group *g) {
  for (size_t i = 0; i < p->n_groups; i++)
    if (p->groups[i] == g)
      return p->state == PROCESS_ALIVE && !p->is_in_parents_mm;
  return false;
}

/* The process that has the pid now, or NULL. */
struct process *process_table_find(const struct process_table *t, uint32_t pid);

/* The process that started then and has that pid; NULL if it has ended, even if
 * another process has the pid now. */
struct process *process_table_find_same(const struct process_table *t,
                                        uint32_t pid, uint64_t starttime_ticks);

/* Forgets all but pid and inode, because another process has the pid now: it
 * begins in PROCESS_UNSEEN. */
void process_reset(const struct process_table *t, struct process *p);

/* A key of the program image, not of its name; never 0. A fork has its parent's
 * stack and text; an exec changes both. If the stack address is hidden, only
 * the size of the text counts, and an exec of the same program goes unseen. */
uint32_t process_program(const struct process *p);

/* Links a new process to its parent, after the stat of both was read. If the
 * parent's stat could not be read, the next cycle tries again. */
void process_table_link(const struct process_table *t, struct process *p);

/* The parent at first sight, if it is still in the table. */
struct process *process_table_parent(const struct process_table *t,
                                     const struct process *p);

void process_table_done(struct process_table *t);

#endif
