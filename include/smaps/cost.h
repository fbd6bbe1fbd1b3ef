/*
 * How long it takes the kernel to walk the page tables of a process, which is
 * what a reading costs us and for how long the process cannot map memory.
 *
 * Memory in use does not tell: where it is scattered, 10 MB can take as long as
 * 100 (a page table is walked whole, however few of its entries are used), and
 * with huge pages 4 GB take no longer than 50 MB. So the last walk counts; its
 * mappings, which nothing cheap would tell us, are in it.
 *
 * But a walk is slow also where the processor was busy, and then the price is
 * wrong. So one that keeps a process from being read is put to the test: after
 * MaxAge by one more reading, unless what is there now says that it cannot be
 * fast enough. Each that is too slow as well doubles the time to the next.
 */
#ifndef SMAPS_COST_H
#define SMAPS_COST_H

#include <stdbool.h>
#include <stdint.h>

#include <smaps/policy.h>

/* Zero for a process, or a program, of which nothing is known. */
struct cost {
  uint32_t ns;          /* of the last walk, or guessed; 0 for neither */
  uint32_t pages;       /* resident, at that time */
  uint64_t next_try_ns; /* from then on a price too high is put to the test */
  bool is_learnt;       /* by a walk */
  uint8_t failed_tests; /* one upon the other */
};

/* The longest time between two tests, but for a MaxAge that is longer. */
#define COST_TEST_MAX_NS (3600 * NS_PER_S)

/* What there is to walk, in pages. */
struct cost_basis {
  uint64_t resident, swapped, tables; /* tables: VmPTE of status */
};

/* A guess. Rather low: it does no harm but once, while one too high could keep
 * a large process from ever being read. */
struct cost cost_guess(const struct cost_basis *b);

/* In nanoseconds (4 s at most), with so many pages resident now; 5 us at
 * least. Page tables that are empty take their time too, so that it falls less
 * than memory does. */
uint32_t cost_predict(const struct cost *c, uint64_t resident_pages);

/* Whether a price above MaxStall may be put to the test now. Then a guess is to
 * be made of what is there now. */
bool cost_may_try(const struct cost *c, uint64_t now_ns);

/*
 * Takes such a guess in, also the first. It stands for the price unless that
 * was learnt. False where it is above MaxStall itself, so that nothing is to be
 * read, until the next guess after MaxAge.
 */
bool cost_take_guess(struct cost *c, const struct cost *guess,
                     const struct policy *p, uint64_t now_ns);

/*
 * Takes in a walk. One that was interrupted, by another process on our CPU,
 * says nothing of the next: a single one no more than doubles the price.
 */
void cost_learn(struct cost *c, uint64_t took_ns, uint64_t resident_pages,
                const struct policy *p, uint64_t now_ns);

#endif
