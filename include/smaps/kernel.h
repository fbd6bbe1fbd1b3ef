/* The running kernel: its release, and what it does to memory unseen. */
#ifndef SMAPS_KERNEL_H
#define SMAPS_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Release of the running kernel; false where it cannot be told. */
bool kernel_release(unsigned *ret_major, unsigned *ret_minor);

/*
 * KSM (Documentation/admin-guide/mm/ksm.rst), which turns private memory into
 * shared, and back, without any sign in statm. Zero where the kernel has none.
 */
struct ksm {
  uint64_t run; /* 0: stopped, 1: it merges, 2: it takes all apart */
  uint64_t pages_sharing;
};

void kernel_read_ksm(struct ksm *ret);

/* Whether pages are being merged. */
static inline bool ksm_is_merging(const struct ksm *ksm) {
  return ksm->run == 1 && ksm->pages_sharing > 0;
}

#endif
