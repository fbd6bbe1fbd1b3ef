/*
 * How far off an estimate is, as a part of what it could have been off by: as
 * readings have shown.
 */
#ifndef SMAPS_EXPERIENCE_H
#define SMAPS_EXPERIENCE_H

#include <stdint.h>

struct experience {
  double error;      /* 1 before there is any */
  uint64_t cycle_ns; /* of what follows */
  double missed, doubted;
};

#define EXPERIENCE_NONE ((struct experience){.error = 1})

/* One reading: it was off by `missed`, and could have been by `doubted`. All
 * readings of a cycle count as one. */
void experience_add(struct experience *x, uint64_t cycle_ns, double missed,
                    double doubted);

/* By the cycles before this one: mistakes are taken to heart at once, and
 * forgotten slowly. */
double experience_error(struct experience *x, uint64_t cycle_ns);

#endif
