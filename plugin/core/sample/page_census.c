#include "sample/page_census.h"

#include <string.h>

#include "sample/pagemap.h"

#define WINDOW 512 /* pages */

/* Looking at so many present pages of a window takes as long as one read. */
#define PRESENT_PER_READ 8

struct counting {
  struct page_lookup *lookup;
  struct page_census *census;
  uint64_t first, end; /* of the window: entries of pagemap */
  uint64_t entries[WINDOW];
};

/* --- one page --- */

static void pick(struct counting *c, enum page_kind kind, uint64_t page) {
  const struct page_count *count = &c->census->kinds[kind];
  uint64_t place = c->census->n_picked[kind];

  if (place < CENSUS_PICKED_MOST)
    c->census->n_picked[kind]++;
  else
    place = page_lookup_random(c->lookup) % (count->pages - count->exclusive);
  if (place < CENSUS_PICKED_MOST)
    c->census->picked[kind][place] = page;
}

/* Keeps a random part of the picked pages: they are ordered by address. */
static void keep_some(struct counting *c, enum page_kind kind) {
  const struct page_count *count = &c->census->kinds[kind];
  uint64_t *picked = c->census->picked[kind];
  uint32_t n = c->census->n_picked[kind], kept = 0;
  uint32_t wanted = (count->pages - count->exclusive) / CENSUS_PAGES_FOR_A_PICK;

  if (wanted < CENSUS_PICKED_LEAST)
    wanted = CENSUS_PICKED_LEAST;
  for (; kept < n && kept < wanted; kept++) {
    uint64_t other = kept + page_lookup_random(c->lookup) % (n - kept);
    uint64_t page = picked[other];

    picked[other] = picked[kept];
    picked[kept] = page;
  }
  c->census->n_picked[kind] = kept;
}

static void count(struct counting *c, uint64_t page, uint64_t entry) {
  enum page_kind kind = pagemap_is_file(entry) ? PAGE_FILE : PAGE_ANON;

  c->census->kinds[kind].pages++;
  if (pagemap_is_exclusive(entry))
    c->census->kinds[kind].exclusive++;
  else
    pick(c, kind, page);
}

/* --- all of them --- */

/* Reads a window, with the gaps between mappings: these are many and small. */
static int read_window(struct counting *c, uint64_t first) {
  unsigned present = 0;
  size_t n = 0;
  int rc = pagemap_read(c->lookup->pagemap, first, c->entries, WINDOW, &n);

  if (rc != 0)
    return rc;
  for (size_t i = 0; i < n; i++)
    present += pagemap_is_present(c->entries[i]);
  memset(c->entries + n, 0, (WINDOW - n) * sizeof(*c->entries));
  c->first = first;
  c->end = first + WINDOW;
  page_reader_count(c->lookup->reader, 1 + present / PRESENT_PER_READ);
  return 0;
}

/* Counts the pages of a run; runs come in ascending order. */
static int count_run(struct counting *c, const struct page_run *run) {
  for (uint64_t page = run->first; page < run->end; page++) {
    int rc = page >= c->end ? read_window(c, page) : 0;
    uint64_t entry;

    if (rc != 0)
      return rc;
    entry = c->entries[page - c->first];
    if (pagemap_is_present(entry))
      count(c, page, entry);
  }
  return 0;
}

bool page_census_can(const struct page_layout *l) {
  uint64_t pages = 0, reads = 0, end = 0; /* of the last window */
  struct page_run run;

  for (size_t at = 0; page_layout_next(l, PAGES_OWN, &at, &run);) {
    pages += run.end - run.first;
    for (uint64_t page = run.first > end ? run.first : end;
         page < run.end && reads <= CENSUS_READS_MOST; page = end) {
      end = page + WINDOW;
      reads++;
    }
  }
  return pages <= CENSUS_PAGES_MOST && reads <= CENSUS_READS_MOST;
}

int page_census_take(struct page_lookup *l, const struct page_layout *layout,
                     struct page_census *ret) {
  struct counting c = {.lookup = l, .census = ret};
  struct page_run run;
  int rc = 0;

  *ret = (struct page_census){.n_picked = {0}};
  for (size_t at = 0;
       rc == 0 && page_layout_next(layout, PAGES_OWN, &at, &run);)
    rc = count_run(&c, &run);
  for (unsigned kind = 0; kind < PAGE_KINDS; kind++)
    keep_some(&c, kind);
  return rc;
}
