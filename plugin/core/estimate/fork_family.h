/*
 * Fork families: processes that run the program that a common ancestor had
 * loaded, and so share its memory by copy on write. A process that calls exec
 * leaves. Sharing is a property of such a family and not of a group: a parent
 * in one group can have children in another.
 */
#ifndef SMAPS_FORK_FAMILY_H
#define SMAPS_FORK_FAMILY_H

#include "estimate/sharing.h"

struct track;

#define COW_BROKEN_UNITS 1024.0

/* Learnt from the first readings of processes that were estimated as
 * newborns. */
struct newborn_lessons {
  /* The part of their faults that made memory their own, and what a page of
   * files or shmem cost them; below 0 unknown. */
  double breaks, file_cost;
};

#define NEWBORN_LESSONS_AT_FIRST                                               \
  ((struct newborn_lessons){.breaks = -1, .file_cost = -1})

struct fork_family {
  uint32_t members;
  uint32_t changes;   /* members that have come or gone; wraps around */
  bool has_lost_head; /* nobody stands for it in its group */
  /* Memory that members have broken out of sharing, or unmapped, for each other
   * member: it raises what the rest costs them. In COW_BROKEN_UNITS of a byte.
   * It wraps around like the kernel's counters: only differences are used, and
   * they are exact for ever. */
  uint64_t cow_broken;
  /* Bytes that members got back from swap (wraps around): other members may
   * share them. */
  uint64_t got_back;
  /* The part of the faults that could have broken copy on write and did, as
   * readings have shown. */
  double cow_breaks;
  struct sharing sharing; /* of files and shmem */
  struct newborn_lessons newborns;
};

/* Makes a process a member of its parent's family, which is founded if there is
 * none. 0 or -ENOMEM. */
int fork_family_join(struct track *t, struct track *parent);

/* Leaves the family, if there is one; the last member frees it. */
void fork_family_leave(struct track *t);

/* True for the first child that asks after the one has left that stood for the
 * family in its group: it does so now. */
bool fork_family_take_place(struct track *t);

/* The number of members, or UINT16_MAX if there are more; 1 without a family.
 */
uint16_t fork_family_size(const struct track *t);

#endif
