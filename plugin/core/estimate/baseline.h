/* SPDX-License-Identifier: MIT */
/*
 * The last rollup of a process, and its cheap files at that time: estimates
 * start from these.
 */
#ifndef SMAPS_BASELINE_H
#define SMAPS_BASELINE_H

#include "proc/rollup.h"
#include <stdbool.h>

/* The cheap files of a process. Pages are 16 TiB at most. */
struct observation {
  uint32_t resident_pages, shared_pages; /* statm; shared: files and shmem */
  uint32_t threads;
  uint32_t minor_faults; /* stat */
  uint32_t vm_swap_kb;   /* status */
  bool has_faults;       /* whether these were read */
};

/* Zero before the first. */
struct baseline {
  uint64_t at_ns; /* 0: no rollup was read */
  struct rollup rollup;
  struct observation at; /* then */
  uint32_t off_pages;    /* between statm and the rollup; see precision.h */
  uint16_t relatives;    /* processes of its fork family, itself included; 0:
                            it shares memory, nobody knows with how many */
};

/* Fills all but at_ns and relatives, which become 0. */
void baseline_take(struct baseline *b, const struct rollup *rollup,
                   const struct observation *o, uint64_t page_size);

/* The memory that no other process maps, by kind. The rollup gives the sum
 * only: as much of it is anonymous as must be. */
struct private_bytes {
  uint64_t anon, file, shmem;
};
struct private_bytes baseline_private(const struct baseline *b);

/* Pages of files and shmem that no other process maps. */
uint64_t baseline_private_file_bytes(const struct baseline *b);

/* The memory that is shared by copy on write, and the share of a page of it, 0
 * to 1. */
uint64_t baseline_cow_shared(const struct baseline *b);
double baseline_cow_share(const struct baseline *b);

/* The share of a page that it pays, 0 to 1: of anonymous memory; of files and
 * shmem; of swap.
 */
double baseline_anonymous_share(const struct baseline *b);
double baseline_file_share(const struct baseline *b, uint64_t page_size);
double baseline_swap_share(const struct baseline *b);
/* The part of its swap that no relative shares. */
double baseline_private_swap_part(const struct baseline *b);

/*
 * Strangers: processes that share the memory of another by copy on write, as
 * its reading shows, but are not known as its relatives. Mostly these are
 * children that were forked after the processes were listed, and end unseen.
 */

/* The least number of strangers. relatives: the number of known relatives,
 * including the process. */
uint32_t strangers_seen(const struct rollup *found, uint32_t relatives);

/* How much Pss is too low if so many strangers are unlisted children, whose
 * part no listed process pays; or too high, if they are counted but do not
 * exist. */
double strangers_part(const struct rollup *found, uint32_t relatives,
                      uint32_t strangers);

#endif
