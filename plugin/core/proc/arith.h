/* Arithmetic on amounts that neither wraps around nor needs a library. */
#ifndef SMAPS_ARITH_H
#define SMAPS_ARITH_H

#include <stdint.h>

static inline uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static inline uint64_t max(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Stops at zero. */
static inline uint64_t minus(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

/* NaN becomes the least. */
static inline double clamp(double x, double least, double most) {
  return x > least ? (x < most ? x : most) : least;
}

/* The part of x, of either sign, that exceeds the explained amount. */
static inline double excess(double x, double explained) {
  if (x > explained)
    return x - explained;
  return x < -explained ? x + explained : 0;
}

#endif
