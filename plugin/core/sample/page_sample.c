/* SPDX-License-Identifier: MIT */
#include "sample/page_sample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"

/* Pages that are tested for huge pages; the windows of the first of them are
 * walked to measure the time. */
#define ASKED_MOST 64
#define PROBES 8

/* An entry of the page table that maps a huge page: a walk takes it as one. */
#define HUGE_NS 100.0
#define HUGE_BYTES (UINT64_C(2) << 20)

/* The part of the resident pages that a given layout has to show. */
#define SEEN_LEAST 0.75

/* A difference of so many standard deviations may be chance. */
#define CHANCE 2

/* A random choice of the pages that were offered, ordered by address until more
 * than fit were offered. */
struct choice {
  uint64_t pages[CENSUS_PICKED_MOST];
  uint32_t n;
  uint64_t offered;
};

struct drawing {
  const struct page_request *request;
  struct page_lookup *lookup;
  struct page_sample *sample;
  enum page_sort sort;  /* what is drawn: with a census, shmem alone */
  uint64_t pages;       /* of that sort */
  double unsure;        /* pages, see page_lookup.h; an estimate */
  struct choice probed; /* of the found pages */
};

/* --- one page --- */

static void choose(struct page_lookup *l, struct choice *c, uint32_t most,
                   uint64_t page) {
  uint64_t place = c->offered++;

  if (c->n < most)
    c->n++;
  else
    place = (uint64_t)(page_lookup_random(l) * (double)c->offered);
  if (place < most)
    c->pages[place] = page;
}

/* Before 6.11 huge pages of shmem look like anonymous ones. */
static void tally(struct drawing *s, const struct page_run *run,
                  const struct page_finding *found) {
  struct page_sample *sample = s->sample;
  struct mapping_tally *mapping;

  page_tally_add(run->is_shmem ? &sample->shmem : &sample->kinds[found->kind],
                 found);
  if (!s->request->mappings)
    return;
  mapping = &s->request->mappings->tallies[run->mapping];
  mapping->is_shmem |= run->is_shmem;
  page_tally_add(&mapping->kinds[found->kind], found);
}

static int look_up(struct drawing *s, uint64_t page,
                   const struct page_run *run) {
  struct page_finding found;
  int rc = page_lookup_find(s->lookup, page, &found);

  if (rc != 0)
    return rc;
  s->sample->looked_at++;
  if (!found.is_resident)
    return 0;
  s->sample->pages++;
  tally(s, run, &found);
  choose(s->lookup, &s->probed, ASKED_MOST, page);
  return 0;
}

/* --- the drawing --- */

/* Divides the pages into n equal parts and looks up one page of each. */
static int draw(struct drawing *s, uint64_t n) {
  struct page_walk walk = {.layout = s->sample->layout, .sort = s->sort};
  uint64_t page;
  int rc = 0;

  for (uint64_t i = 0; rc == 0 && i < n; i++)
    if (page_walk_to(&walk, page_lookup_draw(s->lookup, s->pages, n, i), &page))
      rc = look_up(s, page, &walk.run);
  return rc;
}

/* The number of further addresses to look up, by the pages found until now. */
static uint64_t next_round(const struct drawing *s) {
  uint32_t wanted = s->request->pages_wanted, found = s->sample->pages;
  uint64_t looked_at = s->sample->looked_at;
  uint64_t room = (uint64_t)wanted * PAGE_LOOKUPS_MOST - looked_at;
  uint64_t n = wanted;

  if (found >= wanted)
    return 0;
  if (looked_at > 0)
    n = found > 0 ? (wanted - found) * looked_at / found + 1 : room;
  return min(n, room);
}

/*
 * Each round goes through the whole layout: a round that was broken off would
 * favour low addresses. A layout of fewer pages than are wanted is looked up
 * whole, once.
 */
