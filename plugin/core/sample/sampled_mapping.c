#include "sample/sampled_mapping.h"

#include <math.h>

#include "proc/amount.h"
#include "proc/arith.h"
#include "sample/sampled.h"

#define KNOWN                                                                  \
  (1U << ROLLUP_RSS | 1U << ROLLUP_SHARED_CLEAN | 1U << ROLLUP_SHARED_DIRTY |  \
   1U << ROLLUP_PRIVATE_CLEAN | 1U << ROLLUP_PRIVATE_DIRTY |                   \
   1U << ROLLUP_ANONYMOUS)

/* The number of pages of a kind that a mapping has present, and the standard
 * deviation of that. */
struct presence {
  double pages, deviation;
};

/* All mappings together, for one kind. */
struct balance {
  double total;    /* pages that statm tells */
  double pages;    /* found */
  double variance; /* of that */
  double moved;    /* pages after they were moved */
  double room;     /* for more of them, where their number is uncertain */
};

struct filling {
  const struct mapping_sample *sample;
  double page_size;
  struct balance kinds[PAGE_KINDS];
  double filled[PAGE_KINDS]; /* pages, until now */
};

static double statm_pages(const struct statm_sample *s, enum page_kind kind) {
  return (double)(kind == PAGE_FILE ? s->shared_pages
                                    : s->resident_pages - s->shared_pages);
}

/* --- present pages --- */

/* A page that was looked up is present, or is not: as if it had a price of 1 or
 * 0. */
static struct presence presence_of(const struct mapping_sample *sample,
                                   const struct mapping_tally *t,
                                   enum page_kind kind) {
  const struct mapping_stratum *stratum = &sample->strata[t->stratum];
  double found = t->kinds[kind].pages;
  struct page_sums lookups = {.pages = (double)stratum->lookups,
                              .price = found,
                              .price_squared = found,
                              .alike = 1};
  struct sampled s = {.anon = 0};

  if (stratum->lookups == stratum->pages)
    return (struct presence){.pages = found};
  sampled_add_anon(&s, &lookups, (double)stratum->pages);
  return (struct presence){.pages = s.pss_anon,
                           .deviation = sampled_spread(&s.error.pss_anon)};
}

/* The uncertain numbers are moved, each by its share of the variance. */
static double move(const struct balance *b, const struct mapping_tally *t,
                   const struct presence *p) {
  double lacking = b->total - b->pages;
  double pages = p->pages;

  if (pages > 0 && b->variance > 0)
    pages += lacking * p->deviation * p->deviation / b->variance;
  return fmin(fmax(pages, 0), fmax((double)t->pages, p->pages));
}

static double room_of(const struct mapping_tally *t, const struct presence *p,
                      double moved) {
  return p->pages > 0 && p->deviation > 0 ? fmax((double)t->pages - moved, 0)
                                          : 0;
}

/* A mapping that is full cannot take its share: the others take it. */
static double settle(const struct balance *b, const struct mapping_tally *t,
                     const struct presence *p) {
  double moved = move(b, t, p), lacking = b->total - b->moved;

  if (lacking > 0 && b->room > 0)
    return moved + lacking * room_of(t, p, moved) / b->room;
  return b->moved > 0 ? moved * b->total / b->moved : 0;
}

static void balance(struct filling *f, enum page_kind kind) {
  const struct mapping_sample *sample = f->sample;
  struct balance *b = &f->kinds[kind];

  b->total = statm_pages(&sample->statm, kind);
  for (size_t i = 0; i < sample->table->n; i++) {
    struct presence p = presence_of(sample, &sample->tallies[i], kind);

    b->pages += p.pages;
    if (p.pages > 0)
      b->variance += p.deviation * p.deviation;
  }
  for (size_t i = 0; i < sample->table->n; i++) {
    const struct mapping_tally *t = &sample->tallies[i];
    struct presence p = presence_of(sample, t, kind);
    double moved = move(b, t, &p);

    b->moved += moved;
    b->room += room_of(t, &p, moved);
  }
}

/* In whole pages that add up: the fractions of all mappings before are carried
 * on. */
static double whole_pages(struct filling *f, enum page_kind kind,
                          const struct mapping_tally *t,
                          const struct presence *p) {
  const struct balance *b = &f->kinds[kind];
  double before = f->filled[kind];

  f->filled[kind] += settle(b, t, p);
  return floor(f->filled[kind] + 0.5) - floor(before + 0.5);
}

