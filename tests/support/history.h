/* SPDX-License-Identifier: MIT */
/*
 * Makes histories of a memory_world. Events are drawn by the weights of a
 * class, and are the same for the same seed.
 */
#ifndef SMAPS_TESTS_HISTORY_H
#define SMAPS_TESTS_HISTORY_H

#include "memory_world.h"

#include <stdio.h>

/* Slots from here on are of processes that are in no group. */
#define HISTORY_OUTSIDERS 12
#define HISTORY_GROUPS 2

enum op_kind {
  OP_START, /* then grows */
  OP_FORK,
  OP_EXEC,
  OP_EXIT,
  OP_GROW,
  OP_SHRINK,
  OP_WRITE,
  OP_MAP,
  OP_MAP_AROUND,
  OP_UNMAP,
  OP_SWAP_OUT,
  OP_SWAP_IN,
  OP_SWAP_IN_WRITTEN,
  OP_SWAP_OFF,
  OP_MERGE,
  OP_STOP_MERGING,
  OP_UNMERGE,
  OP_KINDS
};

struct history_class {
  const char *name;
  /* How often each operation comes, by all; fork, start and exit keep between
   * half of `members` and all of them alive. */
  uint8_t weights[OP_KINDS];
  uint8_t groups;       /* HISTORY_GROUPS at most */
  uint8_t members;      /* HISTORY_OUTSIDERS at most; 0: 8 */
  unsigned cycles;      /* 0: 10 to 25 */
  bool is_private;      /* nothing is shared: each estimate is exact */
  bool is_forked;       /* all members, from the first */
  bool is_pool;         /* and only the first forks, and does nothing else */
  bool is_mapping;      /* what begins maps files and shmem */
  bool is_mostly_other; /* four of five members that start are in group 1 */
  bool is_scarce;       /* few readings can be made */
  bool has_outsiders;
  bool has_unlisted; /* children that no list has */
};

struct history {
  const struct history_class *class;
  struct memory_world *world;
  FILE *log; /* of what happens; or NULL */
  uint64_t random;
  unsigned activity; /* the most that happens in a cycle */
  unsigned unlisted; /* slots of such children */
  /* For the one who looks on. */
  uint64_t page_size, interval_ns, max_age_ns;
  uint32_t object_pages[MEMORY_OBJECTS];
  unsigned cycles;
  double readings; /* that can be made in a cycle */
  unsigned missed; /* of 256 readings so many are not to be had */
};

void history_init(struct history *h, const struct history_class *c,
                  uint64_t seed);

/* Starts members until there are enough; in a world that can have others. */
void history_begin(struct history *h, struct memory_world *w);

/* What happens until the next cycle. */
void history_go_on(struct history *h);

/* Forks children that the list of the cycle does not have, and ends them. */
void history_fork_unlisted(struct history *h);
void history_end_unlisted(struct history *h);

#endif
