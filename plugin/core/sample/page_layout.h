/* SPDX-License-Identifier: MIT */
/*
 * The part of an address space that pages are sampled from: what is mapped
 * and, if little of that is resident, the regions in which pages are present.
 *
 * It is made from maps. Some mappings are left out, because their pages are
 * not part of the resident size: hugetlbfs, devices, and mappings without any
 * permission, which reserve addresses.
 *
 * A sparse address space is refined: pagemap is read for a bounded time, and
 * only the pages that are present are left of what was read. Pages that appear
 * there later are not found until the layout is made anew. It is for the caller
 * to decide when that is worth it.
 */
#ifndef SMAPS_PAGE_LAYOUT_H
#define SMAPS_PAGE_LAYOUT_H

#include "proc/mapping.h"
#include "proc/shmem.h"
#include "sample/page_lookup.h"

/* Does not change. Counted by references, which different threads may hold and
 * drop. */
struct page_layout;

/* Another reference; NULL for NULL. */
struct page_layout *page_layout_share(struct page_layout *l);
/* Accepts NULL. */
void page_layout_drop(struct page_layout *l);

/* The shared mappings of shmem at the time when it was made. */
const struct shmem_mappings *page_layout_shmem(const struct page_layout *l);

/* --- for page_sample.c --- */

/*
 * Makes a layout from the maps of a process, and adds all mappings to the
 * table, if that is not NULL. It is refined by the open pagemap if fewer than a
 * third of the mapped pages are resident. Returns 0, an outcome of procfs.h or
 * a negative errno: -EFBIG for more than some 100,000 separate runs.
 */
int page_layout_read(struct page_reader *r, uint32_t pid, int pagemap,
                     uint64_t resident_pages, struct mapping_table *table,
                     struct page_layout **ret);

/* --- pages to draw from --- */

/* Shmem: those whose mapping is known to be a shared one of shmem, which has no
 * anonymous pages. Own: all others. */
enum page_sort { PAGES_ALL, PAGES_OWN, PAGES_SHMEM };

/* Numbers of pages. */
struct page_run {
  uint64_t first, end;
  bool is_shmem;
  uint32_t mapping; /* index in the table, if there is one */
};

/* The next run of a sort, by address; false after the last. Zero *at before the
 * first. */
bool page_layout_next(const struct page_layout *l, enum page_sort sort,
                      size_t *at, struct page_run *ret);

uint64_t page_layout_pages(const struct page_layout *l, enum page_sort sort);

/* A walk through the pages of a sort. The rest is zero at first. */
struct page_walk {
  const struct page_layout *layout;
  enum page_sort sort;
  size_t at;
  struct page_run run; /* that has the page */
  uint64_t before;     /* pages of the sort before it */
};

/* Goes on to the page of a number, from 0 on by address: the numbers go up.
 * False if there are fewer. */
bool page_walk_to(struct page_walk *w, uint64_t number, uint64_t *ret_page);

#endif
