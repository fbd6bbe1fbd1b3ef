/*
 * Memory in use, of one process or summed over a group. All amounts in bytes.
 *
 * pss, uss and swap add up over processes; rss and shared count a shared page
 * once for each process that maps it.
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

  uint64_t size, text, data, resident, resident_shared; /* statm */

  struct rollup rollup; /* sums; `known` are the fields that all members have */
  uint64_t rolled_up;   /* members in these sums */
  uint64_t uss;         /* what would be freed if the process went away */
  uint64_t shared;      /* rss - uss */
  uint64_t resident_rolled_up; /* the part of `resident` that was read */
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

/* Whether what comes from the rollup is known for all members. */
bool usage_is_whole(const struct usage *u);

/* Share of the resident memory that the rollups cover, 0 to 100. */
double usage_coverage_percent(const struct usage *u);

#endif
