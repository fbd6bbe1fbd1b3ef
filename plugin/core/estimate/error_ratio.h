/*
 * How far estimates are off, as a part of what they could be off by: learnt
 * from the readings that follow them.
 */
#ifndef SMAPS_ERROR_RATIO_H
#define SMAPS_ERROR_RATIO_H

#include <stdint.h>

struct error_ratio {
  double usual;      /* all readings of a cycle together */
  double worst;      /* single readings, lately */
  uint64_t cycle_ns; /* of what follows */
  double off, bound, cycle_worst;
};

/* Before the first reading, all that could be wrong is. */
#define ERROR_RATIO_AT_FIRST ((struct error_ratio){.usual = 1, .worst = 1})

/* One reading: the estimate was off by `off`, and could have been by `bound`.
 */
void error_ratio_add(struct error_ratio *r, uint64_t cycle_ns, double off,
                     double bound);

/* Concludes the cycles before this one. A larger error counts at once, and is
 * forgotten slowly. */
void error_ratio_conclude(struct error_ratio *r, uint64_t cycle_ns);

#endif
