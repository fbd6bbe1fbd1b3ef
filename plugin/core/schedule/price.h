/*
 * How long the kernel takes to walk the page tables of a process. A reading
 * costs us that time, and the process cannot map memory meanwhile.
 *
 * The amount of memory does not determine it: if it is scattered, 10 MB can
 * take as long as 100 (a page table is walked whole, however few of its entries
 * are used), and with huge pages 4 GB take no longer than 50 MB. So the last
 * walk counts; it includes the mappings. Before the first, these are counted.
 *
 * A walk is slow also on a busy processor, and then the price is wrong. A price
 * that keeps a process from being read is therefore tested: after a minute (or
 * MaxAge, if that is shorter) by one more reading, unless the memory that is
 * there now says that it cannot be fast enough. Each test that fails doubles
 * the time to the next.
 */
#ifndef SMAPS_PRICE_H
#define SMAPS_PRICE_H

#include "estimate/cycle.h"
#include "estimate/member.h"

/* The predicted time of a reading: of a process of which nothing is known the
 * least possible, or 0. */
uint32_t price_ns(const struct cycle *cycle, const struct process *p);
uint64_t price_known_ns(const struct cycle *cycle, const struct process *p);

/* True if a walk of its page tables is predicted to exceed its MaxLockHold. */
bool price_is_too_large(const struct cycle *cycle, const struct process *p);

/* The known number of its pages in swap: before a baseline, from the guess. */
uint64_t price_swapped_pages(const struct cycle *cycle,
                             const struct process *p);

/* True if the reading is cheap enough, or if it is time to try it again. */
bool price_is_affordable(const struct cycle *cycle, struct process *p,
                         const struct policy *policy);

/* The time to the first test, unless MaxAge is shorter; and the longest between
 * two. */
#define COST_TEST_FIRST_NS (60 * NS_PER_S)
#define COST_TEST_MAX_NS (3600 * NS_PER_S)

/* A low guess: it does harm once at most, while a high one could keep a large
 * process from ever being read. The memory that is walked is in pages; tables:
 * VmPTE of status. */
struct read_cost read_cost_guess(uint64_t resident, uint64_t swapped,
                                 uint64_t tables);

/* The price in nanoseconds, 5 us to 4 s, with so many pages resident and
 * swapped now: the entry of either is walked. It falls less than memory does,
 * because empty page tables take time too. */
uint32_t read_cost_predict(const struct read_cost *c, uint64_t pages);

/* Takes a better guess, of what a sample of the resident pages has shown: not
 * where the number of mappings is what makes it dear. */
void read_cost_refine(struct read_cost *c, uint64_t ns, uint64_t resident,
                      uint64_t swapped);

/*
 * Takes a guess of the memory that is there now: the first, or once a price
 * above MaxLockHold may be tested (next_try_s). It becomes the price unless a
 * walk has shown that. False if the guess is above MaxLockHold: nothing is to
 * be read until the next guess, after a minute or MaxAge.
 */
bool read_cost_apply_guess(struct read_cost *c, const struct read_cost *guess,
                           const struct policy *p, uint64_t now_ns);

/* The number of mappings with which a reading takes MaxLockHold: before the
 * first reading no cheap file has their number. possible: the most that the
 * process can have. 0 if they need not be counted. */
uint32_t read_cost_mappings_most(const struct read_cost *c,
                                 const struct policy *p, uint64_t possible);

/* There are more of them. */
void read_cost_refuse(struct read_cost *c, const struct policy *p,
                      uint64_t now_ns);

/*
 * Takes a walk. A walk that another process interrupted on our CPU says nothing
 * of the next, so a single walk no more than doubles the price.
 */
void read_cost_learn(struct read_cost *c, uint64_t took_ns, uint64_t resident,
                     uint64_t swapped, const struct policy *p, uint64_t now_ns);

#endif
