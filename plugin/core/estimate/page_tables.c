#include "estimate/page_tables.h"

#include "proc/arith.h"

#define MOVED_PART 16
#define MOVED_LEAST_PAGES 64
/* Of a page in its table, on all 64-bit processors. */
#define ENTRY_BYTES 8

void page_tables_take(struct page_tables *t, const struct status_sample *s,
                      uint64_t resident_pages) {
  bool is_known = s->known & STATUS_VM_PTE;

  if (!is_known && page_tables_are_known(t))
    return;
  t->kib = is_known ? amount_narrow(s->vm_pte_bytes / 1024) : 0;
  t->resident_pages = amount_narrow(resident_pages);
}

bool page_tables_are_due(const struct page_tables *t, uint64_t resident_pages) {
  uint64_t then = t->resident_pages;
  uint64_t moved =
      resident_pages > then ? resident_pages - then : then - resident_pages;

  return (then == 0 && !page_tables_are_known(t)) ||
         (moved >= MOVED_LEAST_PAGES && moved >= then / MOVED_PART);
}

uint64_t page_tables_bytes(const struct page_tables *t, uint64_t resident_pages,
                           uint64_t page_size) {
  uint64_t then = t->kib ? t->resident_pages : 0;
  uint64_t come = resident_pages > then ? resident_pages - then : 0;

  return page_size + t->kib * UINT64_C(1024) + come * ENTRY_BYTES;
}
