#include "sample/mapping_sample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "proc/arith.h"
#include "proc/array.h"
#include "sample/sampled.h"

#define KNOWN                                                                  \
  (1U << ROLLUP_RSS | 1U << ROLLUP_SHARED_CLEAN | 1U << ROLLUP_SHARED_DIRTY |  \
   1U << ROLLUP_PRIVATE_CLEAN | 1U << ROLLUP_PRIVATE_DIRTY |                   \
   1U << ROLLUP_ANONYMOUS)

/* The mappings of one name: the pages that were found in them. */
struct mapping_tally {
  struct page_tally kinds[PAGE_KINDS];
  bool is_shmem;
};

/* A run of pages of one mapping. */
struct segment {
  uint64_t first;
  size_t mapping; /* index in the table */
};

struct mapping_sample {
  struct mapping_table *table;   /* as maps has them */
  struct mapping_tally *tallies; /* of each mapping of the table */
  size_t n_tallies, cap_tallies;
  struct segment *segments; /* all mappings, by address */
  size_t n, cap;
  size_t at; /* segment of the last page */
  bool is_out_of_memory;
  bool has_mapcounts; /* as in struct page_lookup */
  uint64_t page_size;
  /* The pages of one kind in all mappings: by statm, and in the sample. */
  uint64_t pages[PAGE_KINDS], found[PAGE_KINDS];
};

/* --- the sample --- */

static void see_mapping(void *ctx, const struct rollup_line *line) {
  struct mapping_sample *s = ctx;
  size_t mapping = mapping_table_add_line(s->table, line);
  struct mapping_tally *tallies = s->tallies;
  struct segment *segments = s->segments;

  if (s->is_out_of_memory)
    return;
  tallies = array_room(tallies, mapping, &s->cap_tallies, sizeof(*tallies));
  segments = array_room(segments, s->n, &s->cap, sizeof(*segments));
  s->tallies = tallies ? tallies : s->tallies;
  s->segments = segments ? segments : s->segments;
  s->is_out_of_memory = !tallies || !segments;
  if (s->is_out_of_memory)
    return;
  while (s->n_tallies <= mapping)
    tallies[s->n_tallies++] = (struct mapping_tally){.is_shmem = false};
  segments[s->n++] =
      (struct segment){.first = line->start / s->page_size, .mapping = mapping};
}

static void see_page(void *ctx, uint64_t page, bool is_shmem,
                     const struct page_finding *found) {
  struct mapping_sample *s = ctx;
  struct mapping_tally *t;

  if (s->is_out_of_memory)
    return;
  if (s->segments[s->at].first > page) /* the next round */
    s->at = 0;
  while (s->at + 1 < s->n && s->segments[s->at + 1].first <= page)
    s->at++;
  t = &s->tallies[s->segments[s->at].mapping];
  t->is_shmem |= is_shmem;
  page_tally_add(&t->kinds[found->kind], found);
}

/* --- present pages --- */

static uint32_t found_in(const struct mapping_sample *s, size_t i,
                         enum page_kind kind) {
  return s->tallies[i].kinds[kind].pages;
}

/* The mapping's part of the pages, by the sample; at most its size. */
static uint64_t share_of(const struct mapping_sample *s, size_t i,
                         enum page_kind kind) {
  double found = found_in(s, i, kind);

  if (found <= 0)
    return 0;
  return min(amount_from(
                 (double)s->pages[kind] * found / (double)s->found[kind] + 0.5),
             s->table->mappings[i].size / s->page_size);
}

static void add_pages(const struct mapping_sample *s, size_t i,
                      enum page_kind kind, uint64_t pages) {
  const struct mapping_tally *t = &s->tallies[i];
  const struct page_tally *found = &t->kinds[kind];
  uint64_t *bytes = s->table->mappings[i].sum.bytes;
  bool is_dirty = kind == PAGE_ANON || t->is_shmem;
  uint64_t all = pages * s->page_size, own = 0;

  if (found->pages > 0)
    own = sampled_whole_kib((double)all * found->exclusive / found->pages);
  bytes[ROLLUP_RSS] += all;
  bytes[ROLLUP_ANONYMOUS] += kind == PAGE_ANON ? all : 0;
  bytes[is_dirty ? ROLLUP_PRIVATE_DIRTY : ROLLUP_PRIVATE_CLEAN] += own;
  bytes[is_dirty ? ROLLUP_SHARED_DIRTY : ROLLUP_SHARED_CLEAN] += all - own;
}

/* The mapping with the most pages in the sample takes the pages that the others
 * leave: so the sum equals statm. */
