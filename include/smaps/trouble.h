/*
 * What went wrong in a cycle, by kind: how often, and the first case as an
 * example. The core notes it; whoever runs the core says it in a log.
 */
#ifndef SMAPS_TROUBLE_H
#define SMAPS_TROUBLE_H

#include <stdint.h>

enum trouble_kind {
  TROUBLE_ROLLUP_DENIED,     /* the kernel refuses smaps_rollup */
  TROUBLE_PROCESS_DENIED,    /* … the whole process (hidepid=1) */
  TROUBLE_HIDDEN,            /* there are some that we cannot even list */
  TROUBLE_EXECUTABLE_DENIED, /* … exe, which a rule looks at */
  TROUBLE_NO_ROLLUP,         /* it has neither smaps_rollup nor smaps */
  TROUBLE_FAILED,            /* another error; see `error` */
  TROUBLE_MALFORMED,         /* a text that makes no sense; see `file` */
  TROUBLE_TOO_LARGE,         /* MaxStall: its rollup is not read */
  TROUBLE_STALLED,       /* StallTimeout: `file` hangs, for the first time */
  TROUBLE_READERS_STUCK, /* so many hang that nothing is read */
  TROUBLE_PID_FILE,      /* `file`, by its path: `error`, or 0: it hangs */
  TROUBLE_GROUP_REFUSED, /* MaxGroups; see `name` */
  TROUBLE_NAME_REFUSED,  /* … new ones in an hour; `limit` */
  TROUBLE_MATCH_PUT_OFF, /* matching names takes too long */
  TROUBLES
};

struct trouble {
  uint64_t count;
  uint32_t pid;
  int error;        /* errno, or 0 */
  const char *file; /* of /proc/PID, or of the settings; or NULL */
  char comm[64];    /* escaped */
  char name[128];   /* of the group */
  uint64_t limit;   /* that it is beyond */
};

#endif