/* The sum, which statm tells, makes each number more certain. */
static double deviation_of(const struct balance *b, const struct presence *p) {
  double variance = p->deviation * p->deviation;

  if (p->pages > 0 && b->variance > 0)
    variance *= 1 - variance / b->variance;
  return fmin(sqrt(variance), b->total);
}

/* --- amounts --- */

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

/* Adds the memory of one kind; returns its bytes. */
static double add_kind(struct filling *f, const struct mapping_tally *t,
                       enum page_kind kind, struct rollup *sum) {
  const struct page_tally *pages = &t->kinds[kind];
  struct presence p = presence_of(f->sample, t, kind);
  double bytes = whole_pages(f, kind, t, &p) * f->page_size;
  bool is_dirty = kind == PAGE_ANON || t->is_shmem;
  uint64_t all = amount_from(bytes), own = 0;

  if (pages->pages > 0)
    own = min(whole_kib(bytes * pages->exclusive / pages->pages), all);
  sum->bytes[ROLLUP_RSS] += all;
  sum->bytes[is_dirty ? ROLLUP_PRIVATE_DIRTY : ROLLUP_PRIVATE_CLEAN] += own;
  sum->bytes[is_dirty ? ROLLUP_SHARED_DIRTY : ROLLUP_SHARED_CLEAN] += all - own;
  return bytes;
}

/* The prices of the pages, and how many there are, are both uncertain. */
static struct sampled_deviation
error_of(const struct filling *f, const struct mapping_tally *t,
         enum page_kind kind, const struct sampled_deviation *of_price) {
  const struct mapping_stratum *stratum = &f->sample->strata[t->stratum];
  const struct page_tally *pages = &t->kinds[kind];
  struct presence p = presence_of(f->sample, t, kind);
  double price = pages->pages > 0 ? pages->price / pages->pages : 1;

  if (stratum->lookups == stratum->pages)
    return (struct sampled_deviation){.noise = 0};
  return (struct sampled_deviation){
      .noise = hypot(sampled_spread(of_price),
                     deviation_of(&f->kinds[kind], &p) * f->page_size * price)};
}

static void add_pss(const struct filling *f, const struct mapping_tally *t,
                    const double *bytes, struct mapping *m) {
  struct page_sums anon = sums_of(&t->kinds[PAGE_ANON]);
  struct page_sums files = sums_of(&t->kinds[PAGE_FILE]);
  struct sampled s = {.anon = 0};
  uint64_t pss;

  sampled_add_anon(&s, &anon, bytes[PAGE_ANON]);
  sampled_add_files(&s, &files, bytes[PAGE_FILE]);
  s.error.pss_anon = error_of(f, t, PAGE_ANON, &s.error.pss_anon);
  s.error.pss_files = error_of(f, t, PAGE_FILE, &s.error.pss_files);
  pss = whole_kib(s.pss_anon + s.pss_files);
  pss = pss > rollup_uss(&m->sum) ? pss : rollup_uss(&m->sum);
  m->sum.bytes[ROLLUP_PSS] = min(pss, m->sum.bytes[ROLLUP_RSS]);
  m->sum.known |= 1U << ROLLUP_PSS;
  m->pss_error = amount_from(sampled_pss_error(&s.error));
}

static void fill(struct filling *f, const struct mapping_tally *t,
                 struct mapping *m) {
  const struct page_tally *anon = &t->kinds[PAGE_ANON];
  const struct page_tally *files = &t->kinds[PAGE_FILE];
  double bytes[PAGE_KINDS];

  m->is_sampled = true;
  m->pages_sampled = (uint64_t)anon->pages + files->pages;
  if (t->is_empty)
    m->sum.known = KNOWN | 1U << ROLLUP_PSS;
  if (m->pages_sampled == 0)
    return;
  m->sum.known = KNOWN;
  for (unsigned kind = 0; kind < PAGE_KINDS; kind++)
    bytes[kind] = add_kind(f, t, kind, &m->sum);
  m->sum.bytes[ROLLUP_ANONYMOUS] = amount_from(bytes[PAGE_ANON]);
  if (f->sample->has_mapcounts ||
      (uint64_t)anon->exclusive + files->exclusive == m->pages_sampled)
    add_pss(f, t, bytes, m);
}

void sampled_mapping_fill(const struct mapping_sample *sample,
                          uint64_t page_size) {
  struct filling f = {.sample = sample, .page_size = (double)page_size};

  for (unsigned kind = 0; kind < PAGE_KINDS; kind++)
    balance(&f, kind);
  for (size_t i = 0; i < sample->table->n; i++)
    fill(&f, &sample->tallies[i], &sample->table->mappings[i]);
}