static void fill_kind(const struct mapping_sample *s, enum page_kind kind) {
  uint64_t left = s->pages[kind];
  size_t largest = 0;

  for (size_t i = 1; i < s->table->n; i++)
    if (found_in(s, i, kind) > found_in(s, largest, kind))
      largest = i;
  for (size_t i = 0; i < s->table->n; i++) {
    uint64_t pages = i == largest ? 0 : min(share_of(s, i, kind), left);

    add_pages(s, i, kind, pages);
    left -= pages;
  }
  if (s->found[kind] > 0)
    add_pages(s, largest, kind, left);
}

/* --- prices --- */

/* Adds the error of the number of pages to that of their prices. */
static void add_presence(const struct mapping_sample *s, size_t i,
                         enum page_kind kind, struct sampled_deviation *d) {
  const struct page_tally *t = &s->tallies[i].kinds[kind];
  double found = (double)s->found[kind], part = t->pages / found;

  if (t->pages > 0)
    d->noise =
        hypot(sampled_spread(d), sqrt(part * (1 - part) / found) *
                                     (double)(s->pages[kind] * s->page_size) *
                                     t->price / t->pages);
}

static void fill_pss(const struct mapping_sample *s, size_t i) {
  const struct mapping_tally *t = &s->tallies[i];
  struct mapping *m = &s->table->mappings[i];
  uint64_t all_anon = m->sum.bytes[ROLLUP_ANONYMOUS];
  struct page_sums anon = {.found = t->kinds[PAGE_ANON], .alike = 1};
  struct page_sums files = {.found = t->kinds[PAGE_FILE], .alike = 1};
  struct sampled amounts = {.anon = 0};
  uint64_t pss;

  sampled_add_anon(&amounts, &anon, (double)all_anon);
  sampled_add_files(&amounts, &files,
                    (double)(m->sum.bytes[ROLLUP_RSS] - all_anon));
  add_presence(s, i, PAGE_ANON, &amounts.error.pss_anon);
  add_presence(s, i, PAGE_FILE, &amounts.error.pss_files);
  pss = max(sampled_whole_kib(amounts.pss_anon + amounts.pss_files),
            rollup_uss(&m->sum));
  m->sum.bytes[ROLLUP_PSS] = min(pss, m->sum.bytes[ROLLUP_RSS]);
  m->sum.known |= 1U << ROLLUP_PSS;
  m->pss_error = amount_from(sampled_pss_error(&amounts.error));
}

/* A mapping with exclusive pages only has a known Pss, even if the number of
 * processes that map a page is unknown. */
static void finish(const struct mapping_sample *s, size_t i) {
  const struct page_tally *t = s->tallies[i].kinds;
  struct mapping *m = &s->table->mappings[i];
  uint64_t found = (uint64_t)t[PAGE_ANON].pages + t[PAGE_FILE].pages;

  m->is_sampled = true;
  m->pages_sampled = found;
  if (found == 0)
    return;
  m->sum.known = KNOWN;
  if (s->has_mapcounts ||
      (uint64_t)t[PAGE_ANON].exclusive + t[PAGE_FILE].exclusive == found)
    fill_pss(s, i);
}

static void fill(struct mapping_sample *s, const struct statm_sample *statm) {
  s->pages[PAGE_ANON] = statm->resident_pages - statm->shared_pages;
  s->pages[PAGE_FILE] = statm->shared_pages;
  for (unsigned kind = 0; kind < PAGE_KINDS; kind++) {
    for (size_t i = 0; i < s->table->n; i++)
      s->found[kind] += found_in(s, i, kind);
    fill_kind(s, kind);
  }
  for (size_t i = 0; i < s->table->n; i++)
    finish(s, i);
}

/* --- all of it --- */

static int read_all(struct mapping_sample *s, struct page_reader *r,
                    const struct proc_ref *p, struct page_request request) {
  const struct page_watcher watcher = {
      .see_mapping = see_mapping, .see_page = see_page, .ctx = s};
  struct page_sample pages;
  int rc;

  request.watcher = &watcher;
  rc = page_sample_read(r, p, &request, &pages);
  if (rc != 0)
    return rc;
  page_layout_drop(pages.layout);
  s->has_mapcounts = pages.has_mapcounts;
  rc = s->is_out_of_memory ? -ENOMEM : s->table->error;
  if (rc == 0)
    fill(s, &pages.statm);
  return rc;
}

int mapping_sample_read(struct page_reader *r, const struct proc_ref *p,
                        const struct page_request *request,
                        struct mapping_table **ret) {
  struct mapping_sample s = {.page_size = r->page_size,
                             .table = calloc(1, sizeof(*s.table))};
  int rc = s.table ? read_all(&s, r, p, *request) : -ENOMEM;

  if (rc == 0) {
    *ret = s.table;
  } else if (s.table) {
    mapping_table_done(s.table);
    free(s.table);
  }
  free(s.tallies);
  free(s.segments);
  return rc;
}
