/*
 * Samples the pages of a process by mapping, for captures of a process that is
 * too large to be walked: maps is read once, some thousand pages are drawn from
 * all that it names, and each page that is found counts for its mapping.
 */
#ifndef SMAPS_MAPPING_SAMPLE_H
#define SMAPS_MAPPING_SAMPLE_H

#include "proc/mapping.h"
#include "sample/page_sample.h"

/* So many present pages show how large the large mappings are. */
#define MAPPING_SAMPLE_PAGES 16000

/* The mappings of one name: the pages that were found in them. */
struct mapping_tally {
  struct page_tally kinds[PAGE_KINDS];
  bool is_shmem;
};

struct mapping_sample {
  struct mapping_table *table;   /* as maps has them */
  struct mapping_tally *tallies; /* of each mapping of the table */
  bool has_mapcounts;            /* as in struct page_lookup */
  struct statm_sample statm;     /* right after */
};

/*
 * The request's pages_wanted and seed count. Fills *ret and returns 0, and
 * mapping_sample_done() releases it; or leaves nothing to release and returns
 * an outcome or error, as page_sample_read() does.
 */
int mapping_sample_read(struct page_reader *r, const struct proc_ref *p,
                        const struct page_request *request,
                        struct mapping_sample *ret);

/* Accepts a sample of zeros. */
void mapping_sample_done(struct mapping_sample *s);

#endif
