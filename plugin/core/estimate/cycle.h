/* SPDX-License-Identifier: MIT */
/* The host and the time, as a cycle knows them. The collector and the measurer
 * fill this in at the beginning of the cycle; all others only read it. */
#ifndef SMAPS_CYCLE_H
#define SMAPS_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/precision.h"

struct procfs;

struct cycle {
  struct procfs *procfs;
  uint64_t now_ns, before_ns; /* the beginning of this cycle, and of the last */
  uint64_t interval_ns;       /* as it is configured */
  uint64_t page_size;
  uint64_t tick_ns;       /* of start times */
  uint64_t uptime_ns;     /* of the host; 0: unknown */
  uint64_t mappings_most; /* that a process may have on this kernel */
  /* The rollup's fields that this kernel has, a bit each; a guess until a
   * rollup was read. */
  uint32_t kernel_fields;
  bool is_swap_used;
  uint64_t ksm_merged_ns;     /* KSM merged pages last; 0: never */
  uint64_t ksm_changed_ns;    /* it merged pages or took some apart last */
  struct precision precision; /* of statm, on this kernel */
  uint32_t page_ns; /* what a page costs a walk on this host; 0: unknown */
};

#endif
