/* SPDX-License-Identifier: MIT */
/*
 * Memory use of one process, or summed over a group. All amounts in bytes.
 *
 * pss, uss and swap add up over processes; rss and shared count a shared page
 * once for each process that maps it. shared_hugetlb does so too, and none of
 * the others include it: the rollup does not give the number of processes to
 * divide it by, and the mapcount of a page is 1 if processes share its page
 * tables (an aligned gigabyte mapped alike). Only swap_total includes swapped
 * shmem.
 */
#ifndef SMAPS_USAGE_H
#define SMAPS_USAGE_H

#include "proc/rollup.h"
#include "proc/statm.h"
#include "report/error.h"

/* What the end of all processes would free: a best guess, never more than Pss;
 * see measure/freed.h. */
struct freed {
  uint64_t bytes;
  uint64_t unsure; /* its error, besides that of Pss */
  /* The part of bytes that any other process may map as well; and how much the
   * processes pay of memory that others may map, for the error of others. */
  uint64_t passed, passable;
  /* The size of shared mappings that go, those of a fork family once; and how
   * much of them may be resident although no process maps it. */
  uint64_t shared_size, unmapped;
};

struct usage {
  uint64_t processes;
  uint64_t threads;
  /* Members whose rollup could not be read: they are guessed if the rollup of
   * another member was read. */
  uint64_t unreadable;
  /* Processes that could not be identified and may be further members, and
   * their resident bytes. */
  uint64_t perhaps, perhaps_bytes;
  uint32_t perhaps_pid; /* of the last such process */
  /* Unreadable members whose statm could not be read either. */
  uint64_t unknown;
  /* No member was found, but an unidentified process may be a member: all
   * values are unknown. */
  bool is_unseen;
  /* Members whose rollup was not asked for (Refresh "never"): guessed
   * likewise. */
  uint64_t unasked;

  uint64_t size, text, data, resident, resident_shared; /* statm */
  uint64_t page_tables;
  uint64_t tables_known, tables_unknown; /* members by their page tables */
  uint64_t kernel_stack;                 /* of all threads */
  uint64_t uptime_ns;                    /* of the member that began first */

  struct rollup rollup; /* sums; `known` are the fields that all members have */
  uint64_t rolled_up;   /* members in these sums */
  uint64_t uss;         /* mapped once */
  struct freed freed;
  /* The part of `resident` in these sums, without members that cannot be read,
   * and the part of Pss that was guessed for those members. */
  uint64_t resident_rolled_up, unread_pss;
  uint64_t largest_anonymous; /* of one member */

  /* About the rollups that were estimated in this cycle. */
  uint64_t unmeasured; /* members in the sums without any reading */
  bool was_read;       /* a member was read in an earlier cycle */
  uint64_t fresh_pss;  /* the part of Pss that was measured in this cycle */
  struct error_sum pss_error, uss_error; /* possible errors */
  uint64_t oldest_age_ns; /* of the readings that the estimates rest on */

  /* Members that ended since the processes were listed: what they had, and the
   * number and resident bytes of those that had never been read. */
  uint64_t ended_pss, ended_uss;
  uint64_t ended_unread, ended_unread_bytes;
};

/* Adds the statm of a member. */
void usage_add_statm(struct usage *u, const struct statm_sample *s,
                     uint64_t page_size);

/* The memory of a member, as it was read or estimated. */
struct usage_memory {
  const struct rollup *rollup;
  uint64_t resident_bytes; /* of its statm, which was added */
  struct freed freed;
  struct error pss, uss; /* possible errors */
  bool is_fresh;         /* read in this cycle: all but its error is known */
  bool is_unread;        /* a guess of a member that is unreadable, unasked */
  uint64_t age_ns; /* of the reading of an estimate; 0: like other members */
};

/*
 * Adds it.
 *
 * uss is Private_Clean + Private_Dirty, at most Pss: if a process maps a page
 * twice, some kernels (CONFIG_NO_PAGE_MAPCOUNT) count both mappings as private.
 */
void usage_add_memory(struct usage *u, const struct usage_memory *m);

/*
 * The possible errors of the sums, in bytes. The successor of a member that has
 * ended may not be listed yet: a process of the ended member's size can be
 * missing (or of the mean size, if that is less and the member was never read).
 * All memory of processes that may be further members can be missing.
 */
uint64_t usage_pss_error(const struct usage *u);
uint64_t usage_uss_error(const struct usage *u);

/* The error of freed, likewise. */
uint64_t usage_freed_error(const struct usage *u);

/* Divides usage_pss_error() by cause, in bytes; members: the sums of
 * error_divide(). */
void usage_pss_parts(const struct usage *u,
                     const struct error_sum members[ALL_CAUSES],
                     double ret[ALL_CAUSES]);

/*
 * Guesses the rollup of a member without a reading: the sums of the members
 * that have one, scaled to its size. A forked worker shares memory as the
 * others do, but its statm does not show that. Anonymous memory beyond the
 * largest member's is taken as private: no other member can share it.
 */
void usage_guess(const struct usage *u, const struct statm_sample *s,
                 uint64_t page_size, uint32_t kernel_fields,
                 struct rollup *ret);

/* True if one member at least was read, in this cycle or in an earlier one. */
bool usage_has_reading(const struct usage *u);

/* True if members that cannot be read are guessed: a member was read, though it
 * may have ended since, or may be refused now. */
bool usage_allows_guess(const struct usage *u);

/* True if the sums of the rollups are known, partly as guesses: not if the
 * statm of a member is unknown, nor if some members cannot be read and no
 * member ever was, because then nothing shows how they share memory. */
bool usage_is_known(const struct usage *u);

/*
 * Memory that fills the machine: anonymous memory and shmem, by PSS, and swap.
 * Neither files, which the kernel can drop or write back, nor what was given
 * back by MADV_FREE. Before 5.3 it is Anonymous, at most PSS, without shmem.
 */
uint64_t usage_filling(const struct usage *u);

/* Share of Pss that was read in this cycle, 0 to 100; of members that cannot be
 * read, the share of resident memory counts. */
double usage_coverage_percent(const struct usage *u);

/* True if the page tables of at least one member are known, or if there is no
 * member. The other members, which are mostly about to end, count with the
 * least size that is possible. */
bool usage_has_page_tables(const struct usage *u);

/* Age of the oldest reading in seconds; NaN if nothing was ever read. */
double usage_age_seconds(const struct usage *u);

#endif