static int draw_rounds(struct drawing *s) {
  uint64_t n;
  int rc = 0;

  if (s->pages <= s->request->pages_wanted)
    return draw(s, s->pages);
  while (rc == 0 && (n = next_round(s)) > 0)
    rc = draw(s, n);
  return rc;
}

static uint32_t count_present(const uint64_t *entries, size_t n) {
  uint32_t present = 0;

  for (size_t i = 0; i < n; i++)
    present += pagemap_is_present(entries[i]);
  return present;
}

/* --- a little memory beside much shmem --- */

struct census {
  struct drawing *sampling;
  struct page_count *counts; /* of each kind, with zero pages: these do not
                                count as resident, but look like pages that are
                                not exclusive */
  struct choice picked[PAGE_KINDS]; /* of the pages that are not exclusive */
  uint64_t first, end;              /* of the window: entries of pagemap */
  uint64_t entries[PAGE_WINDOW];
};

static void count(struct census *c, uint64_t page, uint64_t entry) {
  enum page_kind kind = pagemap_is_file(entry) ? PAGE_FILE : PAGE_ANON;

  c->counts[kind].pages++;
  if (pagemap_is_exclusive(entry))
    c->counts[kind].exclusive++;
  else
    choose(c->sampling->lookup, &c->picked[kind], CENSUS_PICKED_MOST, page);
}

/* The first page of a window that begins where page tables do. */
static uint64_t window_of(uint64_t page) {
  return page / PAGE_WINDOW * PAGE_WINDOW;
}

/* Reads a window, with the gaps between mappings: these are many and small. */
static int read_window(struct census *c, uint64_t first) {
  struct page_lookup *l = c->sampling->lookup;
  uint32_t unsure;
  size_t n = 0;
  int rc = pagemap_read(l->pagemap, first, c->entries, PAGE_WINDOW, &n);

  if (rc != 0)
    return rc;
  memset(c->entries + n, 0, (PAGE_WINDOW - n) * sizeof(*c->entries));
  c->first = first;
  c->end = first + PAGE_WINDOW;
  page_reader_count(l->reader,
                    1 + count_present(c->entries, n) / PRESENT_PER_READ);
  rc = page_lookup_correct(l, first, c->entries, &unsure);
  c->sampling->unsure += unsure;
  return rc;
}

/* Counts the pages of a run; runs come in ascending order. */
static int count_run(struct census *c, const struct page_run *run) {
  for (uint64_t page = run->first; page < run->end; page++) {
    int rc = page >= c->end ? read_window(c, window_of(page)) : 0;
    uint64_t entry;

    if (rc != 0)
      return rc;
    entry = c->entries[page - c->first];
    if (pagemap_is_present(entry))
      count(c, page, entry);
  }
  return 0;
}

/* True if the pages outside of shmem are within the limits. */
static bool can_count(const struct page_layout *l) {
  uint64_t pages = 0, reads = 0, end = 0; /* of the last window */
  struct page_run run;

  for (size_t at = 0; page_layout_next(l, PAGES_OWN, &at, &run);) {
    pages += run.end - run.first;
    for (uint64_t page = max(run.first, end);
         page < run.end && reads <= CENSUS_READS_MOST; page = end) {
      end = window_of(page) + PAGE_WINDOW;
      reads++;
    }
  }
  return pages <= CENSUS_PAGES_MOST && reads <= CENSUS_READS_MOST;
}

/* Some pages that are not exclusive are not resident memory, but of a device,
 * for example. The picked pages show how many. */
static int look_up_picked(struct census *c, enum page_kind kind) {
  struct drawing *s = c->sampling;
  const struct page_run own = {.is_shmem = false};
  const struct choice *picked = &c->picked[kind];
  struct page_count *count = &c->counts[kind];
  uint64_t shared = count->pages - count->exclusive;
  uint64_t n = min(max(shared / CENSUS_PAGES_FOR_A_PICK, CENSUS_PICKED_LEAST),
                   picked->n);
  int rc = 0;

  for (uint64_t i = 0; rc == 0 && i < n; i++)
    rc = look_up(s, picked->pages[page_lookup_draw(s->lookup, picked->n, n, i)],
                 &own);
  if (n > 0)
    count->pages = count->exclusive +
                   (uint32_t)(shared * s->sample->kinds[kind].pages / n);
  s->sample->present[kind] += count->pages;
  s->sample->pages += count->pages - s->sample->kinds[kind].pages;
  return rc;
}

