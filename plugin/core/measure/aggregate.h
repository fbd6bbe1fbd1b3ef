/*
 * The sums of the groups: each member adds what was read of it in this cycle,
 * or else the best estimate.
 */
#ifndef SMAPS_AGGREGATE_H
#define SMAPS_AGGREGATE_H

#include "estimate/cycle.h"
#include "estimate/deferral.h"
#include "match/group.h"
#include "measure/guess.h"
#include "process/process.h"
#include "report/host.h"

/* What is summed beside the groups in a cycle. */
struct aggregate {
  const struct cycle *cycle;
  struct guess_limit guess_limit;
  struct host_processes host;
};

/* The source of a process's numbers. */
enum estimate_source {
  SOURCE_NONE,       /* nothing could be read */
  SOURCE_STATM,      /* no rollup is wanted; guessed if possible */
  SOURCE_UNREADABLE, /* likewise, because it was refused or failed */
  SOURCE_READ,       /* in this cycle */
  SOURCE_SAMPLED,    /* likewise, some of its pages (sampling.h) */
  SOURCE_ESTIMATED,
  SOURCE_GUESSED, /* never read: from what its group is made of */
  SOURCE_PARENT,  /* it runs in its parent's memory, and is counted there */
};

/* The known memory of a process. */
struct estimate {
  enum estimate_source source;
  enum deferral deferral;
  struct rollup rollup;              /* if estimate_has_rollup() */
  struct doubt pss_error, uss_error; /* at most */
  double pss_parts[ALL_CAUSES];      /* of pss_error, by the sum of all */
  uint64_t age_ns; /* of the reading that an estimate rests on */
  /* Pages of the sample that it rests on; 0 for a rollup. */
  uint32_t pages_sampled;
};

static inline bool estimate_has_rollup(const struct estimate *est) {
  return est->rollup.known != 0;
}

/* Adds all members to the sums of their groups, which are zero. Guesses come
 * last, because they are made from the other members. */
void aggregate_all(struct aggregate *a, const struct process_table *t,
                   const struct group_table *groups);

/* Gives the estimate of the last cycle for a process, in a group or not. */
void aggregate_estimate(const struct aggregate *a, const struct process *p,
                        struct estimate *ret);

/* The sums of one process by itself. */
void aggregate_one(const struct aggregate *a, const struct process *p,
                   const struct estimate *est, struct usage *ret);

#endif
