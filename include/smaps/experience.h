/*
 * How far off an estimate is, as a part of what it could have been off by: as
 * readings have shown.
 */
#ifndef SMAPS_EXPERIENCE_H
#define SMAPS_EXPERIENCE_H

#include <stdint.h>

struct experience {
  double error; /* of the readings of one cycle together: what is usual */
  double worst; /* of a single reading, lately: what has to be reckoned with */
  uint64_t cycle_ns; /* of what follows */
  double missed, doubted, cycle_worst;
};

/* Before there is any, all that could be wrong is. */
#define EXPERIENCE_NONE ((struct experience){.error = 1, .worst = 1})

/* One reading: it was off by `missed`, and could have been by `doubted`. All
 * readings of a cycle count as one. */
void experience_add(struct experience *x, uint64_t cycle_ns, double missed,
                    double doubted);

/* Concludes the cycles before this one: mistakes are taken to heart at once,
 * and forgotten slowly. */
void experience_conclude(struct experience *x, uint64_t cycle_ns);

#endif
