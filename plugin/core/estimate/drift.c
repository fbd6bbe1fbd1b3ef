#include "estimate/drift.h"

#include <math.h>

/* Lessons from before that are forgotten. */
#define TOLD_MOST_SECONDS 1800.0
/* A part of 1e-4 in a minute. */
#define VARIANCE_LEAST 1.7e-10

static void conclude(struct drift *d) {
  double of_all = d->memory > d->weight ? d->memory : d->weight;
  double seconds, seen, weight;

  if (d->weight <= 0 || d->seconds <= 0)
    return;
  seconds = d->seconds / of_all;
  seen = d->squares / d->seconds;
  weight = seconds / (seconds + d->told_seconds);
  d->variance += (seen - d->variance) * weight;
  d->told_seconds += seconds;
  if (d->told_seconds > TOLD_MOST_SECONDS)
    d->told_seconds = TOLD_MOST_SECONDS;
  if (d->variance < VARIANCE_LEAST)
    d->variance = VARIANCE_LEAST;
}

void drift_conclude(struct drift *d, uint64_t cycle_ns) {
  if (d->cycle_ns == cycle_ns)
    return;
  conclude(d);
  d->cycle_ns = cycle_ns;
  d->squares = d->seconds = d->weight = d->memory = 0;
}

void drift_count(struct drift *d, uint64_t cycle_ns, double memory) {
  drift_conclude(d, cycle_ns);
  d->memory = fmax(d->memory, memory);
}

void drift_learn(struct drift *d, uint64_t cycle_ns, double found,
                 double memory, double seconds) {
  double part = found < memory ? found / memory : 1;

  drift_conclude(d, cycle_ns);
  d->squares += part * part * memory;
  d->seconds += seconds * memory;
  d->weight += memory;
}

double drift_part(const struct drift *d, double seconds) {
  return sqrt(d->variance * seconds);
}
