/* SPDX-License-Identifier: MIT */
/* The units of the kernel whose proc tree is read, which no file of it has. */
#ifndef SMAPS_UNITS_H
#define SMAPS_UNITS_H

#include "proc/procfs.h"

struct units {
  uint64_t page_size; /* of statm */
  uint64_t ticks;     /* a second, of start times */
};

/* Those of this machine, but for what the file "getconf" of a captured tree has
 * (contrib/capture-proc). 0 or a negative errno: -EBADMSG if it is malformed.
 */
int units_read(struct procfs *procfs, struct units *ret);

#endif
