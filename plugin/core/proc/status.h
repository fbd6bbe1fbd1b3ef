/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/status (proc(5); fs/proc/array.c, proc_pid_status): "Key:\tvalue"
 * lines. The cost does not depend on the number of threads, and the read cannot
 * hang.
 */
#ifndef SMAPS_STATUS_H
#define SMAPS_STATUS_H

#include <smaps/text.h>

enum status_known {
  STATUS_UID = 1 << 0,
  STATUS_THREADS = 1 << 1,
  STATUS_VM_SWAP = 1 << 2,
  STATUS_VM_PTE = 1 << 3,
  STATUS_STATE = 1 << 4,
  STATUS_PARENT = 1 << 5,
  STATUS_NSPID = 1 << 6,
  STATUS_GID = 1 << 7,
};

struct status_sample {
  unsigned known; /* enum status_known: the keys in the text */
  char state;     /* of the thread; D: uninterruptible sleep */
  uint32_t parent_pid;
  /* Since 4.1: the pid in its own namespace; 0 if that is the reader's. */
  uint32_t inner_pid;
  uint32_t uid_effective;
  uint32_t gid_effective;
  uint32_t threads;
  uint64_t vm_swap_bytes; /* swapped-out anonymous memory, without shmem */
  uint64_t vm_pte_bytes;  /* page tables */
};

/*
 * Skips unknown keys and leaves missing ones out of `known` (a kernel thread
 * has no Vm lines). A known key is malformed if its value is not a number or if
 * it occurs twice, and so is a text that does not end in a newline. Returns 0
 * and fills *ret, or returns -EBADMSG and leaves *ret unchanged.
 */
int status_parse(const char *text, size_t len, struct status_sample *ret);

#endif
