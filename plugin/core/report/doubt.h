/*
 * The possible error of a sum. Common errors of members have one sign and add
 * up. Independent errors do not: some members are too high and others too low,
 * so the error of the sum is the root of the sum of their squares.
 */
#ifndef SMAPS_DOUBT_H
#define SMAPS_DOUBT_H

#include <stdint.h>

#include <smaps/words.h>

/* The word for the cause in documents. */
const char *cause_name(enum cause cause);

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

/* The error, but no more than the distance from the value to the end of its
 * range that is farther away: 0 or `most`. */
struct doubt doubt_limit(struct doubt d, uint64_t value, uint64_t most);

void doubt_add(struct doubt_sum *sum, struct doubt d);

/* Divides an error between the causes in proportion to their parts, and adds it
 * to their sums. */
void doubt_divide(struct doubt_sum sums[ALL_CAUSES], struct doubt d,
                  const double parts[ALL_CAUSES]);

/* Takes away an error that was added. */
void doubt_remove(struct doubt_sum *sum, struct doubt d);

uint64_t doubt_of_sum(const struct doubt_sum *sum);

#endif
