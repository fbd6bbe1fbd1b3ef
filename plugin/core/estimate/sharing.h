/*
 * The cost of a page of a file or of shmem to the processes that map it. They
 * form a set: a fork family of several, or else a group. statm says how many
 * such pages each of them maps, and so how many times the pages of the set are
 * mapped together; the more often, the less a page costs each. A process is
 * so seen to come, to go, or to touch more of a shared buffer, by processes to
 * which nothing happens. Readings show what this overlooks, such as how many of
 * the touched pages no member had before.
 *
 * A set knows the changes of one cycle only. Each member adds them up since its
 * own baseline, so that nothing grows with the time that the daemon runs.
 */
#ifndef SMAPS_SHARING_H
#define SMAPS_SHARING_H

#include "estimate/audit.h"
#include <stdbool.h>

struct sharing {
  uint64_t cycle_ns; /* when pages were last counted */
  /* Pages that members map and that were not private when read: in the cycle
   * before, by all members and by those that are left; now, by these and by
   * all.
   */
  double before, left, grown, now;
  double shifted;     /* mapped or unmapped by members that are left */
  struct audit audit; /* of the estimates of its members */
};

/* Changes since the baseline of a member. */
struct sharing_since {
  float cost;        /* of a page now, by its cost then */
  float moved;       /* the part of the pages that was mapped or unmapped */
  float moved_pages; /* their number */
};

#define SHARING_JUST_READ ((struct sharing_since){.cost = 1})

/* A set of one member that maps so many pages, or of none. */
void sharing_init(struct sharing *s, uint64_t pages);

/* Counts the pages of a member, and its pages of the cycle before (0 if it was
 * not there). Each member is counted once in a cycle, before any other question
 * about that cycle. */
void sharing_count(struct sharing *s, uint64_t cycle_ns, uint64_t pages,
                   uint64_t before);

/* The same for one that has had its pages, and was not counted. */
void sharing_admit(struct sharing *s, uint64_t cycle_ns, uint64_t pages,
                   uint64_t before);

/* So many more pages turn out to be shared; nothing has changed. */
void sharing_correct(struct sharing *s, double pages);

/* The cost of a page in this cycle, by its cost in the one before. */
double sharing_change(const struct sharing *s);

/* Whether members are gone since the cycle before. */
bool sharing_has_lost(const struct sharing *s);

/* Adds the changes of this cycle to those of a member, once in a cycle. */
void sharing_advance(const struct sharing *s, struct sharing_since *since);

#endif
