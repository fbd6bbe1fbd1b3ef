/* Sums over processes, each of them counted once. */
#ifndef REPORT_SUM_H
#define REPORT_SUM_H

#include "document.h"

struct sum {
  uint64_t processes;
  uint64_t threads; /* UNKNOWN as soon as one is; likewise: */
  uint64_t values[AMOUNTS];
  uint64_t unreadable;
};

/* The sum of nothing. */
void sum_begin(struct sum *s);

void sum_add_amounts(struct sum *s, const struct amounts *a);

/* One that runs in its parent's memory adds to the counts alone. */
void sum_add_process(struct sum *s, const struct process *p);

/* The sum as a group of that name. */
void sum_finish(const struct sum *s, const char *name, struct pool *pool,
                struct group *ret);

#endif
