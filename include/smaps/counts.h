/* SPDX-License-Identifier: MIT */
/* The counts of a cycle; times in nanoseconds. */
#ifndef SMAPS_COUNTS_H
#define SMAPS_COUNTS_H

#include <stdint.h>

struct collector_counts {
  uint64_t cycle_ns;
  uint64_t rollup_ns;       /* the part of cycle_ns spent on reading rollups */
  uint64_t longest_read_ns; /* of a rollup, in CPU time */
  uint64_t processes;       /* without kernel threads and zombies */
  uint64_t matched;         /* processes in a group */
  uint64_t groups;          /* reported groups */
  uint64_t rollup_reads;
  uint64_t sampled;        /* members whose pages were sampled instead */
  uint64_t deferred;       /* members not read for lack of time or readers */
  uint64_t overdue;        /* of these, whose reading is older than 2 MaxAge */
  uint64_t vanished;       /* processes that ended while being read */
  uint64_t denied;         /* the kernel refuses the process or its rollup */
  uint64_t hung;           /* processes in quarantine: reading them hangs */
  uint64_t unidentified;   /* live processes whose groups are unknown */
  uint64_t groups_refused; /* processes with a refused name */
  uint64_t state_age_ns;   /* since the state in StateFile; 0 without it */
  /* The ReadBudget that would be enough, if it has been too small for a minute
   * to read each member once in its MaxAge; otherwise 0. */
  double read_budget_wanted;
};

#endif
