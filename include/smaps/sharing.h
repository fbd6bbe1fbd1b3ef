/*
 * What a page of a file or of shmem costs those who map it. They are a set:
 * fork relatives, or else the members of a group. statm says how many such
 * pages each of them maps, and so, together, how many times the pages of the
 * set are mapped; the more often, the less a page costs each. That is how a
 * process is seen to come, to go, or to touch more of a shared buffer by those
 * to whom nothing happens. How many of the pages that are touched are new to
 * all, and what else this overlooks, is learnt from the readings.
 *
 * A set knows the changes of one cycle only. Each member adds them up since its
 * own last reading, so that nothing grows with the time that the daemon runs.
 */
#ifndef SMAPS_SHARING_H
#define SMAPS_SHARING_H

#include <smaps/experience.h>
#include <stdbool.h>

struct sharing {
  uint64_t cycle_ns; /* when pages were last counted */
  /* Pages that members map and that were not private when read: before this
   * cycle, by those of them that are left, by the same now, by all now. */
  double before, left, grown, now;
  double shifted; /* by those that are left, in either direction */
  /* Shmem or files, whatever costs the members more: that is what the changes
   * are taken to be of. */
  bool is_shmem;
  double shmem_lead;
  /* What pages that a member has touched have brought, by what they would if
   * all were new at the cost of the others: 0 where all were old. */
  double newness;
  /* The readings of this cycle: by what factor, in sum, they found the pages
   * dearer than expected, and how many there were. */
  double surprise;
  double lessons;
  struct experience experience;
};

/* Since the last reading of a member: what a page costs now by what it did, and
 * what share of the pages has moved. */
struct sharing_since {
  double cost;
  double moved;
};

#define SHARING_JUST_READ ((struct sharing_since){.cost = 1})

/* A set of one member, which has been part of another (or of none, NULL). */
void sharing_init(struct sharing *s, const struct sharing *from,
                  uint64_t pages);

/* Counts the pages of a member, and those that it had in the cycle before (0
 * where it was not there), once in a cycle; all of them before any other
 * question about that cycle. */
void sharing_count(struct sharing *s, uint64_t cycle_ns, uint64_t pages,
                   uint64_t before);

/* So many more turn out to be shared; nothing has changed. */
void sharing_correct(struct sharing *s, double pages);

/* Adds the changes of this cycle: to be called once in each. */
void sharing_advance(const struct sharing *s, struct sharing_since *since);

/* For a reading: what the pages cost in it, by kind. */
void sharing_see_kind(struct sharing *s, uint64_t file_bytes,
                      uint64_t shmem_bytes);

/* What a reading has shown of the shared pages of a member. Costs in bytes. */
struct sharing_lesson {
  double expected, found;
  double doubted; /* as it was before experience made it less */
  double moved;   /* since its last reading */
};

void sharing_learn(struct sharing *s, const struct sharing_lesson *lesson);

/* Adds what the readings of this cycle have shown: to be called once, when all
 * are made, for each member that was not read itself. */
void sharing_take_lessons(const struct sharing *s, struct sharing_since *since);

#endif
