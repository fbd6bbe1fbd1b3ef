/* SPDX-License-Identifier: MIT */
/* Times and durations are nanoseconds. */
#ifndef SMAPS_DURATION_H
#define SMAPS_DURATION_H

#include <stdint.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

/* A time in whole seconds, rounded down, where nanoseconds would take too much
 * room. */
static inline uint32_t seconds_from(uint64_t ns) {
  uint64_t s = ns / NS_PER_S;

  return s < UINT32_MAX ? (uint32_t)s : UINT32_MAX;
}

#endif
