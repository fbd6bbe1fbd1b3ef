/* The running kernel: its release, and its merging of pages (KSM). */
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

/* True if pages are being merged. */
static inline bool ksm_is_merging(const struct ksm *ksm) {
  return ksm->run == 1 && ksm->pages_sharing > 0;
}

#endif
