/* SPDX-License-Identifier: MIT */
/*
 * How long the kernel takes to walk the page tables of a process. A reading
 * costs us that time, and the process cannot map memory meanwhile.
 *
 * The amount of memory does not determine it: if it is scattered, 10 MB can
 * take as long as 100 (a page table is walked whole, however few of its entries
 * are used), and with huge pages 4 GB take no longer than 50 MB, unless a fork
 * shares them. So the read time is the time of the last walk, which includes
 * the mappings. Before the first walk it is the read time of a relative; or
 * else a guess by the time that a page has taken on this host, and then the
 * mappings are counted before they are walked.
 *
 * MaxLockHold is a promise: a walk that has exceeded it is not repeated to find
 * out. The samples show, once a minute, if the pages have become cheaper. A
 * process that cannot be sampled is tried again after a minute (or MaxAge, if
 * that is shorter), unless the memory that is there now says that it cannot be
 * fast enough. Each walk that is too long doubles the time to the next.
 */
#ifndef SMAPS_READ_TIME_H
#define SMAPS_READ_TIME_H

#include "estimate/cycle.h"
#include "member/member.h"

/* A walk that was made or is predicted: its CPU time, because a walk that
 * waited for a processor shows nothing about the next; and its pages. */
struct walk {
  uint64_t ns, resident, swapped;
  uint64_t huge;      /* resident, in huge pages of anonymous memory; or 0 */
  uint64_t tables;    /* page tables, empty ones included; or 0 */
  uint16_t relatives; /* processes of its fork family */
};

/* The predicted time of a reading. While nothing is known of the process, it is
 * the least that any walk takes, or 0 from walk_time_known_ns(). */
uint32_t walk_time_ns(const struct cycle *cycle, const struct process *p);
uint64_t walk_time_known_ns(const struct cycle *cycle, const struct process *p);

/* True if a walk of that read time stays within MaxLockHold even if it takes a
 * quarter longer: walks of the same pages differ. */
bool walk_time_fits(uint64_t ns, const struct policy *p);

/* True if a walk of its page tables is predicted to exceed its MaxLockHold. */
bool walk_is_too_long(const struct cycle *cycle, const struct process *p);

/* A walk of the memory that the process has now, without its time and without
 * huge pages. Before a baseline the number of pages in swap is that of the last
 * guess. */
struct walk walk_now(const struct cycle *cycle, const struct process *p);

/* The same with a guess of its time. Reads status, which walks no page tables.
 */
struct walk walk_guess(const struct cycle *cycle, const struct process *p);

/* True if no walk has shown its read time, or none since it has more relatives.
 */
bool walk_time_is_unsure(const struct process *p);

/* Renews the read time of a process that has none of its own yet, from that of
 * its relatives, and one that is too high when it is time for a new guess,
 * which reads status. Returns true if a walk of it may be made. */
bool walk_time_update(const struct cycle *cycle, struct process *p,
                      const struct policy *policy);

/* Learns from a walk of the process; relatives and guesses learn, too. */
void walk_time_learn(struct cycle *cycle, struct process *p,
                     const struct policy *policy, const struct walk *w);

/* The time to the first test, unless MaxAge is shorter; and the longest between
 * two. */
#define RETRY_FIRST_NS (60 * NS_PER_S)
#define RETRY_MOST_NS (3600 * NS_PER_S)

/* A guess. page_ns: of a page on this host. */
uint64_t read_time_guess_ns(const struct walk *w, uint32_t page_ns);

/* The read time in nanoseconds, 5 us to 4 s, of the pages that are resident and
 * swapped now: the entry of either is walked. It falls less than memory does,
 * because empty page tables take time too. If the process has more relatives
 * than at its last walk, its pages are shared by now, and take longer. */
uint32_t read_time_predict(const struct read_time *c, const struct walk *now);

/* Takes a guess for the present memory: the first, or one of a read time above
 * MaxLockHold at its next_try_s. The guess becomes the read time, unless it is
 * above MaxLockHold and a walk has shown the read time. Returns false if it is
 * above: the process must not be walked before the next guess. */
bool read_time_apply_guess(struct read_time *c, const struct walk *guess,
                           const struct policy *p, uint64_t now_ns);

/* Takes a guess that a sample of the resident pages has shown, with a margin
 * for each walk that was too long. Does nothing while the process is refused
 * for its number of mappings, which a sample does not show. */
void read_time_refine(struct read_time *c, struct walk guess,
                      const struct policy *p, uint64_t now_ns);

/* Returns the number of mappings with which a reading takes MaxLockHold, or 0
 * if they need not be counted: a walk has shown the read time, or even
 * `possible` mappings, the most that the process can have, take less. */
uint32_t read_time_mappings_most(const struct read_time *c,
                                 const struct policy *p, uint64_t possible);

/* Takes the answer that there are more mappings: the process is not walked
 * before the next try. */
void read_time_refuse(struct read_time *c, const struct policy *p,
                      uint64_t now_ns);

/* Takes a walk. If it is far below MaxLockHold, the read time at most doubles,
 * because caches may have been cold. */
void read_time_learn(struct read_time *c, const struct walk *w,
                     const struct policy *p, uint64_t now_ns);

#endif
