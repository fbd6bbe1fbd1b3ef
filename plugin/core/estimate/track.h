/*
 * All that estimate/ keeps of one process and of one group, from cycle to
 * cycle. struct process and struct group point to it, and no other folder looks
 * inside.
 */
#ifndef SMAPS_TRACK_H
#define SMAPS_TRACK_H

#include "estimate/baseline.h"
#include "estimate/deferral.h"
#include "estimate/fork_family.h"
#include "estimate/page_tables.h"
#include "estimate/read_cost.h"
#include "estimate/sampling.h"
#include "estimate/strangers.h"
#include "report/growth.h"
#include "report/usage.h"

/* Fields are ordered to save padding: there can be tens of thousands. */
struct track {
  /* The estimator's (estimator.h). */
  struct observation now;
  struct baseline baseline;
  /* It shares files and shmem with its family, or else with the first of its
   * groups. */
  struct fork_family *family;
  struct sharing *group_set;
  uint64_t cow_broken;        /* family->cow_broken at the baseline */
  struct sharing_since since; /* the baseline, in its set */
  uint32_t family_changes;    /* family->changes at the baseline */
  uint32_t counted_pages;     /* in its set */
  float relatives_moved;      /* the part since the baseline, at most */
  float broken_bytes;         /* by its faults since the baseline */
  float told_bytes;           /* that it left to its relatives since then */
  float unsure_bytes;         /* by faults while the baseline was read */
  float expected_common, expected_independent; /* error of Pss in this cycle */
  /* How far off a derived baseline can be (newborn.h); 0 where it was read. */
  float derived_anon, derived_files;
  float lent_kb;                /* to newborns of this cycle, all together */
  uint16_t newborns;            /* their number */
  uint8_t strangers_counted;    /* of the relatives at the baseline */
  bool is_newborn : 1;          /* forked since the last cycle */
  bool has_newborn : 1;         /* is the parent of such */
  bool is_heir : 1;             /* its baseline was derived from its parent's */
  bool is_family_decided : 1;   /* for the program that it runs */
  bool has_faults : 1;          /* those of the baseline are known */
  bool was_swap_used : 1;       /* on the host, at the baseline */
  bool is_sampled : 1;          /* the baseline is no rollup, see sampling */
  enum strangers strangers : 2; /* at the baseline */

  /* The measurer's (measure.c). */
  bool is_staggered : 1; /* was read again for its age once */
  /* In this cycle: its rollup is wanted; was read; cannot be read. */
  bool is_asked : 1, is_read : 1, is_unreadable : 1;
  bool has_new_tables : 1; /* they were read in this cycle */
  enum deferral deferral : 8;
  struct read_cost cost;
  struct page_tables tables;
  struct sampling *sampling; /* NULL unless it is too large to be walked */
  uint32_t program;          /* what it ran when the rest was learnt */
  uint32_t denied_until_s;   /* no use to try its rollup before */
  uint64_t wanted_ns;        /* since when a first rollup is wanted, or 0 */
};

struct group_track {
  struct sharing sharing; /* of members without a family */
  uint64_t last_pss;      /* in the cycle before */
  /* The sum of the errors to be expected goes down as members are chosen to be
   * read; nothing need be read below the other. */
  struct doubt_sum error;
  uint64_t tolerated_bytes;
  /* CPU time that samples for that error may still take in this cycle; below 0:
   * owed. */
  int64_t sampling_ns;
  /* The sums without guesses, which go by them; only in cycles with guesses. */
  struct usage measured;
  bool was_read; /* a member, in any cycle */
  /* Members that are sampled, in this cycle and in the one before. */
  uint32_t giants, giants_before;
  /* Of the members in this cycle, in ticks; see group_growth.h. */
  uint64_t oldest_start, newest_start;
  struct growth growth;
};

/* Makes the track of a process if need be, and clears it after an exec: nothing
 * that was learnt of a program holds for the next. 0 or -ENOMEM. */
int track_refresh(struct process *p);

/* Its memory is walked, and not sampled any more. */
void track_end_sampling(struct track *t);

/* Frees it, out of its family. */
void track_free(struct process *p);

#endif
