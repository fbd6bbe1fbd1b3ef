/* The pages of a process in a proc tree (proctree.h): its maps, its pagemap and
 * the tree's kpagecount. */
#ifndef SMAPS_TESTS_FAKE_PAGES_H
#define SMAPS_TESTS_FAKE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proctree.h"

/* Entries of pagemap without their frame. */
#define FAKE_ANON (UINT64_C(1) << 63)
#define FAKE_FILE (UINT64_C(1) << 63 | UINT64_C(1) << 61)
#define FAKE_EXCLUSIVE (UINT64_C(1) << 56)
#define FAKE_SWAPPED (UINT64_C(1) << 62)

/* A mapping; addresses in bytes. */
struct fake_range {
  uint64_t start, end;
  const char *permissions; /* NULL for "rw-p" */
  const char *name;        /* NULL for none */
};

/* Writes the maps of a process. */
void fake_pages_map(const struct proctree *t, uint32_t pid,
                    const struct fake_range *ranges, size_t n);

/* Writes n entries of pagemap from the given page on, with frames from `frame`
 * on; with 0 their frames are hidden. Entries that were never written are of
 * pages that are not present. */
void fake_pages_put(const struct proctree *t, uint32_t pid, uint64_t page,
                    size_t n, uint64_t entry, uint64_t frame);

/* The same for n entries that differ, each with its frame. */
void fake_pages_put_each(const struct proctree *t, uint32_t pid, uint64_t page,
                         const uint64_t *entries, size_t n);

/* Writes how often n frames are mapped. */
void fake_pages_count(const struct proctree *t, uint64_t frame, size_t n,
                      uint64_t mappings);
void fake_pages_count_each(const struct proctree *t, uint64_t frame,
                           const uint64_t *mappings, size_t n);

#endif
