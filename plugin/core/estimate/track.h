/* What the estimator keeps of a process from cycle to cycle (estimator.h). */
#ifndef SMAPS_TRACK_H
#define SMAPS_TRACK_H

#include "estimate/baseline.h"
#include "estimate/sharing.h"
#include "estimate/strangers.h"

struct fork_family;
struct sampled_error;

/* Fields are ordered to save padding: there can be tens of thousands. */
struct track {
  struct observation now;
  struct baseline baseline;
  struct fork_family *family; /* NULL if it was never seen to fork */
  struct sharing *group_set;  /* of the first of its groups */
  uint64_t got_back;          /* family->got_back at the baseline */
  uint64_t cow_broken;        /* family->cow_broken at the baseline */
  /* Of the baseline, where that is a sample; owned by its sampling. */
  struct sampled_error *sample_error;
  struct sharing_since since; /* the baseline, in its set */
  uint32_t family_changes;    /* family->changes at the baseline */
  uint32_t group_pages;       /* counted in group_set */
  uint32_t family_pages;      /* and in the set of its family */
  float relatives_moved;      /* the part since the baseline, at most */
  float broken_bytes;         /* by its faults since the baseline */
  float breaks;               /* family->cow_breaks, as that was told by */
  float told_returned;        /* of what it got back from swap since then */
  float told_bytes;           /* that it left to its relatives since then */
  float unsure_bytes;         /* for strangers at the baseline */
  /* How far off a derived baseline can be (newborn.h); 0 where it was read. */
  float derived_anon, derived_files;
  float lent_kb;                /* to newborns of this cycle, all together */
  uint16_t newborns;            /* their number */
  uint8_t strangers_counted;    /* of the relatives at the baseline */
  bool is_newborn : 1;          /* forked since the last cycle */
  bool has_newborn : 1;         /* is the parent of such */
  bool is_heir : 1;             /* its baseline was derived from its parent's */
  bool is_child : 1;            /* in the set of its family alone */
  bool is_family_decided : 1;   /* for the program that it runs */
  bool has_faults : 1;          /* those of the baseline are known */
  bool was_swap_used : 1;       /* on the host, at the baseline */
  bool is_sampled : 1;          /* the baseline is no rollup, see sampling */
  enum strangers strangers : 2; /* at the baseline */
};

static inline bool track_has_baseline(const struct track *t) {
  return t->baseline.at_ns != 0;
}

#endif
