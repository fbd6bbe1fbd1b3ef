/* SPDX-License-Identifier: MIT */
/*
 * The amounts of each mapping of a process that is too large to be walked, for
 * captures. A sample of thousands of its pages shows what is mapped, and each
 * page that is found counts for its mapping.
 *
 * A mapping has the part of the anonymous pages, and of the pages of files, in
 * statm that was found in it. Prices and errors are those of sampled.h.
 */
#ifndef SMAPS_MAPPING_SAMPLE_H
#define SMAPS_MAPPING_SAMPLE_H

#include "proc/mapping.h"
#include "sample/page_sample.h"

/* So many present pages show how large the large mappings are. */
#define MAPPING_SAMPLE_PAGES 16000

/*
 * The request's pages_wanted and seed count. Fills a table that is zero, and
 * returns 0; or leaves it zero and returns an outcome or error, as
 * page_sample_read() does.
 *
 * Its amounts, as far as they are known: Rss, Anonymous, the four Private_ and
 * Shared_ fields (not with unsure pages, see page_lookup.h), and Pss, if it is
 * known how many processes map each page that was found. A mapping of which no
 * page was found has no amounts.
 */
int mapping_sample_read(struct page_reader *r, const struct proc_ref *p,
                        const struct page_request *request,
                        struct mapping_table *ret);

#endif
