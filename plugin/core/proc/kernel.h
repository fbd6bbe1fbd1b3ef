/* SPDX-License-Identifier: MIT */
/* The running kernel: its release, its merging of pages (KSM), and memory that
 * the proc file system does not show. */
#ifndef SMAPS_KERNEL_H
#define SMAPS_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Release of the running kernel; false if it is unknown. */
bool kernel_release(unsigned *ret_major, unsigned *ret_minor);

/*
 * KSM (Documentation/admin-guide/mm/ksm.rst) makes private memory shared, and
 * private again, and statm does not show it. All zero if the kernel has no KSM.
 */
struct ksm {
  uint64_t run; /* 0: stopped, 1: merging, 2: unmerging all pages */
  uint64_t pages_sharing;
};

void kernel_read_ksm(struct ksm *ret);

/* vm.max_map_count; UINT64_MAX where it cannot be read. */
uint64_t kernel_mappings_most(void);

/* The memory of the pools of all zram devices, in bytes: those with the numbers
 * 0, 1, 2 and so on, without a gap. */
uint64_t kernel_zram_bytes(void);

/*
 * True if the kernel keeps one number of mappings for all pages of a large
 * folio (CONFIG_NO_PAGE_MAPCOUNT, from 6.15). For each page of it kpagecount
 * and Pss have the average then, and the exclusive bit of pagemap and the
 * Private_ fields are of all of the folio: "no other process may map a part of
 * it" (folio_average_page_mapcount and folio_maybe_mapped_shared, used by
 * fs/proc/task_mmu.c).
 *
 * Tries it with a huge page of our own for a moment, which takes CAP_SYS_ADMIN;
 * false where that is not to be had.
 */
bool kernel_averages_mapcounts(void);

/* The bytes of free huge pages of all sizes but the default one. */
uint64_t kernel_hugetlb_free(uint64_t default_size);

/* The size of a thread's stack in the kernel, which no file has: that of most
 * kernels for this processor. It is twice as large with KASAN, may be for pages
 * of 64 KiB, and is too small for a program of 32 bits on a kernel of 64. */
static inline uint64_t kernel_stack_size(uint64_t page_size) {
  const uint64_t least = sizeof(void *) == 4 ? 8192 : 16384;

  return page_size > least ? page_size : least;
}

/* True if pages are being merged. */
static inline bool ksm_is_merging(const struct ksm *ksm) {
  return ksm->run == 1 && ksm->pages_sharing > 0;
}

#endif
