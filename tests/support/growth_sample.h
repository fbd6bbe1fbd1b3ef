/* Samples for the tests of growth. */
#ifndef SMAPS_TESTS_GROWTH_SAMPLE_H
#define SMAPS_TESTS_GROWTH_SAMPLE_H

#include "report/growth.h"

/* After t seconds, of a group of one process that has no limit. */
struct growth_sample sample_at(double t, double bytes);

#endif
