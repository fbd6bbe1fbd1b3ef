/*
 * A stage for the whole core, beside processes that are too large to be walked
 * and whose memory is known page by page: the limit is some 2,000 pages, so
 * that the large ones are sampled and the small ones are read. A load says what
 * happens before each cycle.
 */
#ifndef SMAPS_TESTS_STAGE_H
#define SMAPS_TESTS_STAGE_H

#include "addresses.h"
#include "world.h"

/* Slots from here on are in no group. */
#define OUTSIDERS 12

enum { OBJECT_FILE, OBJECT_LIBRARY, OBJECT_BUFFERS, OBJECT_SMALL };

struct tally {
  unsigned long n, beyond, uss_beyond, far, uss_far;
  double off, uss_off, worst, uss_worst, width, uss_width;
};

struct load;

/* Too large for a stack. */
struct stage {
  const struct load *load;
  unsigned long cycle;
  struct world world;
  struct memory_world memory;
  struct memory_view views[MEMORY_SLOTS];
  struct memory_process shown[MEMORY_SLOTS];
  struct addresses addresses[MEMORY_SLOTS];
  unsigned speed[MEMORY_SLOTS]; /* pages that it writes in a cycle */
  bool hides_frames, is_denied; /* those of pagemap; all of it */
  struct tally tally;
  uint64_t samples, reads;
};

struct load {
  const char *name;
  void (*live)(struct stage *s); /* what happens before a cycle */
  bool is_alone;                 /* each member is a group of its own */
  bool is_sparse;                /* it has reserved addresses */
  /* The goal, as a part of the resident memory; in how many cycles it may be
   * missed; and the mean error that is published. */
  double far, far_most, width_most;
  double beyond_most;    /* errors that do not hold; 0: 1 % */
  double budget_percent; /* 0: the default */
  unsigned seconds;      /* between cycles; 0: 10 */
};

/* The members are one group, "g"; or each is one, "g0" and so on. */
void stage_begin(struct stage *s, const struct load *load);
void stage_end(struct stage *s);

/* Lets the load happen, and runs a cycle. */
void stage_act(struct stage *s);

/* Plays the load for some hundred cycles (GIANTS_CYCLES), prints how far off
 * the published values were, and checks that. */
void stage_play(struct stage *s, const struct load *load);

bool stage_has(const struct stage *s, unsigned slot);

#endif
