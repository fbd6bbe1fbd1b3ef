/* SPDX-License-Identifier: MIT */
/*
 * Where the memory of the host is: parts that add up to MemTotal.
 *
 * The kernel counts each page in meminfo's keys once or, in the cases below,
 * twice, and some pages in none. A part is taken from these sources
 * (Documentation/filesystems/proc.rst; fs/proc/meminfo.c):
 *
 *   free                MemFree
 *   groups              AnonPages + Mapped: every page that a process maps,
 *                       once, which is what the Pss of all processes adds up to
 *                       (anonymous memory with pages of KSM, mapped files,
 *                       mapped shmem). Processes in no group are in it.
 *   hugetlb_used, hugetlb_free   Hugetlb, by the numbers of free pages; in
 *                       neither Rss nor Pss nor Mapped
 *   slab_reclaimable    SReclaimable
 *   slab_unreclaimable  SUnreclaim
 *   page_tables         PageTables + SecPageTables (of guests and IOMMUs)
 *   kernel_stack        KernelStack
 *   percpu              Percpu
 *   zram                the pools of /sys/block/zramN (mm_stat)
 *   zswap               Zswap
 *   buffers             Buffers
 *   tmpfs               Shmem that nobody maps: files of tmpfs, memfd, SysV
 *                       segments, buffers of graphics drivers
 *   page_cache          Cached - Shmem that nobody maps: Mapped has the rest
 *   swap_cache          SwapCached that nobody maps: AnonPages has the rest
 *   unaccounted         the rest of MemTotal: pages of drivers, a balloon,
 *                       vmalloc, modules, BPF and networks, pages on their way
 *                       between lists, and zswap before 5.19
 *
 * Where these disagree:
 *
 *   - Mapped is files and shmem together. The Pss_Shmem of the members that
 *     were read is known; the division of the rest is the error of tmpfs and of
 *     page_cache. The sum of the two is certain.
 *   - How much of SwapCached is mapped follows only from the lengths of the
 *     lists of reclaim, which lack locked pages of any kind: their number is
 *     the error of swap_cache.
 *   - The Pss of the members was read at other moments than meminfo, and in
 *     part estimated. The kernel's sum stands. If it is larger than the
 *     members' sum, the difference is in processes of no group, at most what
 *     their statm allows. The rest of the difference, or all of it if the
 *     members' sum is larger, is the error of groups.
 *   - Pages of drivers that processes map (rings of io_uring, perf, packets)
 *     are in Mapped and not in Cached: page_cache is too small by these pages,
 *     and unaccounted is too large. No file has their number.
 *   - The keys are counted on each CPU apart, and read one after the other. If
 *     the sum of all parts is above MemTotal, the later parts are cut; the
 *     amount that was cut off is the error of that part and of unaccounted.
 */
#ifndef SMAPS_HOST_H
#define SMAPS_HOST_H

#include "proc/meminfo.h"
#include "proc/rollup.h"
#include "proc/statm.h"
#include "report/error.h"

/* The part of the processes' memory that may come or go between the readings of
 * meminfo and of the processes. */
#define HOST_MOVES 0.01

/* The sums of all processes. Each process counts once, however many groups it
 * is in. Zeroed before the first. */
struct host_processes {
  uint64_t pss, pss_shmem; /* of members of groups */
  bool lacks_shmem;        /* pss_shmem lacks some members (before 5.3) */
  struct error_sum pss_error;
  /* Rss, not Pss, of processes in no group, and of members of which only statm
   * is known. */
  uint64_t outside_resident;
  bool has_unknown; /* there may be further processes */
};

void host_add_member(struct host_processes *h, const struct rollup *r,
                     struct error pss_error);

/* Memory that no file of the proc tree shows. */
struct host_devices {
  uint64_t hugetlb_free_bytes; /* of all sizes but the default one */
  uint64_t zram_bytes;         /* 0: there is no zram in use */
};

struct host_account {
  uint32_t known; /* bit per part that this kernel has; 0 for no account */
  uint64_t bytes[HOST_NUMBERS]; /* the parts add up to MemTotal */
  uint64_t error[HOST_NUMBERS];
};

/* meminfo has MemTotal; other keys that it lacks are in unaccounted. */
void host_account_make(const struct meminfo_sample *m,
                       const struct host_processes *h,
                       const struct host_devices *d, struct host_account *ret);

/* A number of the account: "free", "tmpfs_error", "outside". */
struct host_value {
  char name[32];
  bool is_part; /* of MemTotal */
  uint64_t bytes;
};

/* Gets the next number that is known. *cursor starts at 0. False at the end. */
bool host_next(const struct host_account *a, unsigned *cursor,
               struct host_value *ret);

#endif
