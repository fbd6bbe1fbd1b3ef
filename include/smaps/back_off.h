/*
 * For how long what hangs is left alone: for twice StallTimeout at first, then
 * for twice as long each time that it has us wait again, up to an hour.
 */
#ifndef SMAPS_BACK_OFF_H
#define SMAPS_BACK_OFF_H

#include <stdbool.h>
#include <stdint.h>

struct back_off {
  uint64_t until_ns;
  uint8_t stalls; /* one upon the other */
};

/* It hangs. Where that was seen without waiting for it, because it is the same
 * read as the last time, the time stays as long as it was. */
void back_off_extend(struct back_off *b, bool has_waited,
                     uint64_t stall_timeout_ns, uint64_t now_ns);

/* The next stall is like a first one. */
void back_off_forgive(struct back_off *b);

bool back_off_is_on(const struct back_off *b, uint64_t now_ns);

#endif
