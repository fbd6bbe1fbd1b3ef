/*
 * Memory in use, of one process or summed over a group. All amounts in bytes.
 *
 * pss, uss and swap add up over processes; rss and shared count a shared page
 * once for each process that maps it. So does shared_hugetlb, which is in none
 * of these: the rollup does not say by how many to divide it, and the mapcount
 * of a page is 1 where processes share the page tables for it (a gigabyte that
 * they map alike). Swapped-out shmem is in swap_total alone.
 */
#ifndef SMAPS_USAGE_H
#define SMAPS_USAGE_H

#include <smaps/rollup.h>
#include <smaps/statm.h>

struct usage {
  uint64_t processes;
  uint64_t threads;
  /* Members whose rollup could not be had: what comes from it is not known. */
  uint64_t unreadable;
  /* Those of them whose statm could not be had either. */
  uint64_t unknown;
  /* No member was seen, and not every process could be: nothing is known. */
  bool is_unseen;
  /* Members whose rollup we did not ask for (Refresh "never"). */
  uint64_t unasked;

  uint64_t size, text, data, resident, resident_shared; /* statm */

  struct rollup rollup; /* sums; `known` are the fields that all members have */
  uint64_t rolled_up;   /* members in these sums */
  uint64_t uss;         /* what would be freed if the process went away */
  uint64_t shared;      /* rss - uss */
  uint64_t resident_rolled_up; /* the part of `resident` that was read */
  uint64_t largest_anonymous;  /* of one member */

  /* What stands in for rollups that were not read in this cycle. */
  uint64_t unmeasured;    /* members without any reading, past or present */
  uint64_t fresh_pss;     /* the part of Pss that was read in this cycle */
  uint64_t doubt;         /* by how much Pss may be wrong */
  uint64_t oldest_age_ns; /* of the readings that estimates stand on */
};

/* Counts a member whose memory is another's (the same mm), or is none. */
void usage_add_process(struct usage *u, uint32_t threads);

/* Adds the statm of a member. */
void usage_add_statm(struct usage *u, const struct statm_sample *s,
                     uint64_t page_size);

/*
 * Adds the rollup of a member whose statm has been added.
 *
 * uss is Private_Clean + Private_Dirty, but never above Pss: a page that a
 * process maps twice is shared with nobody, and some kernels
 * (CONFIG_NO_PAGE_MAPCOUNT) then call both mappings private.
 */
void usage_add_rollup(struct usage *u, const struct rollup *r,
                      uint64_t resident_bytes);

/*
 * Adds an estimate in the place of a rollup: made from a reading of that age,
 * or (age_ns 0) from what other members use.
 */
void usage_add_estimate(struct usage *u, const struct rollup *r,
                        uint64_t resident_bytes, uint64_t doubt,
                        uint64_t age_ns);

/*
 * What a member that was never read probably uses: for its size as much as the
 * members do that are in the sums. A forked worker shares what the others
 * share, and its statm does not say so. But no anonymous memory beyond what the
 * largest of them has: there is nobody to share it with.
 */
void usage_guess(const struct usage *u, const struct statm_sample *s,
                 uint64_t page_size, uint32_t kernel_fields,
                 struct rollup *ret);

/* Whether what comes from the rollup is known for all members. */
bool usage_is_whole(const struct usage *u);

/*
 * Share of Pss that was read in this cycle, 0 to 100. Where Pss is not known it
 * is that of the resident memory.
 */
double usage_coverage_percent(const struct usage *u);

/* Age of the oldest reading in seconds; NaN where nothing was ever read. */
double usage_age_seconds(const struct usage *u);

#endif
