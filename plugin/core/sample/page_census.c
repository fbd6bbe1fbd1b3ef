#include "sample/page_census.h"

#include <string.h>

#include "sample/pagemap.h"

#define WINDOW 512 /* pages */

/* In a window, so many present pages take the time of one that is looked up by
 * itself. */
#define PRESENT_PER_READ 8

/* Pages that are looked up because they may be zero pages: of more that are
 * merged by the kernel, some are taken for what they seem. */
#define ASKED_MOST 256

/* Entries of pagemap. */
struct window {
  uint64_t first, end;
  uint64_t entries[WINDOW];
};

struct counting {
  struct page_lookup *lookup;
  struct page_census *census;
  struct window window;
  unsigned asked;
  /* The huge zero page that was found last. */
  uint64_t huge_first, huge_end, huge_frame;
  uint64_t zero_frame;  /* of the small one, once it was found */
  uint64_t last_page;   /* that was counted and is not exclusive */
  uint64_t last_frame;  /* its frame */
  uint64_t other_frame; /* that was found several times, and is no zero page */
};

/* --- zero pages --- */

/* What one entry of the upper page table maps, in pages. An entry has 8 bytes.
 */
static uint64_t huge_pages(const struct counting *c) {
  return c->lookup->reader->page_size / 8;
}

static int is_absent(struct counting *c, uint64_t page, bool *ret) {
  struct page_finding found;
  int rc = page_lookup_find(c->lookup, page, &found);

  c->asked++;
  if (rc == 0)
    *ret = !found.is_resident;
  return rc;
}

/* Not all after a small one that is at the beginning of a page table: where
 * frames are hidden, the huge one looks like a page of a file. */
static bool is_in_huge(const struct counting *c, enum page_kind kind,
                       uint64_t page, uint64_t frame) {
  if (page >= c->huge_end)
    return false;
  if (frame == 0)
    return kind == PAGE_FILE;
  return frame == c->huge_frame + (page - c->huge_first);
}

/* It is mapped whole, and looks like a page of a file since 6.11. */
static int ask_about_huge(struct counting *c, uint64_t page, uint64_t frame,
                          bool *ret) {
  int rc;

  if (page % huge_pages(c) != 0)
    return 0;
  rc = is_absent(c, page, ret);
  if (!*ret)
    return rc;
  c->huge_first = page;
  c->huge_end = page + huge_pages(c);
  c->huge_frame = frame;
  return rc;
}

static void take_last_back(struct counting *c, enum page_kind kind) {
  uint64_t *picked = c->census->picked[kind];
  uint32_t *n = &c->census->n_picked[kind];

  c->census->kinds[kind].pages--;
  for (uint32_t i = 0; i < *n; i++)
    if (picked[i] == c->last_page)
      picked[i] = picked[--*n];
}

/* All have one frame; but so have pages that KSM has merged. The first one was
 * counted. */
static int ask_about_repeated(struct counting *c, enum page_kind kind,
                              uint64_t page, uint64_t frame, bool *ret) {
  int rc;

  if (frame == 0 || frame != c->last_frame || frame == c->other_frame)
    return 0;
  rc = is_absent(c, page, ret);
  *(*ret ? &c->zero_frame : &c->other_frame) = frame;
  if (*ret)
    take_last_back(c, kind);
  return rc;
}

/* Of a page that is not exclusive. */
static int is_zero(struct counting *c, enum page_kind kind, uint64_t page,
                   uint64_t frame, bool *ret) {
  int rc;

  *ret = is_in_huge(c, kind, page, frame) ||
         (frame != 0 && frame == c->zero_frame);
  if (*ret || c->asked >= ASKED_MOST)
    return 0;
  rc = ask_about_huge(c, page, frame, ret);
  if (rc != 0 || *ret)
    return rc;
  return ask_about_repeated(c, kind, page, frame, ret);
}

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

/* Those that are picked first have their places: any of all are kept. */
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

static int count(struct counting *c, uint64_t page, uint64_t entry) {
  enum page_kind kind = pagemap_is_file(entry) ? PAGE_FILE : PAGE_ANON;
  uint64_t frame = pagemap_frame(entry);
  bool is_left_out = false;
  int rc;

  if (pagemap_is_exclusive(entry)) {
    c->census->kinds[kind].pages++;
    c->census->kinds[kind].exclusive++;
    return 0;
  }
  rc = is_zero(c, kind, page, frame, &is_left_out);
  if (rc != 0 || is_left_out)
    return rc;
  c->last_page = page;
  c->last_frame = frame;
  c->census->kinds[kind].pages++;
  pick(c, kind, page);
  return 0;
}

/* --- all of them --- */

/* Also over the gaps between mappings, which are many and small. */
static int read_window(struct counting *c, uint64_t first) {
  struct window *w = &c->window;
  unsigned present = 0;
  size_t n = 0;
  int rc = pagemap_read(c->lookup->pagemap, first, w->entries, WINDOW, &n);

  if (rc != 0)
    return rc;
  for (size_t i = 0; i < n; i++)
    present += pagemap_is_present(w->entries[i]);
  memset(w->entries + n, 0, (WINDOW - n) * sizeof(*w->entries));
  w->first = first;
  w->end = first + WINDOW;
  page_reader_count(c->lookup->reader, 1 + present / PRESENT_PER_READ);
  return 0;
}

/* Runs go up. */
static int count_run(struct counting *c, const struct page_run *run) {
  for (uint64_t page = run->first; page < run->end; page++) {
    int rc = page >= c->window.end ? read_window(c, page) : 0;
    uint64_t entry = rc == 0 ? c->window.entries[page - c->window.first] : 0;

    if (rc == 0 && pagemap_is_present(entry))
      rc = count(c, page, entry);
    if (rc != 0)
      return rc;
  }
  return 0;
}

bool page_census_can(const struct page_layout *l) {
  uint64_t pages = 0, reads = 0, end = 0; /* of the last window */
  struct page_run run;

  for (size_t at = 0; page_layout_next(l, &at, &run);) {
    if (run.is_shmem)
      continue;
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
  for (size_t at = 0; rc == 0 && page_layout_next(layout, &at, &run);)
    if (!run.is_shmem)
      rc = count_run(&c, &run);
  for (unsigned kind = 0; kind < PAGE_KINDS; kind++)
    keep_some(&c, kind);
  return rc;
}
