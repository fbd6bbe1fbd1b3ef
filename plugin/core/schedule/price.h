/*
 * How long the kernel takes to walk the page tables of a process. A reading
 * costs us that time, and the process cannot map memory meanwhile.
 *
 * The amount of memory does not determine it: if it is scattered, 10 MB can
 * take as long as 100 (a page table is walked whole, however few of its entries
 * are used), and with huge pages 4 GB take no longer than 50 MB, unless a fork
 * shares them. So the last walk counts; it includes the mappings. Before the
 * first, that of a relative counts; or else a guess, with what a page has cost
 * on this host, and the mappings are counted.
 *
 * MaxLockHold is a promise: a walk that has exceeded it is not repeated to find
 * out. The samples show, once a minute, if the pages have become cheaper. A
 * process that cannot be sampled is tried again after a minute (or MaxAge, if
 * that is shorter), unless the memory that is there now says that it cannot be
 * fast enough. Each walk that is too long doubles the time to the next.
 */
#ifndef SMAPS_PRICE_H
#define SMAPS_PRICE_H

#include "estimate/cycle.h"
#include "member/member.h"

/* A walk, or one that is predicted: CPU time, as a walk that waits for a
 * processor says nothing of the next, and pages. */
struct walk {
  uint64_t ns, resident, swapped;
  uint64_t huge;      /* resident, in huge pages of anonymous memory; or 0 */
  uint64_t tables;    /* page tables, empty ones included; or 0 */
  uint16_t relatives; /* processes of its fork family */
};

/* The predicted time of a reading: of a process of which nothing is known the
 * least possible, or 0. */
uint32_t price_ns(const struct cycle *cycle, const struct process *p);
uint64_t price_known_ns(const struct cycle *cycle, const struct process *p);

/* Whether a walk of that price will surely stay within MaxLockHold: walks of
 * the same pages differ. */
bool price_fits(uint64_t ns, const struct policy *p);

/* True if a walk of its page tables is predicted to exceed its MaxLockHold. */
bool price_is_too_large(const struct cycle *cycle, const struct process *p);

/* The walk of what it has now, without time and huge pages. Of its pages in
 * swap the known number: before a baseline, from the guess. */
struct walk price_walk(const struct cycle *cycle, const struct process *p);

/* The same with a guess of its time, from files whose reading walks no page
 * tables. */
struct walk price_guess(const struct cycle *cycle, const struct process *p);

/* True if no walk has shown its price, or none since it has more relatives. */
bool price_is_unsure(const struct process *p);

/* Renews the price of a process that has none of its own yet, from that of its
 * relatives, and one that is too high when it is time for a new guess, which
 * reads status. Returns true if a walk of it may be made. */
bool price_update(const struct cycle *cycle, struct process *p);

/* Takes a walk of it: also for relatives, and for guesses on this host. */
void price_learn(struct cycle *cycle, struct process *p, const struct walk *w);

/* The time to the first test, unless MaxAge is shorter; and the longest between
 * two. */
#define COST_TEST_FIRST_NS (60 * NS_PER_S)
#define COST_TEST_MAX_NS (3600 * NS_PER_S)

/* A guess. page_ns: of a page on this host. */
uint64_t read_cost_guess_ns(const struct walk *w, uint32_t page_ns);

/* The price in nanoseconds, 5 us to 4 s, of the pages that are resident and
 * swapped now: the entry of either is walked. It falls less than memory does,
 * because empty page tables take time too. With relatives that it did not have
 * then, its pages are shared. */
uint32_t read_cost_predict(const struct read_cost *c, const struct walk *now);

/* Takes a guess of the memory that is there now: the first, or once a price
 * above MaxLockHold may be tested (next_try_s). It becomes the price, unless it
 * is above MaxLockHold and a walk was made. False if it is above: nothing is to
 * be read until the next guess, after a minute or MaxAge. */
bool read_cost_apply_guess(struct read_cost *c, const struct walk *guess,
                           const struct policy *p, uint64_t now_ns);

/* The same for what a sample of the resident pages has shown, with a margin for
 * walks that were too long; not where it is the mappings that make it dear. */
void read_cost_refine(struct read_cost *c, struct walk guess,
                      const struct policy *p, uint64_t now_ns);

/* The number of mappings with which a reading takes MaxLockHold: before the
 * first reading no cheap file has their number. possible: the most that the
 * process can have. 0 if they need not be counted. */
uint32_t read_cost_mappings_most(const struct read_cost *c,
                                 const struct policy *p, uint64_t possible);

/* There are more of them. */
void read_cost_refuse(struct read_cost *c, const struct policy *p,
                      uint64_t now_ns);

/* Takes a walk. One that is far below MaxLockHold no more than doubles the
 * price, because caches may have been cold. */
void read_cost_learn(struct read_cost *c, const struct walk *w,
                     const struct policy *p, uint64_t now_ns);

#endif
