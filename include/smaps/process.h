/* The processes of a proc tree, and what is known of each. */
#ifndef SMAPS_PROCESS_H
#define SMAPS_PROCESS_H

#include <smaps/back_off.h>
#include <smaps/cost.h>
#include <smaps/estimate.h>
#include <smaps/family.h>
#include <smaps/group.h>
#include <smaps/identity.h>
#include <smaps/procfs.h>
#include <smaps/stat.h>
#include <smaps/statm.h>

/* What a cycle has come to know of a process. */
enum process_state {
  PROCESS_UNSEEN,  /* not looked at yet in this cycle */
  PROCESS_KERNEL,  /* a kernel thread: never looked at again */
  PROCESS_GONE,    /* ended, or about to: it has no memory any more */
  PROCESS_UNKNOWN, /* alive, but its stat or statm could not be had */
  PROCESS_ALIVE,
};

/* A rule with Children that took this process or an ancestor of it: the rule
 * may take its descendants too, and into the same group. */
struct claim {
  struct group *group; /* NULL for Ignore */
  uint16_t rule;
  bool is_inherited;
};

/* Why a process is in its groups. */
#define NO_RULE UINT16_MAX
#define EXPLAIN_MAX 32
struct explanation {
  uint16_t rule;     /* the index of that which took it; n_rules for Other */
  bool is_inherited; /* as a descendant */
  uint8_t n_also;    /* EXPLAIN_MAX at most */
  uint16_t also[];   /* those that would have, by its own names */
};

/* Wherever it is ordered by size and not by sense, that is for its own: there
 * can be tens of thousands. */
struct process {
  uint32_t pid;
  /* The parent at first sight: who an orphan is handed to is no kin. Known,
   * with its start time, if is_linked and there is such a parent. */
  uint32_t parent_pid;
  uint64_t parent_starttime;
  /* (pid, starttime) is the identity; the inode is a cheap hint of it. */
  uint64_t starttime_ticks;
  uint32_t ino; /* the low half */

  uint32_t threads;
  uint64_t start_stack;
  struct statm_sample statm;
  struct procfs_file statm_file;

  /* Differs after an exec, and after a change of name. */
  uint64_t image;
  uint64_t identified_ns; /* 0 before the first time */
  struct stored_identity identity;
  uint32_t switches; /* of context, when the command line was read; low half */
  uint32_t executable_denied_s; /* when exe was refused last, or 0 */

  struct group **groups;
  struct claim *claims;
  uint16_t n_groups, n_claims;
  uint16_t put_offs; /* cycles in which it was due and not matched */
  uint16_t refusals; /* cycles in which it was refused a name, on end */
  /* Key of the name that MaxGroups refused, the last one; 0 for none. */
  uint32_t refused_name;
  struct explanation *why; /* NULL without snapshots */

  struct family *family;      /* NULL while it stands alone */
  uint64_t family_program;    /* what it ran when that was decided */
  uint64_t family_broken;     /* family->broken_share at the reading */
  struct sharing_since since; /* the reading, in process_sharing() */
  uint32_t shared_pages;      /* as they were counted there last */

  struct reading reading;
  uint64_t wanted_ns;       /* since when, if it was not read since; or 0 */
  uint64_t denied_until_ns; /* no use to try its rollup before */
  uint64_t kcmp_refused_until_ns; /* nor to ask whose mm it is in */
  struct back_off stalled; /* nor anything that can hang; see quarantine.h */
  uint32_t minor_faults;   /* as last seen */
  uint32_t vm_swap_kb;     /* likewise */
  float relatives_moved;   /* since the reading, at most */
  float broken;            /* what we took it to have broken since, in bytes */
  float doubt;             /* of the estimate, in bytes */
  float unsure;            /* of that, due to faults while it was read */
  struct cost cost;
  uint8_t stalled_kind;  /* the last, of what */
  uint32_t stalled_name; /* hash of comm then */

  enum process_state state : 8;
  bool is_linked : 1;
  bool has_new_inode : 1;  /* it may be another process; stat will tell */
  bool is_dead_leader : 1; /* its memory is read through another thread */
  bool has_addresses : 1;  /* stat shows them, so that no exec goes unseen */
  bool is_settled : 1;     /* names were read twice since the last exec */
  bool is_match_due : 1;
  bool has_changed_claims : 1; /* in this cycle */
  bool is_resolved : 1;        /* matched, if it was due, in this pass */
  bool is_waiting : 1;         /* to be matched behind the others, likewise */
  bool is_match_put_off : 1;   /* not to be, likewise, unless it waits */
  bool has_more_refused : 1;   /* than refused_name */
  bool is_staggered : 1;       /* was read again for its age once */
  /* In this cycle: its rollup is wanted; was read; could not be; was put off
   * for want of time, or of a reader. */
  bool is_asked : 1, is_read : 1, has_failed : 1, is_put_off : 1;
  bool is_in_parents_mm : 1; /* its memory is counted with the parent */
  bool is_apart : 1;         /* it never will be */
  bool was_stalled : 1;      /* and so it has been named */
};

struct process_table {
  struct process **processes; /* by pid */
  size_t n;
  size_t cap;
  struct process **spare; /* as large, for the next update */
};

/*
 * Brings the table up to the listing: keeps who is in it, adds newcomers with
 * all fields but pid and ino zero, and calls gone() for those that are missing
 * before it frees them. State becomes PROCESS_UNSEEN but for kernel threads
 * whose inode is the same as before. -ENOMEM leaves the table as it was.
 */
int process_table_update(struct process_table *t,
                         const struct procfs_entry *entries, size_t n,
                         void (*gone)(void *ctx, struct process *p), void *ctx);

struct process *process_table_find(const struct process_table *t, uint32_t pid);

/* Forgets all but pid and inode: another process has the pid now. */
void process_reset(struct process *p,
                   void (*gone)(void *ctx, struct process *p), void *ctx);

/* A fork has its parent's stack and program; an exec has neither, but for the
 * size of the text where the stack is hidden and it is the same program. */
bool process_is_same_program(const struct process *a, const struct process *b);

/* Whether it shares so much by copy on write that its minor faults tell of
 * more than private growth. */
bool process_wants_faults(const struct process *p);

/* The set with which it shares files and shmem; NULL where it is in no group
 * and stands alone. */
struct sharing *process_sharing(const struct process *p);

/* Finds the parent of a newcomer, once its stat and its parent's are read; to
 * be tried again in the next cycle where the parent's could not be. */
void process_table_link(const struct process_table *t, struct process *p);

/* The parent at first sight, if it is in the table still. */
struct process *process_table_parent(const struct process_table *t,
                                     const struct process *p);

void process_table_done(struct process_table *t,
                        void (*gone)(void *ctx, struct process *p), void *ctx);

#endif
