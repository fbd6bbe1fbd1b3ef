/* What is kept of a process that is sampled, until it execs or is walked. */
#ifndef SMAPS_SAMPLING_STATE_H
#define SMAPS_SAMPLING_STATE_H

#include "sample/sampled.h"

struct page_layout;

struct sampling {
  struct sampled_error error; /* of the baseline, if that is a sample */
  struct page_layout *layout; /* of its mappings; NULL: to be read again */
  uint64_t layout_at_ns;
  uint64_t layout_ns;         /* CPU time to read it */
  uint64_t layout_size_pages; /* statm's size at that time */
  uint64_t layout_resident_pages;
  uint32_t pages;          /* of the last sample */
  uint32_t denied_until_s; /* pagemap is not tried again before */
  bool has_mapcounts;      /* the last sample knew the prices of pages */
  bool wants_many;         /* it contradicted the estimate */
};

void sampling_free(struct sampling *s);

/* The kernel refuses pagemap, or has none, or there are too many mappings. */
static inline bool sampling_is_refused(const struct sampling *s) {
  return s && s->denied_until_s;
}

#endif
