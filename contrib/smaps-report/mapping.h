/* The mappings of a document's processes, summed by name. */
#ifndef REPORT_MAPPING_H
#define REPORT_MAPPING_H

#include "document.h"

struct mappings {
  const struct mapping *all; /* the document's, or in its pool */
  size_t n;
  uint64_t processes; /* that have mappings in the document */
};

/* True if there are mappings of a group or (NULL) of all groups. */
bool mappings_are_known(const struct document *d, const char *group);

/* Gets the document's own sums, if it has them for this group, or adds up the
 * mappings of the group's processes. */
struct mappings mappings_collect(struct document *d, const char *group);

#endif
