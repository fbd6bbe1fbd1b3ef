/* SPDX-License-Identifier: MIT */
/* /proc/meminfo (proc(5); fs/proc/meminfo.c): "Key:   value kB" lines. */
#ifndef SMAPS_MEMINFO_H
#define SMAPS_MEMINFO_H

#include <smaps/text.h>

/* The keys whose absence matters; the value of another one that is missing is
 * 0. */
enum meminfo_known {
  MEMINFO_PERCPU = 1 << 0,     /* since 4.20 */
  MEMINFO_HUGE_PAGES = 1 << 1, /* with CONFIG_HUGETLB_PAGE */
  MEMINFO_ZSWAP = 1 << 2,      /* since 5.19, with CONFIG_ZSWAP */
  MEMINFO_AVAILABLE = 1 << 3,  /* since 3.14 */
};

struct meminfo_sample {
  unsigned known; /* enum meminfo_known */
  uint64_t mem_total_bytes;
  uint64_t mem_available_bytes;
  uint64_t swap_total_bytes, swap_free_bytes;
  uint64_t swap_used_bytes; /* SwapTotal - SwapFree; 0 if missing */
  /* Pages that any process maps, each once; 0 if missing. */
  uint64_t anon_pages_bytes;
  uint64_t mapped_bytes; /* of files and shmem */

  uint64_t mem_free_bytes;
  uint64_t buffers_bytes; /* cache of block devices; not in Cached */
  uint64_t cached_bytes;  /* files and shmem, mapped or not */
  uint64_t shmem_bytes;   /* tmpfs, memfd, shared anonymous memory, SysV */
  /* Pages of swap that are in memory: mapped ones are in AnonPages, too. */
  uint64_t swap_cached_bytes;
  /* The lists of reclaim: anonymous memory, shmem and the swap cache; and what
   * is locked, of any kind. */
  uint64_t active_anon_bytes, inactive_anon_bytes, unevictable_bytes;
  uint64_t slab_reclaimable_bytes, slab_unreclaimable_bytes;
  uint64_t kernel_stack_bytes;
  uint64_t page_tables_bytes;     /* of processes */
  uint64_t sec_page_tables_bytes; /* of guests and IOMMUs (since 6.0) */
  uint64_t percpu_bytes;
  uint64_t zswap_bytes; /* of the compressed pool */
  /* Huge pages of the default size, and memory of those of all sizes (before
   * 4.16: of the default size). */
  uint64_t huge_pages_total, huge_pages_free;
  uint64_t huge_page_size_bytes;
  uint64_t hugetlb_bytes;
  /* Transparent huge pages that are mapped as a whole. */
  uint64_t anon_huge_pages_bytes, shmem_pmd_mapped_bytes;
  uint64_t file_pmd_mapped_bytes; /* since 5.4 */
};

/*
 * Returns 0 and fills *ret, or returns -EBADMSG and leaves *ret unchanged if
 * MemTotal is missing or zero, or a value is not a number.
 */
int meminfo_parse(const char *text, size_t len, struct meminfo_sample *ret);

#endif
