/* The mappings of a document's processes, summed by name. */
#ifndef REPORT_MAPPING_H
#define REPORT_MAPPING_H

#include "filter.h"

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
