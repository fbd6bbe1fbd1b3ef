/* Durations are nanoseconds. */
#ifndef SMAPS_DURATION_H
#define SMAPS_DURATION_H

#include <stdint.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#endif
