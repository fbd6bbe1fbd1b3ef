/*
 * How long a hung process or file is left alone: twice ReadTimeout at first,
 * then twice as long for each further hang that was waited for, up to an hour.
 */
#ifndef SMAPS_BACK_OFF_H
#define SMAPS_BACK_OFF_H

#include <stdbool.h>
#include <stdint.h>

struct back_off {
  uint64_t until_ns;
  uint8_t hangs; /* in succession */
};

/* Records a hang. has_waited is false if the same read still hangs, which costs
 * no waiting; the back-off then keeps its length. */
void back_off_extend(struct back_off *b, bool has_waited,
                     uint64_t read_timeout_ns, uint64_t now_ns);

/* The next hang counts as the first. */
void back_off_forgive(struct back_off *b);

bool back_off_is_on(const struct back_off *b, uint64_t now_ns);

#endif
