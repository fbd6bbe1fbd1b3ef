/*
 * The amounts of each mapping of a process as a sample of its pages shows them
 * (sample/mapping_sample.h), and how far off they are.
 *
 * A mapping has the part of the anonymous pages, and of the pages of files, in
 * statm that was found in it. Prices and errors are those of sampled.h.
 */
#ifndef SMAPS_SAMPLED_MAPPING_H
#define SMAPS_SAMPLED_MAPPING_H

#include "sample/mapping_sample.h"

/*
 * Fills in the amounts of the sample's table, as far as they are known: Rss,
 * Anonymous, the four Private_ and Shared_ fields, and Pss, if it is known how
 * many processes map each page that was found. A mapping of which no page was
 * found has no amounts.
 */
void sampled_mapping_fill(const struct mapping_sample *sample,
                          uint64_t page_size);

#endif
