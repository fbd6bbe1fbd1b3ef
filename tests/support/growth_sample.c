#include "growth_sample.h"

#include <math.h>

#include "test.h"

struct growth_sample sample_at(double t, double bytes) {
  return (struct growth_sample){.time_ns = NS + (uint64_t)(t * (double)NS),
                                .has_members = true,
                                .oldest_start = 1,
                                .newest_start = 1,
                                .is_known = true,
                                .bytes = (uint64_t)fmax(bytes, 0),
                                .room_bytes = (double)NAN};
}
