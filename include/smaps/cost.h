/*
 * How long it takes the kernel to walk the page tables of a process, which is
 * what a reading costs us and for how long the process cannot map memory.
 *
 * Memory in use does not tell: where it is scattered, 10 MB can take as long as
 * 100 (a page table is walked whole, however few of its entries are used), and
 * with huge pages 4 GB take no longer than 50 MB. So the last walk counts; its
 * mappings, which nothing cheap would tell us, are in it.
 */
#ifndef SMAPS_COST_H
#define SMAPS_COST_H

#include <stdint.h>

struct cost {
  uint32_t ns;    /* of the last walk, or the first guess; 0 for neither */
  uint32_t pages; /* resident, at that time */
};

/* What there is to walk, in pages. */
struct cost_basis {
  uint64_t resident, swapped, tables; /* tables: VmPTE of status */
};

/* The first guess. Rather low: it does no harm but once, while one too high
 * could keep a large process from ever being read. */
struct cost cost_guess(const struct cost_basis *b);

/* In nanoseconds (4 s at most), with so many pages resident now; 5 us at
 * least. */
uint32_t cost_predict(const struct cost *c, uint64_t resident_pages);

/*
 * Takes in a walk. One that was interrupted, by another process on our CPU,
 * says nothing of the next: a single one no more than doubles the prediction.
 */
void cost_learn(struct cost *c, uint64_t took_ns, uint64_t resident_pages);

#endif
