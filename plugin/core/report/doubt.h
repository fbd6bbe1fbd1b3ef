/*
 * How far a sum can be off. Errors of one cause have one sign and add up.
 * Others are independent: some members are too high and others too low, so that
 * the error of the sum grows with the root of their squares only.
 */
#ifndef SMAPS_DOUBT_H
#define SMAPS_DOUBT_H

#include <stdint.h>

/* The error of one process, in bytes. */
struct doubt {
  double common, independent;
};

struct doubt_sum {
  double common, squares;
};

/* The error of one process by itself. */
static inline double doubt_bytes(struct doubt d) {
  return d.common + d.independent;
}

static inline struct doubt doubt_scale(struct doubt d, double by) {
  return (struct doubt){d.common * by, d.independent * by};
}

void doubt_add(struct doubt_sum *sum, struct doubt d);

/* Takes one away that was added. */
void doubt_remove(struct doubt_sum *sum, struct doubt d);

uint64_t doubt_of_sum(const struct doubt_sum *sum);

#endif
