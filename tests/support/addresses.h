/*
 * The address space of a process of a memory_world: where each of its pages is,
 * and the files that show it (maps, pagemap, and the tree's kpagecount).
 * Objects have the same addresses in all processes. A page that was copied on
 * write has the address of the one before.
 */
#ifndef SMAPS_TESTS_ADDRESSES_H
#define SMAPS_TESTS_ADDRESSES_H

#include "memory_world.h"
#include "proctree.h"

/* The anonymous pages that an address space has room for. */
#define ADDRESSES 65536
/* Mappings begin and end at multiples of so many pages: objects, too. */
#define ADDRESSES_BLOCK 64

struct addresses {
  bool is_sparse;    /* all addresses are mapped, and few are used */
  bool is_wandering; /* it gives memory back, and maps other addresses */
  bool is_placed[MEMORY_PAGES];
  uint32_t page_at[ADDRESSES + ADDRESSES_BLOCK];
  uint32_t next, end;
};

/* Makes them those of a process without pages. */
void addresses_clear(struct addresses *a);

/* All anonymous memory of one that wanders is to be at other addresses. */
void addresses_move(struct addresses *a);

/* Gives an address to each page that has come, and takes those back of pages
 * that have gone. */
void addresses_update(struct addresses *a, const struct memory_world *w,
                      unsigned slot);

/* Writes maps and pagemap; page frames may be hidden. Returns the size of all
 * mappings, in pages. */
uint64_t addresses_put(const struct addresses *a, const struct proctree *t,
                       const struct memory_world *w, unsigned slot,
                       bool hides_frames);

/* Writes kpagecount. */
void addresses_put_counts(const struct proctree *t,
                          const struct memory_world *w);

#endif
