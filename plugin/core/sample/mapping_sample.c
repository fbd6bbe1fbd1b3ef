#include "sample/mapping_sample.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "proc/arith.h"
#include "sample/pagemap.h"

/* In each stratum so many pages are looked up at least. */
#define LOOKUPS_LEAST 16

/* Milliseconds of CPU time to refine a sparse layout. */
#define REFINE_TIMES 16

/* Calls of PAGEMAP_SCAN that see that mappings are empty, and the address space
 * of each at most. */
#define SCANS_MOST 256
#define SCAN_BYTES (UINT64_C(64) << 20)

/* A run of pages of one mapping. */
struct segment {
  uint64_t first, end;
  uint64_t before;  /* pages in the segments before it that are drawn from */
  uint32_t mapping; /* index in the table */
  uint32_t stratum;
  bool is_left_out; /* of the layout */
};

struct segments {
  struct segment *all;
  size_t n, cap;
};

struct sampling {
  struct page_reader *reader;
  const struct proc_ref *process;
  const struct page_request *request;
  struct page_lookup *lookup;
  struct mapping_sample *sample;
  struct page_layout *layout;
  int error;
  struct segments mapped; /* all that maps names, by address */
  struct segments drawn;  /* to draw from, by stratum and then by address */
  uint64_t pages;         /* to draw from */
};

static int add_segment(struct segments *s, const struct segment *segment) {
  if (s->n == s->cap) {
    size_t cap = s->cap ? s->cap * 2 : 64;
    struct segment *all = reallocarray(s->all, cap, sizeof(*all));

    if (!all)
      return -ENOMEM;
    s->all = all;
    s->cap = cap;
  }
  assert(s->all);
  s->all[s->n++] = *segment;
  return 0;
}

/* --- what is mapped --- */

/* Neighbours of one mapping become one segment. */
static void see_mapping(void *ctx, const struct rollup_line *line,
                        bool is_left_out) {
  struct sampling *s = ctx;
  struct segment *last =
      s->mapped.n > 0 ? &s->mapped.all[s->mapped.n - 1] : NULL;
  struct segment new = {.first = line->start / s->reader->page_size,
                        .end = line->end / s->reader->page_size,
                        .is_left_out = is_left_out};

  new.mapping = (uint32_t)mapping_table_add_line(s->sample->table, line);
  if (last && last->end == new.first && last->mapping == new.mapping &&
      last->is_left_out == is_left_out)
    last->end = new.end;
  else if (s->error == 0)
    s->error = add_segment(&s->mapped, &new);
}

static int read_mappings(struct sampling *s) {
  const struct page_layout_watcher watcher = {.see = see_mapping, .ctx = s};
  struct mapping_table *table = calloc(1, sizeof(*table));
  int rc;

  s->sample->table = table;
  if (!table)
    return -ENOMEM;
  rc = page_layout_read_watched(s->reader, s->lookup->dir_fd,
                                s->process->resident_pages, &watcher,
                                &s->layout);
  if (rc == 0)
    rc = s->error;
  if (rc == 0)
    rc = mapping_table_finish_maps(table);
  if (rc != 0)
    return rc;
  s->sample->tallies =
      calloc(table->n ? table->n : 1, sizeof(*s->sample->tallies));
  s->sample->strata = calloc(MAPPING_STRATA, sizeof(*s->sample->strata));
  return s->sample->tallies && s->sample->strata ? 0 : -ENOMEM;
}

/* --- what to draw from --- */

/* Adds the parts of a run of the layout, by mapping. Returns where in the
 * mapped segments the next run begins, or a negative errno. */
static ssize_t cut(struct sampling *s, size_t at, const struct page_run *run) {
  for (; at < s->mapped.n && s->mapped.all[at].first < run->end; at++) {
    const struct segment *mapped = &s->mapped.all[at];
    struct segment new = *mapped;

    new.first = max(mapped->first, run->first);
    new.end = min(mapped->end, run->end);
    if (new.first < new.end && !mapped->is_left_out) {
      struct mapping_tally *t = &s->sample->tallies[mapped->mapping];

      if (add_segment(&s->drawn, &new) != 0)
        return -ENOMEM;
      t->pages += new.end - new.first;
      t->is_shmem |= run->is_shmem;
    }
    if (mapped->end > run->end)
      break;
  }
  return (ssize_t)at;
}

