/* SPDX-License-Identifier: MIT */
/*
 * Where the memory of the host is: areas of groups and of the kernel, which add
 * up to MemTotal.
 */
#ifndef REPORT_AREA_H
#define REPORT_AREA_H

#include "document.h"

struct areas {
  struct area *all; /* in the document's pool */
  size_t n;
};

/*
 * The document must have host_memory. Each process counts in one group; memory
 * of processes in no group is the area "outside". A capture does not show which
 * groups overlap, so all groups are one area, "groups". If groups have more
 * than the kernel counts, because they were read at another moment, the least
 * certain areas are made smaller; the difference is their error.
 */
struct areas areas_collect(struct document *d);

/* Adds an area to a total, which was zeroed. */
void area_add(struct area *total, const struct area *part);

#endif
