/*
 * What is read of a world of memory, without files: stands in for reader_run(),
 * statm_read_of() and status_read_of(), in a program that wraps these.
 */
#ifndef SMAPS_TESTS_MEMORY_READER_H
#define SMAPS_TESTS_MEMORY_READER_H

#include "memory_world.h"

/* What a rollup costs: a part, and another for each page. */
#define MEMORY_READ_NS 20000
#define MEMORY_PAGE_NS 20

/* Processes are from now on as they are in the world. missed: of 256 rollups so
 * many are not to be had, by `seed`. */
void memory_reader_show(const struct memory_world *w, unsigned missed,
                        uint64_t seed);

#endif