static int take_census(struct drawing *s) {
  struct census c = {.sampling = s, .counts = s->sample->census};
  struct page_run run;
  int rc = 0;

  for (size_t at = 0;
       rc == 0 && page_layout_next(s->sample->layout, PAGES_OWN, &at, &run);)
    rc = count_run(&c, &run);
  for (unsigned kind = 0; rc == 0 && kind < PAGE_KINDS; kind++)
    rc = look_up_picked(&c, kind);
  return rc;
}

/* --- the probe --- */

/* The part of the found pages that huge pages have. By the rule of three, up to
 * three of the tested pages that seem huge are not. */
static double huge_part(const struct drawing *s) {
  uint32_t huge = 0;

  for (uint32_t i = 0; i < s->probed.n; i++) {
    huge += page_lookup_is_in(s->lookup, s->probed.pages[i], PAGEMAP_HUGE);
    page_reader_count(s->lookup->reader, 1);
  }
  return huge > 3 ? (huge - 3.0) / s->probed.n : 0;
}

/*
 * Measures the time of windows that contain drawn pages. A window with more
 * pages is drawn more often: therefore the mean of the time per page is right
 * for a walk of all pages, and the ratio of the sums would be wrong.
 */
static double small_page_ns(const struct drawing *s) {
  const struct page_reader *r = s->lookup->reader;
  uint64_t entries[PAGE_WINDOW];
  double ns_by_page = 0;
  uint32_t probes = 0;

  while (probes < PROBES && probes < s->probed.n) {
    uint64_t begin = r->clock_ns(), took_ns;
    size_t n = 0;
    int rc =
        pagemap_read(s->lookup->pagemap, window_of(s->probed.pages[probes]),
                     entries, PAGE_WINDOW, &n);
    uint32_t present = rc == 0 ? count_present(entries, n) : 0;

    took_ns = r->clock_ns() - begin;
    page_reader_count(s->lookup->reader, 1);
    if (present == 0)
      break;
    ns_by_page += (double)took_ns / present;
    probes++;
  }
  return probes > 0 ? ns_by_page / probes : 0;
}

static void probe(struct drawing *s) {
  double huge = huge_part(s), page_ns = small_page_ns(s);
  double huge_pages = (double)HUGE_BYTES / (double)s->lookup->reader->page_size;

  s->sample->huge = huge;
  if (page_ns > 0)
    s->sample->walk_page_ns =
        (1 - huge) * page_ns + huge / huge_pages * HUGE_NS;
}

/* --- all of it --- */

/* Estimates the number of present pages, and the error of that. */
static void count_present_pages(struct drawing *s) {
  struct page_sample *sample = s->sample;
  double pages = (double)s->pages, n = sample->looked_at, part;

  if (n < 1)
    return;
  part = s->sample->pages / n;
  sample->present[PAGE_ANON] = pages * sample->kinds[PAGE_ANON].pages / n;
  sample->present[PAGE_FILE] = pages * part - sample->present[PAGE_ANON];
  if (n < pages)
    sample->chance = pages * CHANCE * sqrt(part * (1 - part) / n);
  for (unsigned kind = 0; kind < PAGE_KINDS; kind++)
    s->unsure += pages * sample->kinds[kind].unsure / n;
  s->unsure += pages * sample->shmem.unsure / n;
}

static double present_pages(const struct page_sample *s) {
  return s->present[PAGE_ANON] + s->present[PAGE_FILE];
}

