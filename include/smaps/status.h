/*
 * /proc/PID/status (proc(5); fs/proc/array.c, proc_pid_status): "Key:\tvalue"
 * lines. Costs the same whatever the number of threads, and cannot hang.
 */
#ifndef SMAPS_STATUS_H
#define SMAPS_STATUS_H

#include <smaps/scan.h>

enum status_known {
  STATUS_UID = 1 << 0,
  STATUS_THREADS = 1 << 1,
  STATUS_VM_SWAP = 1 << 2,
  STATUS_VM_PTE = 1 << 3,
  STATUS_CAP_EFF = 1 << 4,
  STATUS_VOLUNTARY = 1 << 5,
  STATUS_INVOLUNTARY = 1 << 6,
};

struct status_sample {
  unsigned known; /* enum status_known: what the text had */
  uint32_t uid_effective;
  uint32_t threads;
  uint64_t vm_swap_bytes; /* swapped-out anonymous memory, no shmem */
  uint64_t vm_pte_bytes;  /* page tables */
  uint64_t cap_effective; /* bits as in capabilities(7) */
  /* How often the main thread, alone, went off the CPU: asleep, or not. */
  uint64_t voluntary_switches, involuntary_switches;
};

/*
 * Unknown keys are skipped and missing ones are left out of `known` (a kernel
 * thread has no Vm lines). A known key with a value that is no number, or that
 * comes twice, is malformed, and so is a text that does not end in a newline.
 * Returns 0 and fills *ret, or -EBADMSG and leaves it alone.
 */
int status_parse(const char *text, size_t len, struct status_sample *ret);

#endif
