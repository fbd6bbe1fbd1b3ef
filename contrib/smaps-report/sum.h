/* Sums over processes; each process counts once. */
#ifndef REPORT_SUM_H
#define REPORT_SUM_H

#include "document.h"

struct sum {
  uint64_t processes;
  uint64_t threads;         /* UNKNOWN if unknown for one process */
  uint64_t values[AMOUNTS]; /* UNKNOWN if unknown for one process */
  uint64_t unreadable;
};

/* Sets the sum to 0. */
void sum_begin(struct sum *s);

void sum_add_amounts(struct sum *s, const struct amounts *a);

/* A process that shares its parent's memory adds to the counts only. */
void sum_add_process(struct sum *s, const struct process *p);

/* Makes a group of that name from the sum. */
void sum_finish(const struct sum *s, const char *name, struct pool *pool,
                struct group *ret);

#endif
