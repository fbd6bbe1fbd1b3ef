/* SPDX-License-Identifier: MIT */
/*
 * Looks up single pages of a process: pagemap shows whether a page is present
 * and of which kind it is, kpagecount how often it is mapped. The mmap lock is
 * held for one page at a time. proc/pagemap.h has the files, and the rights
 * that they need.
 */
#ifndef SMAPS_PAGE_LOOKUP_H
#define SMAPS_PAGE_LOOKUP_H

#include <stdatomic.h>
#include <stdlib.h>

#include "proc/pagemap.h"
#include "proc/statm.h"
#include "process/proc_ref.h"
#include "sample/sampled.h"

/* The tools of a thread that reads pages. */
struct page_reader {
  struct procfs *procfs;
  uint64_t page_size;
  uint64_t (*clock_ns)(void); /* CPU time of the thread, where it is known */
  atomic_uint *heartbeat;     /* moved by each read */
  bool averages_mapcounts;    /* kernel_averages_mapcounts() */
  unsigned reads;             /* since the last pause */
};

/* Counts a read that took the mmap lock for as long as `reads` small ones.
 * Pauses now and then, for a process that waits for the lock. */
void page_reader_count(struct page_reader *r, unsigned reads);

/* Pages of a window of pagemap: one page table of most processors. */
#define PAGE_WINDOW 512
/* Looking at this many present pages of a window takes as long as one read. */
#define PRESENT_PER_READ 8

struct page_lookup {
  struct page_reader *reader;
  uint32_t pid; /* of the process, or of a thread that has its memory */
  int pagemap;
  int pagecount; /* negative if it cannot be read */
  /* False without CAP_SYS_ADMIN, or if kpagecount cannot be read: only
   * exclusive pages have a known share then. Certain once a page was found. */
  bool has_mapcounts;
  bool is_host_asked;       /* before Linux 6.7, if it has huge pages */
  bool host_has_huge_pages; /* its answer */
  uint64_t random;          /* the state of the generator */
};

struct page_finding {
  bool is_resident;
  bool is_exclusive;
  /* Its mappings are unknown, and is_exclusive is of another page: the counts
   * cannot be read, and it is part of a huge page. */
  bool is_unsure;
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

/*
 * Corrects the entries of a window, PAGE_WINDOW of them from page `first` on,
 * which is a multiple of that. In a huge page each gets its own exclusive bit,
 * and a huge zero page is cleared. *ret_unsure: the pages of which the counts
 * cannot be read. 0 or a negative errno.
 */
int page_lookup_correct(struct page_lookup *l, uint64_t first,
                        uint64_t *entries, uint32_t *ret_unsure);

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
