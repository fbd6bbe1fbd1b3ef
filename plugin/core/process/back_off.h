/*
 * How long a hung process or file is left alone: twice ReadTimeout at first,
 * then twice as long for each further hang that was waited for, up to an hour.
 */
#ifndef SMAPS_BACK_OFF_H
#define SMAPS_BACK_OFF_H

#include <stdbool.h>

#include "base/arith.h"
#include "base/duration.h"

#define BACK_OFF_MAX_NS (3600 * NS_PER_S)
/* Further ones change nothing: ReadTimeout is 0.1 s at least. */
#define BACK_OFF_HANGS 16

struct back_off {
  uint64_t until_ns;
  uint8_t hangs; /* in succession; BACK_OFF_HANGS at most */
};

/* Records a hang. has_waited is false if the same read still hangs, which costs
 * no waiting; the back-off then keeps its length. */
static inline void back_off_extend(struct back_off *b, bool has_waited,
                                   uint64_t read_timeout_ns, uint64_t now_ns) {
  if ((has_waited || !b->hangs) && b->hangs < BACK_OFF_HANGS)
    b->hangs++;
  b->until_ns = now_ns + min(read_timeout_ns << b->hangs, BACK_OFF_MAX_NS);
}

/* The next hang counts as the first. */
static inline void back_off_forgive(struct back_off *b) { b->hangs = 0; }

static inline bool back_off_is_on(const struct back_off *b, uint64_t now_ns) {
  return now_ns < b->until_ns;
}

#endif
