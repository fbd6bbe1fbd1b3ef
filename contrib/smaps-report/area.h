/*
 * Where the memory of the host is: areas that end at MemTotal, of the groups
 * and of the kernel.
 */
#ifndef REPORT_AREA_H
#define REPORT_AREA_H

#include "document.h"

struct areas {
  struct area *all; /* in the document's pool */
  size_t n;
};

/*
 * The document must have host_memory. Each process counts in one group; what no
 * group has of the memory of processes is the area "outside". A capture does
 * not tell which groups overlap, so that all are one area, "groups". Where the
 * groups have more than the kernel counts, because they were read at other
 * moments, the least certain areas have less, with that error.
 */
struct areas areas_collect(struct document *d);

/* Adds an area to a total, which was zeroed. */
void area_add(struct area *total, const struct area *part);

#endif
