/* SPDX-License-Identifier: MIT */
/* How often a group's rollups are read: Refresh, MaxAge and MaxLockHold. Their
 * defaults are in settings.c. */
#ifndef SMAPS_POLICY_H
#define SMAPS_POLICY_H

#include "base/duration.h"
#include <stdbool.h>

enum refresh {
  REFRESH_UNSET,
  REFRESH_NEVER,    /* statm only */
  REFRESH_ADAPTIVE, /* a rollup if its estimate is too uncertain */
  REFRESH_ALWAYS,   /* a rollup of every member in every interval */
};

struct policy {
  enum refresh refresh;
  uint64_t max_age_ns;       /* of the reading that an estimate rests on */
  uint64_t max_lock_hold_ns; /* predicted time of a page table walk */
  /* The same for a process whose pages cannot be sampled. It is longer by
   * default, because a guess is no better than a wait. */
  uint64_t unsampled_lock_hold_ns;
  bool comes_last; /* gets the time that configured groups leave */
};

/* Makes p the stricter of the two, for a process in two groups. */
void policy_tighten(struct policy *p, const struct policy *other);

#endif
