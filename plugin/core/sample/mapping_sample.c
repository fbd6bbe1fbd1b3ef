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

/* A run of pages of one mapping. */
struct segment {
  uint64_t first;
  size_t mapping; /* index in the table */
};

struct drawing {
  uint64_t page_size;
  struct mapping_sample *sample;
  size_t n_tallies, cap_tallies;
  struct segment *segments; /* all mappings, by address */
  size_t n, cap;
  size_t at; /* segment of the last page */
  int error;
};

/* --- the sample --- */

static int add_segment(struct drawing *s, struct segment segment) {
  struct segment *all = array_room(s->segments, s->n, &s->cap, sizeof(*all));

  if (!all)
    return -ENOMEM;
  s->segments = all;
  all[s->n++] = segment;
  return 0;
}

/* Makes room for a mapping; a new one has the next index. */
static int add_tally(struct drawing *s, size_t mapping) {
  struct mapping_tally *all =
      array_room(s->sample->tallies, mapping, &s->cap_tallies, sizeof(*all));

  if (!all)
    return -ENOMEM;
  s->sample->tallies = all;
  while (s->n_tallies <= mapping)
    all[s->n_tallies++] = (struct mapping_tally){.is_shmem = false};
  return 0;
}

static void see_mapping(void *ctx, const struct rollup_line *line) {
  struct drawing *s = ctx;
  size_t mapping = mapping_table_add_line(s->sample->table, line);

  if (s->error == 0)
    s->error = add_tally(s, mapping);
  if (s->error == 0)
    s->error =
        add_segment(s, (struct segment){.first = line->start / s->page_size,
                                        .mapping = mapping});
}

static void see_page(void *ctx, uint64_t page, bool is_shmem,
                     const struct page_finding *found) {
  struct drawing *s = ctx;
  struct mapping_tally *t;

  if (s->error != 0)
    return;
  if (s->segments[s->at].first > page) /* the next round */
    s->at = 0;
  while (s->at + 1 < s->n && s->segments[s->at + 1].first <= page)
    s->at++;
  t = &s->sample->tallies[s->segments[s->at].mapping];
  t->is_shmem |= is_shmem;
  page_tally_add(&t->kinds[found->kind], found);
}

int mapping_sample_draw(struct page_reader *r, const struct proc_ref *p,
                        const struct page_request *request,
                        struct mapping_sample *ret) {
  struct drawing s = {.page_size = r->page_size, .sample = ret};
  const struct page_watcher watcher = {
      .see_mapping = see_mapping, .see_page = see_page, .ctx = &s};
  struct page_request watched = *request;
  struct page_sample pages;
  int rc;

  *ret = (struct mapping_sample){.table = calloc(1, sizeof(*ret->table))};
  watched.watcher = &watcher;
  rc = ret->table ? page_sample_read(r, p, &watched, &pages) : -ENOMEM;
  if (rc == 0) {
    page_layout_drop(pages.layout);
    ret->has_mapcounts = pages.has_mapcounts;
    ret->statm = pages.statm;
    rc = s.error ? s.error : mapping_table_finish_maps(ret->table);
  }
  free(s.segments);
  if (rc != 0)
    mapping_sample_done(ret);
  return rc;
}

void mapping_sample_done(struct mapping_sample *s) {
  if (s->table)
    mapping_table_done(s->table);
  free(s->table);
  free(s->tallies);
  *s = (struct mapping_sample){0};
}

/* --- its amounts --- */

/* The pages of one kind in all mappings: by statm, and in the sample. */
struct whole {
  uint64_t pages, found;
};

struct filling {
  const struct mapping_sample *sample;
  uint64_t page_size;
  struct whole kinds[PAGE_KINDS];
};

static uint64_t whole_kib(double bytes) {
  return amount_from(bytes) / 1024 * 1024;
}

static struct page_sums sums_of(const struct page_tally *t) {
  return (struct page_sums){.pages = t->pages,
                            .exclusive = t->exclusive,
                            .price = t->price,
                            .price_squared = t->price_squared,
                            .alike = 1};
}

/* --- present pages --- */

static uint32_t found_in(const struct filling *f, size_t i,
                         enum page_kind kind) {
  return f->sample->tallies[i].kinds[kind].pages;
}

/* The mapping's part of the pages, by the sample; at most its size. */
static uint64_t share_of(const struct filling *f, size_t i,
                         enum page_kind kind) {
  const struct whole *w = &f->kinds[kind];
  double found = found_in(f, i, kind);

  if (found <= 0)
    return 0;
  return min(amount_from((double)w->pages * found / (double)w->found + 0.5),
             f->sample->table->mappings[i].size / f->page_size);
}

