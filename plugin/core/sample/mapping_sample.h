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
 * The request's pages_wanted and seed count. Returns 0 and a table, which the
 * caller releases and frees; or an outcome or error, as page_sample_read()
 * does.
 *
 * Its amounts, as far as they are known: Rss, Anonymous, the four Private_ and
 * Shared_ fields, and Pss, if it is known how many processes map each page that
 * was found. A mapping of which no page was found has no amounts.
 */
int mapping_sample_read(struct page_reader *r, const struct proc_ref *p,
                        const struct page_request *request,
                        struct mapping_table **ret);

/* --- its two steps, for tests --- */

/* The mappings of one name: the pages that were found in them. */
struct mapping_tally {
  struct page_tally kinds[PAGE_KINDS];
  bool is_shmem;
};

/* A run of pages of one mapping. */
struct mapping_segment {
  uint64_t first;
  size_t mapping; /* index in the table */
};

struct mapping_sample {
  struct mapping_table *table;   /* as maps has them */
  struct mapping_tally *tallies; /* of each mapping of the table */
  size_t n_tallies, cap_tallies;
  struct mapping_segment *segments; /* all mappings, by address */
  size_t n, cap;
  size_t at; /* segment of the last page */
  bool is_out_of_memory;
  bool has_mapcounts;        /* as in struct page_lookup */
  struct statm_sample statm; /* right after */
  uint64_t page_size;
  /* The pages of one kind in all mappings: by statm, and in the sample. */
  uint64_t pages[PAGE_KINDS], found[PAGE_KINDS];
};

/* Fills *ret and returns 0, and mapping_sample_done() releases it; or leaves
 * nothing to release. */
int mapping_sample_draw(struct page_reader *r, const struct proc_ref *p,
                        const struct page_request *request,
                        struct mapping_sample *ret);
/* Of a sample with page_size, table, tallies, has_mapcounts and statm. */
void mapping_sample_fill(struct mapping_sample *s);
/* Accepts a sample of zeros. */
void mapping_sample_done(struct mapping_sample *s);

#endif
