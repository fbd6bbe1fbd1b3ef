/* SPDX-License-Identifier: MIT */
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
  uint64_t threads;         /* MISSING if unknown for one process */
  uint64_t values[AMOUNTS]; /* MISSING if unknown for all processes */
  uint32_t at_least;
  uint64_t unreadable;
  uint64_t pss_error, uss_error; /* MISSING if unknown */
  uint64_t pss_least, uss_least; /* of processes, without their errors */
  bool has_parts;                /* amounts were added */
};

void sum_add_amounts(struct sum *s, const struct amounts *a);

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
 * possible: the processes have no more than most_bytes in all (MISSING if that
 * is unknown), and no less than each of them has for certain. The error of an
 * unknown amount is unknown.
 */
struct group *sum_finish(const struct sum *s, uint64_t most_bytes,
                         const char *name, struct pool *pool);

/* The mappings of processes, summed by name. */
struct mappings {
  const struct mapping *all; /* the document's, or in its pool */
  size_t n;
  uint64_t processes; /* processes that have mappings in the document */
};

/* True if there are mappings of processes that the filters take. */
bool mappings_are_known(const struct document *d, const struct filters *f);

/* The number of processes that the filters take and that have none, although
 * they do not run in the memory of their parent. */
size_t mappings_missing(const struct document *d, const struct filters *f);
/* Prints their number on standard error, after standard output. */
void mappings_report_missing(size_t n);

/* Gets the document's own sums, if it has them for these filters, or adds up
 * the mappings of the processes that they take. The filter of mappings is left
 * to the caller. */
struct mappings mappings_collect(struct document *d, const struct filters *f);

#endif
