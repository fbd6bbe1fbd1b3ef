/*
 * Looks up single pages of a process: pagemap shows whether a page is present
 * and of which kind it is, kpagecount how often it is mapped. The mmap lock is
 * held for one page at a time.
 *
 * /proc/PID/pagemap and /proc/kpagecount (Documentation/admin-guide/mm/
 * pagemap.rst): files of 64-bit numbers, one for each page of an address space,
 * or for each page frame of the machine; and an ioctl on pagemap.
 *
 * Pages are those of sysconf(_SC_PAGESIZE), whatever the size of a mapping's
 * pages is, and are numbered from address 0. In a tree that is no procfs these
 * are regular files, and the ioctl fails with -ENOTTY.
 *
 * pagemap needs the right to ptrace and the owner's file mode (0400);
 * kpagecount the latter. Without CAP_SYS_ADMIN all page frames read as 0.
 */
#ifndef SMAPS_PAGE_LOOKUP_H
#define SMAPS_PAGE_LOOKUP_H

#include <stdatomic.h>
#include <stdlib.h>

#include "proc/statm.h"
#include "read/inspect.h"
#include "sample/sampled.h"

/* --- entries --- */

/* The page is mapped: not swapped out, not migrating. Also true for the zero
 * page and for memory of devices, which count in no process. */
static inline bool pagemap_is_present(uint64_t entry) { return entry >> 63; }

/* It belongs to a file or to shmem (since 3.5). */
static inline bool pagemap_is_file(uint64_t entry) { return entry >> 61 & 1; }

/* It is mapped once (since 4.2). Only of present pages: kernels before 6.11 set
 * the bit for others, too. */
static inline bool pagemap_is_exclusive(uint64_t entry) {
  return entry >> 56 & 1;
}

/* The page frame of a present page; 0 if it is hidden from us. */
static inline uint64_t pagemap_frame(uint64_t entry) {
  return entry & ((UINT64_C(1) << 55) - 1);
}

/*
 * Reads up to n entries of pagemap from the given page on, or numbers of
 * kpagecount from the given frame on. Sets *ret_n to how many there were: fewer
 * at the end of the address space or of the file, and 0 once the process has
 * given up the address space of which the file was opened. Returns 0,
 * PROCFS_GONE, PROCFS_DENIED or a negative errno.
 *
 * The kernel holds the mmap lock while it walks up to 2 MiB at a time.
 */
int pagemap_read(int fd, uint64_t first, uint64_t *entries, size_t n,
                 size_t *ret_n);

/* --- PAGEMAP_SCAN, since 6.7 --- */

enum pagemap_category {
  PAGEMAP_PRESENT = 1 << 3,
  PAGEMAP_ZERO = 1 << 5, /* the zero page */
  PAGEMAP_HUGE = 1 << 6, /* mapped by one entry of the upper page table */
};

/* A run of pages; addresses in bytes. */
struct pagemap_region {
  uint64_t start, end;
  uint64_t categories;
};

/*
 * Finds the regions of [start, end) whose pages have all categories of `with`
 * and none of `without`. Stops when `max` regions are full: *ret_end is where
 * the next call continues. The kernel holds the mmap lock for up to the whole
 * range. Returns 0 or a negative errno: -ENOTTY without the ioctl.
 */
int pagemap_scan(int fd, uint64_t start, uint64_t end, unsigned with,
                 unsigned without, struct pagemap_region *regions, size_t max,
                 size_t *ret_n, uint64_t *ret_end);

/* --- looking up --- */

/* The tools of a thread that reads pages. */
struct page_reader {
  struct procfs *procfs;
  uint64_t page_size;
  uint64_t (*clock_ns)(void); /* CPU time of the thread, where it is known */
  atomic_uint *heartbeat;     /* moved by each read */
  unsigned reads;             /* since the last pause */
};

/* Counts a read that took the mmap lock for as long as so many small ones. It
 * pauses after some of them, so that a process that waits for the lock gets it.
 */
void page_reader_count(struct page_reader *r, unsigned reads);

/* Pages of a window of pagemap: one page table of most processors. */
#define PAGE_WINDOW 512
/* Looking at so many present pages of a window takes as long as one read. */
#define PRESENT_PER_READ 8

struct page_lookup {
  struct page_reader *reader;
  uint32_t pid; /* of the process, or of a thread that has its memory */
  int pagemap;
  int pagecount; /* negative if it cannot be read */
  /* False without CAP_SYS_ADMIN, and where kpagecount cannot be read: the price
   * of a page that is not exclusive is unknown, and the prices are those of the
   * exclusive pages. Certain once a page was found. */
  bool has_mapcounts;
  struct drand48_data random;
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

/* True if all of a page is in a region of this category. */
bool page_lookup_is_in(const struct page_lookup *l, uint64_t page,
                       unsigned category);

/* In [0, 1). */
double page_lookup_random(struct page_lookup *l);

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
