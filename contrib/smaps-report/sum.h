/*
 * Sums over processes; each process counts once. Amounts that are unknown for
 * some of them are the sums of the others, and at_least has their bit.
 */
#ifndef REPORT_SUM_H
#define REPORT_SUM_H

#include "filter.h"

/* A zeroed sum has no parts. */
struct sum {
  uint64_t processes;
  uint64_t threads;         /* UNKNOWN if unknown for one process */
  uint64_t values[AMOUNTS]; /* UNKNOWN if unknown for all processes */
  uint32_t at_least;
  uint64_t unreadable;
  uint64_t pss_error, uss_error; /* UNKNOWN if unknown */
  uint64_t pss_least, uss_least; /* of processes, without their errors */
  bool has_parts;                /* amounts were added */
};

void sum_add_amounts(struct sum *s, const struct amounts *a);

/* Makes an amount unknown if it is unknown for a part. */
void sum_keep_whole(struct sum *s);

/* Makes all known amounts lower bounds: the sum is of a part only. */
void sum_keep_least(struct sum *s);

/* Makes all amounts unknown. */
void sum_forget(struct sum *s);

/* A process that shares its parent's memory adds to the counts only. */
void sum_add_process(struct sum *s, const struct process *p);

/* Adds up the members of each group that the filters take. The caller frees the
 * sums, which are in the order of the groups. */
struct sum *sum_groups(const struct document *d, const struct filters *f);

/*
 * Makes a group of that name in the pool. Its errors are limited to what is
 * possible: the processes have no more than most_bytes in all (UNKNOWN if that
 * is unknown), and no less than each of them has for certain. The error of an
 * unknown amount is unknown.
 */
struct group *sum_finish(const struct sum *s, uint64_t most_bytes,
                         const char *name, struct pool *pool);

#endif
