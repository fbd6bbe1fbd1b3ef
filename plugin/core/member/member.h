/* SPDX-License-Identifier: MIT */
/*
 * The state of a process that lasts from cycle to cycle, and a member of a
 * group as the measurer sees it; and the state of a group. struct process and
 * struct group point to these; only estimate/, sample/, schedule/ and measure/
 * look inside.
 */
#ifndef SMAPS_MEMBER_H
#define SMAPS_MEMBER_H

#include "config/policy.h"
#include "estimate/estimator.h"
#include "proc/status.h"
#include "process/process.h"
#include "report/growth.h"
#include "report/usage.h"

/*
 * The page tables of a process: VmPTE of status, as it was when that was last
 * read, and an estimate of the growth since. Tables come with memory and mostly
 * stay when it goes: the kernel frees them only where a mapping ends, and not
 * where the process gives memory back (MADV_DONTNEED) or the host swaps it out.
 *
 * VmPTE (mm_pgtables_bytes) lacks the table of the top level, which each
 * address space has: a page, with most processors, and a tenth of all for a
 * small process. PageTables of meminfo has it in recent kernels (seen in 6.18).
 *
 * Zero before the first reading: every process with memory has a table.
 */
struct page_tables {
  uint32_t kib;            /* 4 TiB at most; 0: unknown */
  uint32_t resident_pages; /* at that time */
};

/*
 * The outcome of a cycle for a member that can be measured. A cycle begins with
 * one of the first three; measure.c decides once whether NOT_CHOSEN becomes
 * another one. aggregate.c has the source and the deferral for each.
 */
enum outcome {
  OUTCOME_UNWANTED,   /* Refresh "never" */
  OUTCOME_UNREADABLE, /* its reading was refused or failed, now or earlier */
  OUTCOME_NOT_CHOSEN, /* its estimate will do, or its reading hangs */
  OUTCOME_READ,
  OUTCOME_SAMPLED, /* some of its pages were read (sampling.h) */
  OUTCOME_NO_TIME, /* a reading was wanted: the budget was spent, or no reader
                      was free */
  OUTCOME_TOO_LONG /* likewise: a reading is predicted to exceed MaxLockHold, or
                      samples fail */
};

struct member {
  struct track track;
  enum outcome outcome : 8;
  bool has_new_tables : 1; /* they were read in this cycle */
  struct read_time read_time;
  struct page_tables tables;
  struct shmem_known shmem;  /* with wants_freed */
  struct sampling *sampling; /* NULL unless it is too large to be walked */
  uint32_t program;          /* what it ran when the rest was learnt */
  struct back_off denied;    /* its rollup: the kernel refuses it */
  uint64_t wanted_ns;        /* since when a first rollup is wanted, or 0 */
};

struct group_track {
  struct sharing sharing; /* of members, and of families by their founders */
  /* The sum of the expected errors, which goes down as members are chosen to be
   * read; and the error below which nothing has to be read, by the Pss of the
   * cycle before. */
  struct error_sum error;
  uint64_t tolerated_bytes;
  /* CPU time that samples for that error may still take in this cycle; below 0:
   * owed. */
  int64_t sampling_ns;
  /* Sums over the members with a reading; guesses are scaled from these. Only
   * in cycles with guesses. */
  struct usage measured;
  bool was_read; /* a member, in any cycle */
  /* Members that are sampled, in this cycle and in the one before. */
  uint32_t giants, giants_before;
  /* When the members of this cycle started, in ticks; see report/growth.h. */
  uint64_t oldest_start, newest_start;
  struct growth growth;
};

/* Makes the state of a process, if it has none. 0 or -ENOMEM. */
int member_make(struct process *p);

/* Clears the state after an exec, if there was one: nothing that was learnt of
 * a program holds for the next. */
void member_refresh(struct process *p);

/* Makes the state of a process that is to be sampled, unless it has one.
 * Returns 0 or -ENOMEM. */
int member_begin_sampling(struct member *m);

/* Frees that state: the process is walked again. */
void member_end_sampling(struct member *m);

/* Takes the process out of its family, and frees its state. */
void member_free(struct process *p);

/* True if its memory counts in its groups, even if its files cannot be read
 * now. */
bool member_is_counted(const struct process *p);

/* True if its memory can be measured in this cycle. */
bool member_is_measured(const struct process *p);

/* The strictest policy of its groups. MaxLockHold is longer if the kernel has
 * refused samples of the process. */
struct policy member_policy(const struct process *p);

/* Reads status, and takes its page tables; false where it cannot be read. */
bool member_read_status(struct procfs *procfs, const struct process *p,
                        struct status_sample *ret);

/* The same for VmSwap alone. */
bool member_read_swap_kb(struct procfs *procfs, const struct process *p,
                         uint32_t *ret);

/* Takes a reading. One without VmPTE, of a process that is exiting or of a
 * kernel that has none, leaves known tables as they are. */
void page_tables_take(struct page_tables *t, const struct status_sample *s,
                      uint64_t resident_pages);

static inline bool page_tables_are_known(const struct page_tables *t) {
  return t->kib > 0;
}

/* True if status was never read, or if resident memory has changed since then
 * by a sixteenth, and by at least 64 pages. */
bool page_tables_are_due(const struct page_tables *t, uint64_t resident_pages);

/*
 * The estimated bytes now: the last reading, an entry for each page that became
 * resident since, and the top level. (A page far from all others takes a table
 * of its own, which only a reading shows.) Without a reading it is the least
 * possible: an entry for each page.
 */
uint64_t page_tables_bytes(const struct page_tables *t, uint64_t resident_pages,
                           uint64_t page_size);

#endif
