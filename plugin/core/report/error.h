/* SPDX-License-Identifier: MIT */
/*
 * The possible error of a sum. Common errors of members have one sign and add
 * up. Independent errors do not: some members are too high and others too low,
 * so the error of the sum is the root of the sum of their squares.
 *
 * How wide the error of one process is, estimate/audit.h decides.
 */
#ifndef SMAPS_ERROR_H
#define SMAPS_ERROR_H

#include <stdint.h>

#include <smaps/words.h>

/* The word for the cause in documents. */
const char *cause_name(enum cause cause);

/* The error of one process, in bytes. */
struct error {
  double common, independent;
};

struct error_sum {
  double common, squares;
};

/* The error of one process by itself. */
static inline double error_bytes(struct error d) {
  return d.common + d.independent;
}

/* The error, but no more than the distance from the value to the end of its
 * range that is farther away: 0 or `most`. */
struct error error_limit(struct error d, uint64_t value, uint64_t most);

void error_add(struct error_sum *sum, struct error d);

/* Divides an error between the causes in proportion to their parts, and adds it
 * to their sums. */
void error_divide(struct error_sum sums[ALL_CAUSES], struct error d,
                  const double parts[ALL_CAUSES]);

/* Takes away an error that was added. */
void error_remove(struct error_sum *sum, struct error d);

uint64_t error_of_sum(const struct error_sum *sum);

#endif
