/* SPDX-License-Identifier: MIT */
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

static inline uint64_t distance(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
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

/*
 * From results of floating-point arithmetic to amounts. Casting a double that
 * is NaN or does not fit is undefined in C, so amounts are cast here and
 * nowhere else.
 */
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
