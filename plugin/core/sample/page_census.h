/*
 * Counts the pages of a process outside of its shmem, one by one. A process
 * that maps a large shmem has little memory of its own beside it: of that, a
 * drawing finds a few pages, and yet it is all that its relatives do not share.
 *
 * Whether a page is exclusive is in pagemap, so that 512 pages are known by one
 * read. Of those that are not exclusive, some are picked whose price is to be
 * looked up.
 */
#ifndef SMAPS_PAGE_CENSUS_H
#define SMAPS_PAGE_CENSUS_H

#include "sample/page_lookup.h"

/* Of more pages, present or not, no census should be taken; nor of pages that
 * take more reads, because they are far from each other. */
#define CENSUS_PAGES_MOST 65536
#define CENSUS_READS_MOST 1024

/* One of so many that are not exclusive is picked, within these limits. */
#define CENSUS_PAGES_FOR_A_PICK 256
#define CENSUS_PICKED_LEAST 16
#define CENSUS_PICKED_MOST 128

struct page_count {
  uint32_t pages; /* present */
  uint32_t exclusive;
};

struct page_census {
  /* With zero pages, which are in no resident size: they look like others that
   * are not exclusive, and those that were picked show how many they are. */
  struct page_count kinds[PAGE_KINDS];
  /* Pages that are not exclusive, each with the same chance. */
  uint64_t picked[PAGE_KINDS][CENSUS_PICKED_MOST];
  uint32_t n_picked[PAGE_KINDS];
};

/* True if no more are outside of shmem. */
bool page_census_can(const struct page_layout *l);

/* Pauses as page_lookup_find() does. 0, an outcome of procfs.h or a negative
 * errno. */
int page_census_take(struct page_lookup *l, const struct page_layout *layout,
                     struct page_census *ret);

#endif
