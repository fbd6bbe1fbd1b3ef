/*
 * Histories of a memory_world: random ones of a kind, which can be replayed,
 * printed, and made as small as they can be while something holds of them.
 */
#ifndef SMAPS_TESTS_HISTORY_H
#define SMAPS_TESTS_HISTORY_H

#include "memory_world.h"

#include <stdio.h>

#define HISTORY_CYCLES 25
#define HISTORY_OPS 256
/* Slots from here on are of processes that are in no group. */
#define HISTORY_OUTSIDERS 12
#define HISTORY_GROUPS 2

enum op_kind {
  OP_START, /* then grows, in group `arg` */
  OP_FORK,  /* into slot `arg` */
  OP_EXEC,
  OP_EXIT,
  OP_GROW,
  OP_SHRINK,
  OP_WRITE,
  OP_MAP, /* object `arg` */
  OP_MAP_AROUND,
  OP_UNMAP,
  OP_SWAP_OUT,
  OP_SWAP_IN,
  OP_SWAP_IN_WRITTEN,
  OP_SWAP_OFF,
  OP_KINDS
};

struct op {
  uint8_t cycle, kind, slot, arg;
  uint16_t pages, at;
};

struct history {
  uint64_t seed; /* it was made from */
  uint64_t page_size;
  uint64_t interval_ns, max_age_ns;
  uint32_t object_pages[MEMORY_OBJECTS];
  unsigned cycles;
  unsigned n_ops;
  struct op ops[HISTORY_OPS];
  unsigned readings_per_cycle; /* the budget */
  /* Of 256 readings so many are not to be had. */
  unsigned missed;
  /* Slots that are read in each cycle, instead of what the budget allows. */
  bool has_reads;
  uint16_t reads[HISTORY_CYCLES];
};

/* A class of histories, by the operations that they have. */
struct history_class {
  const char *name;
  uint8_t groups; /* HISTORY_GROUPS at most */
  /* How often each operation comes, by all; fork, start and exit keep between
   * 4 and 8 members. */
  uint8_t weights[OP_KINDS];
  bool is_forked;  /* all members, from the first */
  bool is_pool;    /* and only the first forks, and does nothing else */
  bool is_mapping; /* what begins maps files and shmem */
  bool has_outsiders;
  uint64_t broken_once; /* the seed of a history that has broken a rule, or 0 */
};

void history_make(struct history *h, const struct history_class *c,
                  uint64_t seed);

/* Does all of a cycle. groups: of each slot, set by those that begin. */
void history_play(const struct history *h, unsigned cycle,
                  struct memory_world *w, uint8_t groups[MEMORY_SLOTS]);

void history_print(const struct history *h, FILE *out);

/* Removes and shrinks what can be without is_bad becoming false. */
void history_reduce(struct history *h, bool (*is_bad)(struct history *h));

#endif
