/* What the processes of a document map, summed by name. */
#ifndef REPORT_MAPPING_H
#define REPORT_MAPPING_H

#include "document.h"

struct mappings {
  const struct mapping *all; /* the document's, or in its pool */
  size_t n;
  uint64_t processes; /* that have mappings in the document */
};

/* Whether there are any, of a group or (NULL) of all. */
bool mappings_are_known(const struct document *d, const char *group);

/*
 * The document's own sums where they are about that group or about all, and
 * else what its processes of that group have, added up.
 */
struct mappings mappings_collect(struct document *d, const char *group);

#endif