/* The anonymous pages that the census has missed. */
static double count_unseen_anon(const struct page_sample *s) {
  double anon = (double)(s->statm.resident_pages - s->statm.shared_pages);

  return s->has_census ? anon - s->census[PAGE_ANON].pages : 0;
}

/* statm was read after the pages. */
static void count_unknown_pages(struct drawing *s) {
  struct page_sample *sample = s->sample;
  double resident = (double)sample->statm.resident_pages;
  double present = present_pages(sample), chance = sample->chance;
  double unseen = fmax(resident - present - chance, count_unseen_anon(sample));
  double strange = present - chance - resident;

  sample->unknown = (fmax(unseen, 0) + s->unsure) / fmax(resident, 1);
  if (strange > 0)
    sample->unknown += strange / present;
}

/* Adds the mappings to the table of the request, if it has one. */
static int make_layout(const struct page_lookup *l, const struct proc_ref *p,
                       const struct page_request *request,
                       struct page_layout **ret) {
  struct mapping_tallies *mappings = request->mappings;
  int rc = page_layout_read(l->reader, l->pid, l->pagemap, p->resident_pages,
                            mappings ? mappings->table : NULL, ret);

  if (rc != 0 || !mappings)
    return rc;
  mappings->tallies = calloc(mappings->table->n, sizeof(*mappings->tallies));
  return mappings->tallies ? 0 : -ENOMEM;
}

static int sample_pages(struct drawing *s) {
  const struct page_request *request = s->request;
  struct page_lookup *lookup = s->lookup;
  struct page_sample *ret = s->sample;
  int rc;

  procfs_announce(lookup->reader->procfs, "pagemap");
  ret->has_census = !request->mappings &&
                    page_layout_pages(s->sample->layout, PAGES_SHMEM) > 0 &&
                    can_count(s->sample->layout);
  s->sort = ret->has_census ? PAGES_SHMEM : PAGES_ALL;
  s->pages = page_layout_pages(s->sample->layout, s->sort);
  rc = draw_rounds(s);
  count_present_pages(s);
  if (rc == 0 && ret->layout_ns > 0 && !request->mappings)
    probe(s);
  if (rc == 0 && ret->has_census)
    rc = take_census(s);
  ret->has_mapcounts = lookup->has_mapcounts;
  if (rc == 0)
    rc = page_lookup_read_statm(lookup, &ret->statm);
  if (rc == 0)
    count_unknown_pages(s);
  return rc;
}

/* Fills in the layout, too, and keeps it after a failure. */
static int sample_from(struct page_lookup *l, const struct proc_ref *p,
                       const struct page_request *request,
                       struct page_layout *given, struct page_sample *ret) {
  struct drawing s = {.request = request, .lookup = l, .sample = ret};
  uint64_t begin = l->reader->clock_ns();
  int rc = 0;

  *ret = (struct page_sample){.layout = page_layout_share(given)};
  if (!given) {
    rc = make_layout(l, p, request, &ret->layout);
    ret->layout_ns = l->reader->clock_ns() - begin;
  }
  return rc == 0 ? sample_pages(&s) : rc;
}

/* True if there is much memory where the layout has none. */
static bool is_outdated(const struct page_sample *s) {
  return present_pages(s) < SEEN_LEAST * (double)s->statm.resident_pages;
}

int page_sample_read(struct page_reader *r, const struct proc_ref *p,
                     const struct page_request *request,
                     struct page_sample *ret) {
  struct page_lookup l;
  int rc = page_lookup_open(r, p, request->seed, &l);

  if (rc == 0) {
    rc = sample_from(&l, p, request, request->layout, ret);
    if (rc == 0 && request->layout && is_outdated(ret)) {
      page_layout_drop(ret->layout);
      rc = sample_from(&l, p, request, NULL, ret);
    }
    if (rc != 0)
      page_layout_drop(ret->layout);
    page_lookup_close(&l);
  }
  if (rc != 0)
    ret->layout = NULL;
  return rc == PROCFS_NO_MM ? PROCFS_GONE : rc;
}
