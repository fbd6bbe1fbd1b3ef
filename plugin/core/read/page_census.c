#include "read/page_census.h"

#include <string.h>

#include "proc/pagemap.h"

#define WINDOW 512 /* pages */

/* In a window, so many present pages take the time of one that is looked up by
 * itself. */
#define PRESENT_PER_READ 8

static void pick(struct page_lookup *l, struct page_census *c,
                 enum page_kind kind, uint64_t page) {
  const struct page_count *count = &c->kinds[kind];
  uint64_t place = c->n_picked[kind];

  if (place < CENSUS_PICKED_MOST)
    c->n_picked[kind]++;
  else
    place = page_lookup_random(l) % (count->pages - count->exclusive);
  if (place < CENSUS_PICKED_MOST)
    c->picked[kind][place] = page;
}

static void count(struct page_lookup *l, struct page_census *c, uint64_t page,
                  uint64_t entry) {
  enum page_kind kind = pagemap_is_file(entry) ? PAGE_FILE : PAGE_ANON;

  c->kinds[kind].pages++;
  if (pagemap_is_exclusive(entry))
    c->kinds[kind].exclusive++;
  else
    pick(l, c, kind, page);
}

/* Entries of pagemap. */
struct window {
  uint64_t first, end;
  uint64_t entries[WINDOW];
};

/* Also over the gaps between mappings, which are many and small. */
static int read_window(struct page_lookup *l, uint64_t first,
                       struct window *ret) {
  unsigned present = 0;
  size_t n = 0;
  int rc = pagemap_read(l->pagemap, first, ret->entries, WINDOW, &n);

  if (rc != 0)
    return rc;
  for (size_t i = 0; i < n; i++)
    present += pagemap_is_present(ret->entries[i]);
  memset(ret->entries + n, 0, (WINDOW - n) * sizeof(*ret->entries));
  ret->first = first;
  ret->end = first + WINDOW;
  page_reader_count(l->reader, 1 + present / PRESENT_PER_READ);
  return 0;
}

/* Runs go up. */
static int count_run(struct page_lookup *l, const struct page_run *run,
                     struct window *w, struct page_census *c) {
  for (uint64_t page = run->first; page < run->end; page++) {
    int rc = page >= w->end ? read_window(l, page, w) : 0;

    if (rc != 0)
      return rc;
    if (pagemap_is_present(w->entries[page - w->first]))
      count(l, c, page, w->entries[page - w->first]);
  }
  return 0;
}

int page_census_take(struct page_lookup *l, const struct page_layout *layout,
                     struct page_census *ret) {
  struct window w = {.end = 0};
  struct page_run run;
  int rc = 0;

  *ret = (struct page_census){.n_picked = {0}};
  for (size_t at = 0; rc == 0 && page_layout_next(layout, &at, &run);)
    if (!run.is_shmem)
      rc = count_run(l, &run, &w, ret);
  return rc;
}
