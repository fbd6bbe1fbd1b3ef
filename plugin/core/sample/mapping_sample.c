/* SPDX-License-Identifier: MIT */
#include "sample/mapping_sample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/arith.h"
#include "sample/sampled.h"

#define SIZES (1U << ROLLUP_RSS | 1U << ROLLUP_ANONYMOUS)
#define PARTS                                                                  \
  (1U << ROLLUP_SHARED_CLEAN | 1U << ROLLUP_SHARED_DIRTY |                     \
   1U << ROLLUP_PRIVATE_CLEAN | 1U << ROLLUP_PRIVATE_DIRTY)

/* Pages of a kind: by statm, and in the sample. */
struct kind_pages {
  uint64_t pages, found;
};

struct mapping_sample {
  struct mapping_tallies in;
  bool has_mapcounts; /* as in struct page_lookup */
  uint64_t page_size;
  /* In all mappings, and in those that did not get theirs yet. */
  struct kind_pages all[PAGE_KINDS], left[PAGE_KINDS];
};

static uint64_t room_in(const struct mapping_sample *s, size_t i,
                        enum page_kind kind) {
  const struct mapping_tally *t = &s->in.tallies[i];

  return t->kinds[kind].pages > 0
             ? minus(s->in.table->mappings[i].size / s->page_size,
                     t->resident[kind])
             : 0;
}

/* The mapping gets its part of the pages that are left, by the sample; at most
 * its size. */
static void take_pages(struct mapping_sample *s, size_t i,
                       enum page_kind kind) {
  struct kind_pages *left = &s->left[kind];
  uint32_t found = s->in.tallies[i].kinds[kind].pages;
  uint64_t room = room_in(s, i, kind), pages;

  if (room == 0)
    return;
  pages = amount_from((double)left->pages * found / (double)left->found + 0.5);
  pages = min(min(pages, room), left->pages);
  left->pages -= pages;
  left->found -= found;
  s->in.tallies[i].resident[kind] += pages;
}

/* What is beyond the size of a mapping is divided between those with room. */
static void divide_pages(struct mapping_sample *s, enum page_kind kind) {
  struct kind_pages *left = &s->left[kind];
  size_t n = s->in.table->n;

  for (size_t i = 0; i < n; i++)
    s->all[kind].found += s->in.tallies[i].kinds[kind].pages;
  *left = s->all[kind];
  while (left->pages > 0) {
    left->found = 0;
    for (size_t i = 0; i < n; i++)
      if (room_in(s, i, kind) > 0)
        left->found += s->in.tallies[i].kinds[kind].pages;
    if (left->found == 0)
      return;
    for (size_t i = 0; i < n; i++)
      take_pages(s, i, kind);
  }
}

/* The error of the number of pages, in bytes of Pss. */
static double presence(const struct mapping_sample *s,
                       const struct page_tally *t, enum page_kind kind) {
  double found = (double)s->all[kind].found, part = t->pages / found;

  return t->pages > 0 ? sqrt(part * (1 - part) / found) *
                            (double)(s->all[kind].pages * s->page_size) *
                            t->share / t->pages
                      : 0;
}

static void add_kind(struct mapping_sample *s, size_t i, enum page_kind kind,
                     struct sampled_error *error) {
  const struct mapping_tally *t = &s->in.tallies[i];
  struct rollup *sum = &s->in.table->mappings[i].sum, more;
  struct page_sums sums = {.found = t->kinds[kind], .alike = 1};
  struct sampled amounts = {.shmem_part = t->is_shmem};
  double bytes = (double)(t->resident[kind] * s->page_size);

  sampled_add(&amounts, kind, &sums, bytes);
  sampled_rollup(&amounts, &more);
  for (unsigned field = 0; field < ROLLUP_FIELDS; field++)
    sum->bytes[field] += more.bytes[field];
  error->pss[kind].noise = hypot(sampled_spread(&amounts.error.pss[kind]),
                                 presence(s, &t->kinds[kind], kind));
  if (sums.found.unsure > 0)
    error->pss_bound += bytes * sums.found.unsure / sums.found.pages;
}

/* A mapping with exclusive pages only has a known Pss, even if the number of
 * processes that map a page is unknown. Its error includes unsure pages, and
 * uss has none. */
static void finish(struct mapping_sample *s, size_t i) {
  const struct page_tally *t = s->in.tallies[i].kinds;
  struct mapping *m = &s->in.table->mappings[i];
  struct sampled_error error = {.pss_bound = 0};
  uint64_t found = (uint64_t)t[PAGE_ANON].pages + t[PAGE_FILE].pages;
  bool is_unsure = t[PAGE_ANON].unsure + t[PAGE_FILE].unsure > 0;

  m->is_sampled = true;
  m->pages_sampled = found;
  if (found == 0)
    return;
  for (unsigned kind = 0; kind < PAGE_KINDS; kind++)
    add_kind(s, i, kind, &error);
  m->pss_error = amount_from(sampled_pss_error(&error));
  m->sum.known = is_unsure ? SIZES : SIZES | PARTS;
  if (s->has_mapcounts ||
      (uint64_t)t[PAGE_ANON].exclusive + t[PAGE_FILE].exclusive == found)
    m->sum.known |= 1U << ROLLUP_PSS;
}

static void finish_all(struct mapping_sample *s,
                       const struct statm_sample *statm) {
  size_t n = s->in.table->n;

  s->all[PAGE_ANON].pages = statm->resident_pages - statm->shared_pages;
  s->all[PAGE_FILE].pages = statm->shared_pages;
  for (unsigned kind = 0; kind < PAGE_KINDS; kind++)
    divide_pages(s, kind);
  for (size_t i = 0; i < n; i++)
    finish(s, i);
}

static int read_all(struct mapping_sample *s, struct page_reader *r,
                    const struct proc_ref *p, struct page_request request) {
  struct page_sample pages;
  int rc;

  request.mappings = &s->in;
  rc = page_sample_read(r, p, &request, &pages);
  if (rc != 0)
    return rc;
  page_layout_drop(pages.layout);
  s->has_mapcounts = pages.has_mapcounts;
  finish_all(s, &pages.statm);
  return 0;
}

int mapping_sample_read(struct page_reader *r, const struct proc_ref *p,
                        const struct page_request *request,
                        struct mapping_table *ret) {
  struct mapping_sample s = {.page_size = r->page_size, .in.table = ret};
  int rc = read_all(&s, r, p, *request);

  if (rc != 0)
    mapping_table_done(ret);
  free(s.in.tallies);
  return rc;
}
