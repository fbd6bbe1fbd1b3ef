/* SPDX-License-Identifier: MIT */
/*
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
#ifndef SMAPS_PAGEMAP_H
#define SMAPS_PAGEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The page is mapped: not swapped out, not migrating. Also true for the zero
 * page and for memory of devices, which count in no process. */
static inline bool pagemap_is_present(uint64_t entry) { return entry >> 63; }

/* It belongs to a file or to shmem (since 3.5). */
static inline bool pagemap_is_file(uint64_t entry) { return entry >> 61 & 1; }

/* It is mapped once (since 4.2). Only of present pages: kernels before 6.11 set
 * the bit for others, too. Before 6.11, and again since 6.15, the pages of a
 * huge page all have the bit of the first of them (pagemap_pmd_range in
 * fs/proc/task_mmu.c). */
#define PAGEMAP_EXCLUSIVE (UINT64_C(1) << 56)
static inline bool pagemap_is_exclusive(uint64_t entry) {
  return entry & PAGEMAP_EXCLUSIVE;
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

#endif
