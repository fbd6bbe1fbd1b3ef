/* The mappings of a document's processes, summed by name. */
#ifndef REPORT_MAPPING_H
#define REPORT_MAPPING_H

#include "filter.h"

struct mappings {
  const struct mapping *all; /* the document's, or in its pool */
  size_t n;
  uint64_t processes; /* that have mappings in the document */
};

/* True if there are mappings of processes that the filters take. */
bool mappings_are_known(const struct document *d, const struct filters *f);

/* Gets the document's own sums, if it has them for these filters, or adds up
 * the mappings of the processes that they take. The filter of mappings is left
 * to the caller. */
struct mappings mappings_collect(struct document *d, const struct filters *f);

#endif
