/* SPDX-License-Identifier: MIT */
/*
 * How long something is left alone after it failed: a process or a file that
 * hangs, or one that the kernel refuses.
 */
#ifndef SMAPS_BACK_OFF_H
#define SMAPS_BACK_OFF_H

#include <stdbool.h>

#include "base/arith.h"
#include "base/duration.h"

#define BACK_OFF_MAX_NS (3600 * NS_PER_S)
/* Enough to make an hour of 0.2 s, which is twice the least ReadTimeout. */
#define BACK_OFF_DOUBLINGS 15

/* Zero: it has not failed. */
struct back_off {
  uint64_t until_ns;
  uint8_t failures; /* in succession; BACK_OFF_DOUBLINGS + 1 at most */
};

/* The time to the next try: `first_ns` doubled so many times, and at most
 * `most_ns`. */
static inline uint64_t back_off_length(uint64_t first_ns, uint64_t most_ns,
                                       unsigned doublings) {
  return min(first_ns << min(doublings, BACK_OFF_DOUBLINGS), most_ns);
}

/* Records a hang: twice ReadTimeout at first, then twice as long for each
 * further hang that was waited for, up to an hour. has_waited is false if the
 * same read still hangs, which costs no waiting; the back-off then keeps its
 * length. */
static inline void back_off_hang(struct back_off *b, bool has_waited,
                                 uint64_t read_timeout_ns, uint64_t now_ns) {
  if ((has_waited || !b->failures) && b->failures <= BACK_OFF_DOUBLINGS)
    b->failures++;
  b->until_ns = now_ns + back_off_length(2 * read_timeout_ns, BACK_OFF_MAX_NS,
                                         b->failures - 1);
}

/* Records a refusal by the kernel: an hour, because each attempt may cost a
 * line in an audit log (AppArmor). */
static inline void back_off_refuse(struct back_off *b, uint64_t now_ns) {
  b->failures = 1;
  b->until_ns = now_ns + BACK_OFF_MAX_NS;
}

/* It has not failed; the next failure counts as the first. */
static inline void back_off_forgive(struct back_off *b) { b->failures = 0; }

static inline bool back_off_is_on(const struct back_off *b, uint64_t now_ns) {
  return now_ns < b->until_ns;
}

#endif
