/* What the running kernel does that changes how much statm can be believed. */
#ifndef SMAPS_KERNEL_H
#define SMAPS_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Release of the running kernel; false where it cannot be told. */
bool kernel_release(unsigned *ret_major, unsigned *ret_minor);

/*
 * By how many pages each counter of statm can be off: from 6.2 (f1a7941243c1)
 * to 6.16 it is a per-CPU counter that is read without its parts, each of which
 * may hold up to a batch of 32, or twice the number of CPUs. Some stable
 * kernels of that age are exact again, which we cannot see; then we only read a
 * little more often.
 */
uint64_t kernel_statm_slack_pages(unsigned major, unsigned minor,
                                  unsigned cpus);

/*
 * Whether KSM merges pages now (Documentation/admin-guide/mm/ksm.rst): it turns
 * private memory into shared without any sign in statm.
 */
bool kernel_is_merging(void);

#endif