static void add_pages(const struct filling *f, size_t i, enum page_kind kind,
                      uint64_t pages) {
  const struct mapping_tally *t = &f->sample->tallies[i];
  const struct page_tally *found = &t->kinds[kind];
  uint64_t *bytes = f->sample->table->mappings[i].sum.bytes;
  bool is_dirty = kind == PAGE_ANON || t->is_shmem;
  uint64_t all = pages * f->page_size, own = 0;

  if (found->pages > 0)
    own = whole_kib((double)all * found->exclusive / found->pages);
  bytes[ROLLUP_RSS] += all;
  bytes[ROLLUP_ANONYMOUS] += kind == PAGE_ANON ? all : 0;
  bytes[is_dirty ? ROLLUP_PRIVATE_DIRTY : ROLLUP_PRIVATE_CLEAN] += own;
  bytes[is_dirty ? ROLLUP_SHARED_DIRTY : ROLLUP_SHARED_CLEAN] += all - own;
}

/* The mapping with the most pages in the sample takes the pages that the others
 * leave: so the sum equals statm. */
static void fill_kind(const struct filling *f, enum page_kind kind) {
  uint64_t left = f->kinds[kind].pages;
  size_t largest = 0;

  for (size_t i = 1; i < f->sample->table->n; i++)
    if (found_in(f, i, kind) > found_in(f, largest, kind))
      largest = i;
  for (size_t i = 0; i < f->sample->table->n; i++) {
    uint64_t pages = i == largest ? 0 : min(share_of(f, i, kind), left);

    add_pages(f, i, kind, pages);
    left -= pages;
  }
  if (f->kinds[kind].found > 0)
    add_pages(f, largest, kind, left);
}

/* --- prices --- */

/* Adds the error of the number of pages to that of their prices. */
static void add_presence(const struct filling *f, size_t i, enum page_kind kind,
                         struct sampled_deviation *d) {
  const struct page_tally *t = &f->sample->tallies[i].kinds[kind];
  const struct whole *w = &f->kinds[kind];
  double found = (double)w->found, part = t->pages / found;

  if (t->pages > 0)
    d->noise = hypot(sampled_spread(d), sqrt(part * (1 - part) / found) *
                                            (double)(w->pages * f->page_size) *
                                            t->price / t->pages);
}

static void fill_pss(const struct filling *f, size_t i) {
  const struct mapping_tally *t = &f->sample->tallies[i];
  struct mapping *m = &f->sample->table->mappings[i];
  uint64_t all_anon = m->sum.bytes[ROLLUP_ANONYMOUS];
  struct page_sums anon = sums_of(&t->kinds[PAGE_ANON]);
  struct page_sums files = sums_of(&t->kinds[PAGE_FILE]);
  struct sampled s = {.anon = 0};
  uint64_t pss;

  sampled_add_anon(&s, &anon, (double)all_anon);
  sampled_add_files(&s, &files, (double)(m->sum.bytes[ROLLUP_RSS] - all_anon));
  add_presence(f, i, PAGE_ANON, &s.error.pss_anon);
  add_presence(f, i, PAGE_FILE, &s.error.pss_files);
  pss = max(whole_kib(s.pss_anon + s.pss_files), rollup_uss(&m->sum));
  m->sum.bytes[ROLLUP_PSS] = min(pss, m->sum.bytes[ROLLUP_RSS]);
  m->sum.known |= 1U << ROLLUP_PSS;
  m->pss_error = amount_from(sampled_pss_error(&s.error));
}

/* A mapping with exclusive pages only has a known Pss, even if the number of
 * processes that map a page is unknown. */
static void finish(const struct filling *f, size_t i) {
  const struct page_tally *t = f->sample->tallies[i].kinds;
  struct mapping *m = &f->sample->table->mappings[i];
  uint64_t found = (uint64_t)t[PAGE_ANON].pages + t[PAGE_FILE].pages;

  m->is_sampled = true;
  m->pages_sampled = found;
  if (found == 0)
    return;
  m->sum.known = KNOWN;
  if (f->sample->has_mapcounts ||
      (uint64_t)t[PAGE_ANON].exclusive + t[PAGE_FILE].exclusive == found)
    fill_pss(f, i);
}

void mapping_sample_fill(const struct mapping_sample *sample,
                         uint64_t page_size) {
  const struct statm_sample *s = &sample->statm;
  struct filling f = {.sample = sample, .page_size = page_size};

  f.kinds[PAGE_ANON].pages = s->resident_pages - s->shared_pages;
  f.kinds[PAGE_FILE].pages = s->shared_pages;
  for (unsigned kind = 0; kind < PAGE_KINDS; kind++) {
    for (size_t i = 0; i < sample->table->n; i++)
      f.kinds[kind].found += found_in(&f, i, kind);
    fill_kind(&f, kind);
  }
  for (size_t i = 0; i < sample->table->n; i++)
    finish(&f, i);
}

int mapping_sample_read(struct page_reader *r, const struct proc_ref *p,
                        const struct page_request *request,
                        struct mapping_table **ret) {
  struct mapping_sample s;
  int rc = mapping_sample_draw(r, p, request, &s);

  if (rc != 0)
    return rc;
  mapping_sample_fill(&s, r->page_size);
  free(s.tallies);
  *ret = s.table;
  return 0;
}
