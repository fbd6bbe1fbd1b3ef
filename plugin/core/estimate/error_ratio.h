/*
 * How far estimates are off, as a part of what they could be off by: learnt
 * from the readings that follow them.
 */
#ifndef SMAPS_ERROR_RATIO_H
#define SMAPS_ERROR_RATIO_H

#include <stdint.h>

struct error_ratio {
  double least;      /* usual is never less */
  double usual;      /* all readings of a cycle together */
  double worst_seen; /* single readings, lately */
  double lessons;    /* cycles with a reading, ERROR_LESSONS_MOST at most */
  uint64_t cycle_ns; /* of what follows */
  double off, bound, cycle_worst;
};

/* Before the first reading, all that could be wrong is. */
#define ERROR_RATIO_AT_FIRST ((struct error_ratio){.least = 0.02, .usual = 1})

#define ERROR_LESSONS_MOST 1000.0

/* One reading: the estimate was off by `off`, and could have been by `bound`.
 */
void error_ratio_add(struct error_ratio *r, uint64_t cycle_ns, double off,
                     double bound);

/* Concludes the cycles before this one. A larger error counts at once, and is
 * forgotten slowly. */
void error_ratio_conclude(struct error_ratio *r, uint64_t cycle_ns);

/* The worst that is to be feared of a single estimate: what was seen, or what a
 * few readings cannot rule out (three in n where n have shown nothing). */
double error_ratio_worst(const struct error_ratio *r);

#endif
