/*
 * Amounts that come out of a calculation with doubles. C leaves the cast of a
 * double undefined that is no number or does not fit, so that no amount is cast
 * in any other way.
 */
#ifndef SMAPS_AMOUNT_H
#define SMAPS_AMOUNT_H

#include <stdint.h>

#define AMOUNT_MOST INT64_MAX

/* 0 for what is negative or no number, AMOUNT_MOST for what is larger. */
static inline uint64_t amount_from(double x) {
  if (!(x > 0))
    return 0;
  return x < (double)AMOUNT_MOST ? (uint64_t)x : (uint64_t)AMOUNT_MOST;
}

/* The same of either sign. */
static inline int64_t amount_change_from(double x) {
  return x < 0 ? -(int64_t)amount_from(-x) : (int64_t)amount_from(x);
}

#endif
