/* SPDX-License-Identifier: MIT */
/*
 * Problems of a cycle, by kind: their number and the first as an example.
 * The core counts them; the glue logs them.
 */
#ifndef SMAPS_DIAG_H
#define SMAPS_DIAG_H

#include <stdint.h>

enum diag_kind {
  DIAG_ROLLUP_DENIED,     /* the kernel refuses smaps_rollup */
  DIAG_PROCESS_DENIED,    /* the kernel refuses all files (hidepid=1) */
  DIAG_HIDDEN,            /* processes are missing in the list (hidepid=2, 4) */
  DIAG_EXECUTABLE_DENIED, /* the kernel refuses exe, which a rule needs */
  DIAG_NO_ROLLUP,         /* the kernel has no smaps_rollup */
  DIAG_FAILED,            /* another `error` of `file`, or EBADMSG */
  DIAG_SAMPLED,           /* MaxLockHold: its pages are sampled */
  DIAG_MAPCOUNT_DENIED,   /* its pages are, and kpagecount is refused */
  DIAG_TOO_LARGE,         /* MaxLockHold, and pagemap is refused */
  DIAG_HUNG,              /* ReadTimeout: `file` hangs for the first time */
  DIAG_READERS_HUNG,      /* all readers hang: only statm is read */
  DIAG_CONTAINER_FILE,    /* `file` of a container's runtime: `error` */
  DIAG_PID_FILE,          /* PID file `file`: `error`, or 0 if it hangs */
  DIAG_PID_DOUBT,         /* PID file `file` names `pid`: enum pid_doubt */
  DIAG_GROUP_REFUSED,     /* MaxGroups refuses group `name` */
  DIAG_MATCH_DEFERRED,    /* matching names takes too long */
  DIAGS
};

struct diag {
  uint64_t count;
  uint32_t pid;
  int error;        /* errno, or 0 */
  const char *file; /* in /proc/PID, or a path of the settings; may be NULL */
  char comm[64];    /* escaped */
  char name[128];   /* of the group */
};

struct process;

/* Counts a problem with a process; the first of its kind is the example. */
void diag_note(struct diag *diags, enum diag_kind kind, const struct process *p,
               int error, const char *file);

#endif