static int cut_layout(struct sampling *s) {
  struct page_run run;
  ssize_t place = 0;
  size_t at = 0;

  for (size_t i = 0; i < s->mapped.n; i++)
    s->sample->tallies[s->mapped.all[i].mapping].is_partial |=
        s->mapped.all[i].is_left_out;
  while (place >= 0 && page_layout_next(s->layout, &at, &run))
    place = cut(s, (size_t)place, &run);
  return place < 0 ? (int)place : 0;
}

/* --- strata --- */

struct sized {
  uint64_t pages;
  uint32_t mapping;
};

static int compare_sizes(const void *left, const void *right) {
  const struct sized *a = left, *b = right;

  if (a->pages != b->pages)
    return a->pages < b->pages ? 1 : -1;
  return (a->mapping > b->mapping) - (a->mapping < b->mapping);
}

static int choose_strata(struct mapping_sample *sample) {
  size_t n = sample->table->n;
  struct sized *sized = calloc(n ? n : 1, sizeof(*sized));

  if (!sized)
    return -ENOMEM;
  for (uint32_t i = 0; i < n; i++)
    sized[i] = (struct sized){sample->tallies[i].pages, i};
  qsort(sized, n, sizeof(*sized), compare_sizes);
  for (uint32_t i = 0; i < n && i + 1 < MAPPING_STRATA; i++)
    sample->tallies[sized[i].mapping].stratum = i + 1;
  free(sized);
  return 0;
}

static int compare_segments(const void *left, const void *right) {
  const struct segment *a = left, *b = right;

  if (a->stratum != b->stratum)
    return a->stratum < b->stratum ? -1 : 1;
  return (a->first > b->first) - (a->first < b->first);
}

static int arrange(struct sampling *s) {
  int rc = choose_strata(s->sample);

  if (rc != 0)
    return rc;
  for (size_t i = 0; i < s->drawn.n; i++)
    s->drawn.all[i].stratum =
        s->sample->tallies[s->drawn.all[i].mapping].stratum;
  if (s->drawn.n > 0)
    qsort(s->drawn.all, s->drawn.n, sizeof(*s->drawn.all), compare_segments);
  for (size_t i = 0; i < s->drawn.n; i++) {
    struct segment *segment = &s->drawn.all[i];
    uint64_t pages = segment->end - segment->first;

    segment->before = s->pages;
    s->pages += pages;
    s->sample->strata[segment->stratum].pages += pages;
  }
  return 0;
}

/* --- the drawing --- */

/* The segment of the i-th page to draw from. */
static const struct segment *segment_at(const struct sampling *s, uint64_t i) {
  size_t low = 0, high = s->drawn.n;

  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;

    if (s->drawn.all[middle].before <= i)
      low = middle;
    else
      high = middle;
  }
  return &s->drawn.all[low];
}

static int look_up(struct sampling *s, uint64_t i) {
  const struct segment *segment = segment_at(s, i);
  struct mapping_tally *t = &s->sample->tallies[segment->mapping];
  struct page_finding found;
  int rc = page_lookup_find(s->lookup, segment->first + (i - segment->before),
                            &found);

  if (rc == 0 && found.is_resident)
    page_tally_add(&t->kinds[found.kind], &found);
  return rc;
}

static int draw(struct sampling *s, uint64_t before,
                const struct mapping_stratum *stratum) {
  uint64_t pages = stratum->pages, n = stratum->lookups;

  for (uint64_t i = 0; i < n; i++) {
    int rc = look_up(s, before + page_lookup_draw(s->lookup, pages, n, i));

    if (rc != 0)
      return rc;
  }
  return 0;
}

/* The lookups in all strata, so that as many pages as wanted are present. */
static double count_lookups(const struct sampling *s) {
  uint32_t wanted = s->request->pages_wanted;
  uint64_t resident_pages = max(s->process->resident_pages, 1);
  double lookups = (double)wanted * (double)s->pages / (double)resident_pages;

  if (lookups < wanted)
    return wanted;
  return lookups < (double)wanted * PAGE_LOOKUPS_MOST
             ? lookups
             : (double)wanted * PAGE_LOOKUPS_MOST;
}

