/*
 * The page tables of a process: VmPTE of status, as it was when that was last
 * read, and an estimate of the growth since. Tables come with memory and mostly
 * stay when it goes: the kernel frees them only where a mapping ends, and not
 * where the process gives memory back (MADV_DONTNEED) or the host swaps it out.
 *
 * VmPTE (mm_pgtables_bytes) lacks the table of the top level, which each
 * address space has: a page, with most processors, and a tenth of all for a
 * small process. PageTables of meminfo has it in recent kernels (seen in 6.18).
 */
#ifndef SMAPS_PAGE_TABLES_H
#define SMAPS_PAGE_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/status.h"

/* Zero before the first reading: every process with memory has a table. */
struct page_tables {
  uint32_t kib;            /* 4 TiB at most; 0: unknown */
  uint32_t resident_pages; /* at that time */
};

/* Takes a reading. One without VmPTE, of a process that is exiting or of a
 * kernel that has none, leaves known tables as they are. */
void page_tables_take(struct page_tables *t, const struct status_sample *s,
                      uint64_t resident_pages);

static inline bool page_tables_are_known(const struct page_tables *t) {
  return t->kib > 0;
}

/* True if status was never read, or if resident memory has changed since then
 * by a sixteenth, and by at least 64 pages. */
bool page_tables_are_due(const struct page_tables *t, uint64_t resident_pages);

/*
 * The estimated bytes now: the last reading, an entry for each page that became
 * resident since, and the top level. (A page far from all others takes a table
 * of its own, which only a reading shows.) Without a reading it is the least
 * possible: an entry for each page.
 */
uint64_t page_tables_bytes(const struct page_tables *t, uint64_t resident_pages,
                           uint64_t page_size);

#endif
