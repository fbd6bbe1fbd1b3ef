/* SPDX-License-Identifier: MIT */
/* Judges how far published values are from the truth, with a world of memory
 * (memory_world.h), the proc tree that shows it, and a collector that watches
 * the tree. */
#ifndef SMAPS_TESTS_STAGE_H
#define SMAPS_TESTS_STAGE_H

#include "memory_world.h"
#include "world.h"

/* Slots from here on are of processes that are in no group. */
#define STAGE_OUTSIDERS 12

/* Sums over all values that were judged: amounts as parts of the resident
 * memory. `far` and `beyond` count: farther off than the stage's `far`, and
 * than the error. */
struct tally {
  unsigned long n, beyond, uss_beyond, far;
  double off, worst, width;
  double pss_width, beyond_worst; /* the error, and beyond it: of the PSS */
  double oldest_seconds;
  uint64_t samples, reads;
};

struct stage {
  struct world world;
  struct memory_world memory;
  struct memory_view views[MEMORY_SLOTS];
  /* The tree shows these. */
  struct memory_process shown[MEMORY_SLOTS];
  struct memory_view shown_views[MEMORY_SLOTS];
  uint64_t shown_sizes[MEMORY_SLOTS];
  unsigned long cycle;
  unsigned born; /* slots of the processes that this cycle is first of */
  unsigned hanging_slot; /* whose rollup is not written; or MEMORY_SLOTS */
  struct tally tally;
  /* May be set after the beginning. */
  bool is_alone;   /* the process of slot 3 is called "g3", else by its group */
  double far;      /* as a part of the resident memory */
  double rounding; /* what the kernel and the core round off, in bytes */
  /* Writes further files of a process, and returns the size of its mappings in
   * pages. NULL: no further files, and 100000 pages. */
  uint64_t (*put_pages)(struct stage *s, unsigned slot);
};

/* Begins the only stage; readings are adaptive, and there are no groups yet. */
struct stage *stage_begin(const uint32_t object_pages[MEMORY_OBJECTS]);

/* Returns how many cycles a test has: the environment variable says it, or
 * `usual`. */
unsigned long stage_cycles(const char *variable, unsigned long usual);

bool stage_has(const struct stage *s, unsigned slot);

/* Processes are called by their group: "a" or "b"; outsiders are not. */
const char *stage_comm(const struct stage *s, unsigned slot);

/* Makes the tree show the memory as it is. */
void stage_show(struct stage *s);

/* Runs a cycle, and counts what it reads. */
void stage_run(struct stage *s, unsigned seconds);

/* Adds to the tally how far the values of a group are off, of which these slots
 * are the members. */
void stage_judge(struct stage *s, const char *name, unsigned slots);
/* Judges the group that has this number in the world of memory. */
void stage_judge_group(struct stage *s, unsigned group);

#endif