static int draw_all(struct sampling *s, double lookups) {
  uint64_t before = 0;

  for (size_t i = 0; i < MAPPING_STRATA; i++) {
    struct mapping_stratum *stratum = &s->sample->strata[i];
    uint64_t share =
        stratum->pages > 0
            ? (uint64_t)(lookups * (double)stratum->pages / (double)s->pages)
            : 0;
    int rc;

    stratum->lookups = min(max(share, LOOKUPS_LEAST), stratum->pages);
    rc = draw(s, before, stratum);
    if (rc != 0)
      return rc;
    before += stratum->pages;
  }
  return 0;
}

/* --- empty mappings --- */

static bool was_found(const struct mapping_tally *t) {
  return t->kinds[PAGE_ANON].pages + t->kinds[PAGE_FILE].pages > 0;
}

static bool was_looked_up_whole(const struct mapping_sample *sample,
                                const struct mapping_tally *t) {
  const struct mapping_stratum *stratum = &sample->strata[t->stratum];

  return stratum->lookups == stratum->pages;
}

/* False also where the kernel does not tell. */
static bool is_segment_empty(struct sampling *s,
                             const struct segment *segment) {
  uint64_t start = segment->first * s->reader->page_size;
  uint64_t end = segment->end * s->reader->page_size, walk_end = 0;
  struct pagemap_region region;
  size_t n = 0;

  if (end - start > SCAN_BYTES)
    return false;
  page_reader_count(s->reader, 1);
  return pagemap_scan(s->lookup->pagemap, start, end, PAGEMAP_PRESENT,
                      PAGEMAP_ZERO, &region, 1, &n, &walk_end) == 0 &&
         n == 0 && walk_end >= end;
}

/* A mapping of which no page was found may have some all the same. */
static void find_empty(struct sampling *s) {
  unsigned scans = 0;

  for (size_t i = 0; i < s->sample->table->n; i++) {
    struct mapping_tally *t = &s->sample->tallies[i];

    t->is_empty = !was_found(t) && !t->is_partial;
  }
  for (size_t i = 0; i < s->drawn.n; i++) {
    const struct segment *segment = &s->drawn.all[i];
    struct mapping_tally *t = &s->sample->tallies[segment->mapping];

    if (t->is_empty && !was_looked_up_whole(s->sample, t))
      t->is_empty = scans++ < SCANS_MOST && is_segment_empty(s, segment);
  }
}

/* --- all of it --- */

static int sample_pages(struct sampling *s) {
  int rc;

  procfs_announce(s->reader->procfs, "pagemap");
  for (int i = 0; i < REFINE_TIMES; i++)
    page_layout_refine(s->layout, s->reader, s->lookup->pagemap);
  rc = cut_layout(s);
  if (rc == 0)
    rc = arrange(s);
  if (rc == 0)
    rc = draw_all(s, count_lookups(s));
  if (rc == 0)
    find_empty(s);
  s->sample->has_mapcounts = s->lookup->has_mapcounts;
  return rc;
}

static int sample_through(void *ctx, struct page_lookup *l) {
  struct sampling *s = ctx;
  int rc;

  s->lookup = l;
  rc = read_mappings(s);
  if (rc == 0)
    rc = sample_pages(s);
  return rc != 0 ? rc : page_lookup_read_statm(l, &s->sample->statm);
}

int mapping_sample_read(struct page_reader *r, const struct proc_ref *p,
                        const struct page_request *request,
                        struct mapping_sample *ret) {
  struct sampling s = {
      .reader = r, .process = p, .request = request, .sample = ret};
  int rc;

  *ret = (struct mapping_sample){0};
  rc = page_lookup_run(r, p, request->seed, sample_through, &s);
  free(s.mapped.all);
  free(s.drawn.all);
  page_layout_drop(s.layout);
  if (rc != 0)
    mapping_sample_done(ret);
  return rc;
}

void mapping_sample_done(struct mapping_sample *s) {
  if (s->table)
    mapping_table_done(s->table);
  free(s->table);
  free(s->tallies);
  free(s->strata);
  *s = (struct mapping_sample){0};
}
