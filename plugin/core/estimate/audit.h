/* SPDX-License-Identifier: MIT */
/*
 * How far off estimates are, by cause: contrib/HACKING has the model. Each set
 * of processes that share has one audit (track.h).
 *
 * Errors are published several times as large as the root of their mean square:
 * whatever their sizes are, not more than one of k * k is above k times that
 * (Chebyshev).
 */
#ifndef SMAPS_AUDIT_H
#define SMAPS_AUDIT_H

#include "report/error.h"
#include <stdbool.h>

/* How many bytes each cause can make the estimate wrong; CAUSE_TIME: times the
 * root of the seconds. */
struct bounds {
  double bytes[CAUSES];
};

/* Sums of squares of late. */
struct rate {
  double off, bound;
  double high;       /* their quotient, or what it was lately */
  double known;      /* 0 to 1: less, and what was thought at first counts */
  uint64_t cycle_ns; /* of the last lesson */
};

/* Zero before the first reading. */
struct audit {
  struct rate rates[CAUSES];
  struct rate uss; /* of the error of uss, by that of Pss */
  /* The part of squared errors that members have in common: products of two in
   * a cycle, with their signs, by the same without. */
  struct rate common;
  double sum, sizes; /* of the errors in this cycle */
  uint64_t cycle_ns;
};

/* The error that is to be expected, the root of its mean square; the error that
 * readings are chosen by; and the error that is published. */
enum audit_level { AUDIT_EXPECTED, AUDIT_CHOSEN, AUDIT_PUBLISHED };

/* The errors that follow from bounds and recent errors; that of Pss also
 * by cause. */
struct audit_errors {
  struct error pss, uss;
  double pss_parts[ALL_CAUSES];
};

void audit_errors(const struct audit *a, const struct bounds *x,
                  enum audit_level level, struct audit_errors *ret);

/* A reading, beside the estimate that it takes the place of, in bytes. */
struct audit_lesson {
  double pss_off, uss_off;     /* what was found beyond the estimate */
  double pss_noise, uss_noise; /* standard deviations of that, with samples */
};

void audit_learn(struct audit *a, uint64_t cycle_ns, const struct bounds *x,
                 const struct audit_lesson *lesson);

#endif
