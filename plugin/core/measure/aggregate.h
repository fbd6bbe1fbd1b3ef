/* SPDX-License-Identifier: MIT */
/*
 * The sums of the groups: each member adds what was read of it in this cycle,
 * or else the best estimate.
 */
#ifndef SMAPS_AGGREGATE_H
#define SMAPS_AGGREGATE_H

#include "estimate/estimator.h"
#include "match/group.h"
#include "proc/meminfo.h"
#include "process/process.h"
#include "report/host.h"
#include <smaps/words.h>

/* The source of a process's numbers; NONE: nothing could be read. With STATM
 * and UNREADABLE they are guessed if possible. */
#define SOURCE_NUMBER(name, key, words) SOURCE_##name,
enum estimate_source { SOURCE_NONE, SOURCE_TABLE(SOURCE_NUMBER) };
#undef SOURCE_NUMBER

/* Why a process was not read in a cycle although it should have been. */
#define DEFERRAL_NUMBER(name, key, words) DEFERRED_##name,
enum deferral { DEFERRED_NOT, DEFERRAL_TABLE(DEFERRAL_NUMBER) };
#undef DEFERRAL_NUMBER

/* The known memory of a process. Source and deferral come from the outcome of
 * the cycle (member.h), by one table in aggregate.c. */
struct estimate {
  enum estimate_source source;
  enum deferral deferral;
  struct rollup rollup;      /* if estimate_has_rollup() */
  struct audit_errors error; /* see struct prediction */
  uint64_t age_ns;           /* of the reading that an estimate rests on */
  /* Pages of the sample that it rests on; 0 for a rollup. */
  uint32_t pages_sampled;
};

static inline bool estimate_has_rollup(const struct estimate *est) {
  return est->rollup.known != 0;
}

/* What is summed beside the groups in a cycle. */
struct aggregate {
  const struct cycle *cycle;
  /* The memory of the host's processes: AnonPages and Mapped of meminfo. 0 if
   * it is unknown, or meminfo is of another host. */
  double host_bytes;
  double guess_part; /* that each guess keeps of its Pss and uss */
  struct host_processes host;
  /* What all processes pay of memory that others may map; see freed.h. Of those
   * without a rollup all that is not anonymous counts. */
  uint64_t passable;
};

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

/*
 * Notes the sums of this cycle in the histories of the growth of the groups,
 * after the control groups were read. A group can grow by MemAvailable, or by
 * the rest of its control group's limit, if that is less.
 */
void group_growth_note(const struct group_table *groups,
                       const struct meminfo_sample *meminfo, uint64_t now_ns);

#endif
