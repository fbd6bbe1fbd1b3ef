/* SPDX-License-Identifier: MIT */
/*
 * The shared mappings of shmem that a process has, in bytes of address space,
 * by what becomes of the memory when all processes that map it have ended. The
 * names in /proc/PID/maps show it (Linux 6.18: shmem_zero_setup() in
 * mm/shmem.c, mm/memfd.c, ipc/shm.c).
 */
#ifndef SMAPS_SHMEM_H
#define SMAPS_SHMEM_H

#include "proc/rollup.h"

struct shmem_mappings {
  /* MAP_SHARED | MAP_ANONYMOUS: freed, and only relatives by fork can map it.
   */
  uint64_t forked;
  /* memfd, and files that were removed: freed, and any other process may have
   * got it through a socket, or have opened the file earlier. */
  uint64_t passed;
  /* Files in a tmpfs, and segments of System V: they stay until a process
   * removes them. Shared mappings of other file systems without a device of
   * their own (overlayfs, btrfs) are counted here, too. */
  uint64_t lasting;
};

/* What was last found of a process. Zero: nothing. */
struct shmem_known {
  struct shmem_mappings mappings;
  /* Of its address space at that time, by statm; 0: unknown. It changes with
   * most mappings that come or go. */
  uint64_t size_pages;
};

/* A process with less in Pss_Shmem is not worth reading its maps. */
#define SHMEM_LEAST_BYTES (UINT64_C(256) << 10)

/* Adds a line of maps, if it is a shared mapping of shmem. A private mapping of
 * shmem is left out: that can only be of a file that lasts. */
void shmem_mappings_add(struct shmem_mappings *m,
                        const struct rollup_line *line);

#endif
