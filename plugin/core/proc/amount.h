/*
 * Converts results of floating-point arithmetic to amounts. Casting a double
 * that is NaN or does not fit is undefined in C, so amounts are cast here
 * and nowhere else.
 */
#ifndef SMAPS_AMOUNT_H
#define SMAPS_AMOUNT_H

#include <stdint.h>

#define AMOUNT_MOST INT64_MAX

/* 0 for a negative value or NaN, at most AMOUNT_MOST. */
static inline uint64_t amount_from(double x) {
  if (!(x > 0))
    return 0;
  return x < (double)AMOUNT_MOST ? (uint64_t)x : (uint64_t)AMOUNT_MOST;
}

/* The same for either sign. */
static inline int64_t amount_change_from(double x) {
  return x < 0 ? -(int64_t)amount_from(-x) : (int64_t)amount_from(x);
}

/* At most UINT32_MAX. */
static inline uint32_t amount_narrow(uint64_t x) {
  return x < UINT32_MAX ? (uint32_t)x : UINT32_MAX;
}

#endif
