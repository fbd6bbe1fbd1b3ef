/*
 * Looks up single pages of a process: pagemap shows whether a page is present
 * and of which kind it is, kpagecount how often it is mapped. The mmap lock is
 * held for one page at a time.
 */
#ifndef SMAPS_PAGE_LOOKUP_H
#define SMAPS_PAGE_LOOKUP_H

#include "proc/statm.h"
#include "read/inspect.h"
#include "sample/page_layout.h"

/* The kinds that statm counts: PAGE_FILE is files and shmem. */
enum page_kind { PAGE_ANON, PAGE_FILE, PAGE_KINDS };

/*
 * Pages of a kind that were found present. The price of a page is the part of
 * it that the process pays: 1 / its number of mappings. A page may have been
 * found twice.
 *
 * Pages that are in no process's resident size are not found: the zero page,
 * memory of devices, hugetlbfs.
 */
struct page_tally {
  uint32_t pages;
  uint32_t exclusive;          /* mapped once */
  double price, price_squared; /* sums */
};

struct page_lookup {
  struct page_reader *reader;
  int dir_fd; /* of the process, or of a thread that has its memory */
  int pagemap;
  int pagecount; /* negative if it cannot be read */
  /* False without CAP_SYS_ADMIN, and where kpagecount cannot be read: the price
   * of a page that is not exclusive is unknown, and the prices are those of the
   * exclusive pages. Certain once a page was found. */
  bool has_mapcounts;
  bool has_found;
  uint64_t random; /* the state of the random numbers */
};

struct page_finding {
  bool is_resident;
  enum page_kind kind;
  uint64_t mappings; /* 0 for an unknown number of two or more */
};

/*
 * Opens the files of a process. Returns 0, an outcome of procfs.h or a negative
 * errno: PROCFS_DENIED if the kernel refuses the process, -EPERM if it refuses
 * pagemap alone, -ENOSYS if it has none.
 */
int page_lookup_open(struct page_reader *r, const struct proc_ref *p,
                     uint64_t seed, struct page_lookup *ret);
void page_lookup_close(const struct page_lookup *l);

/* Looks up one page, and pauses after some of them. 0, an outcome of procfs.h
 * or a negative errno. */
int page_lookup_find(struct page_lookup *l, uint64_t page,
                     struct page_finding *ret);

/* True if all of a page is in a region of this category (pagemap.h). */
bool page_lookup_is_in(const struct page_lookup *l, uint64_t page,
                       unsigned category);

uint64_t page_lookup_random(struct page_lookup *l);

/*
 * One page at random out of each of n equal parts of `pages` pages: the number
 * of the page in part i. A part need not begin at a page: so every page has the
 * same chance, however small the parts are; with as many parts as pages, each
 * is drawn once.
 */
uint64_t page_lookup_draw(struct page_lookup *l, uint64_t pages, uint64_t n,
                          uint64_t i);

void page_tally_add(struct page_tally *t, const struct page_finding *found);

/* Reads statm afterwards: PROCFS_GONE if the process has ended, or given up its
 * memory by an exec. */
int page_lookup_read_statm(const struct page_lookup *l,
                           struct statm_sample *ret);

#endif
