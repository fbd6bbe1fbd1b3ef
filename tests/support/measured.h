/* SPDX-License-Identifier: MIT */
/* A world whose members are read where it is worth it: for the tests of what is
 * read, and of what stands in for the rest. */
#ifndef SMAPS_TESTS_MEASURED_H
#define SMAPS_TESTS_MEASURED_H

#include "world.h"

int measured_setup(void **state);

/* How many rollups the last cycle has read. */
unsigned measured_reads(const struct world *w);

/* A group of the processes of its name. */
void measured_group(struct world *w, const char *name);

/* A process of 8 MiB, of which 2 MiB are shared by two. */
struct fake measured_member(uint32_t pid, const char *comm);
/* One of so many GiB, which takes 3 ms each by the first guess. */
struct fake measured_large(uint32_t pid, const char *comm, unsigned gib);
/* One of 8 MiB, of which 2 MiB are shared by copy on write: in Pss it is short
 * of just as much as makes its faults worth asking for. */
struct fake measured_sharer(uint32_t pid, const char *comm);

/* Writes a process that has had faults on as many pages as a sharer shares,
 * without any other sign. */
void measured_put_faulted(struct world *w, struct fake f);

#endif
