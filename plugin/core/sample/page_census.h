/*
 * Counts all pages of a process outside of its shmem. A process that maps much
 * shmem has little other memory: random pages would rarely meet it, but it is
 * all that the process does not share with relatives.
 *
 * pagemap shows which pages are exclusive, 512 in one read. The prices of some
 * of the others are looked up.
 */
#ifndef SMAPS_PAGE_CENSUS_H
#define SMAPS_PAGE_CENSUS_H

#include "sample/page_lookup.h"

/* No census is taken of more pages, present or not; nor if the pages are so far
 * apart that they take more reads. */
#define CENSUS_PAGES_MOST 65536
#define CENSUS_READS_MOST 1024

/* One of so many pages that are not exclusive is picked, within these limits.
 */
#define CENSUS_PAGES_FOR_A_PICK 256
#define CENSUS_PICKED_LEAST 16
#define CENSUS_PICKED_MOST 128

struct page_count {
  uint32_t pages; /* present */
  uint32_t exclusive;
};

struct page_census {
  /* These include zero pages, which do not count as resident, but look like
   * pages that are not exclusive. The picked pages show how many there are. */
  struct page_count kinds[PAGE_KINDS];
  /* Pages that are not exclusive, each with the same chance. */
  uint64_t picked[PAGE_KINDS][CENSUS_PICKED_MOST];
  uint32_t n_picked[PAGE_KINDS];
};

/* True if the pages outside of shmem are within these limits. */
bool page_census_can(const struct page_layout *l);

/* Pauses as page_lookup_find() does. 0, an outcome of procfs.h or a negative
 * errno. */
int page_census_take(struct page_lookup *l, const struct page_layout *layout,
                     struct page_census *ret);

#endif
