#include "sample/mapping_sample.h"

#include <errno.h>
#include <stdlib.h>

#include "proc/arith.h"
#include "proc/array.h"

/* Milliseconds of CPU time to refine a sparse layout. */
#define REFINE_TIMES 16

/* A run of pages of one mapping. */
struct segment {
  uint64_t first;
  uint32_t mapping; /* index in the table */
};

struct sampling {
  struct page_lookup *lookup;
  const struct proc_ref *process;
  const struct page_request *request;
  struct mapping_sample *sample;
  struct page_layout *layout;
  struct segment *segments; /* all mappings, by address */
  size_t n, cap;
  size_t at; /* segment of the last page */
  int error;
};

/* --- what is mapped --- */

static int add_segment(struct sampling *s, struct segment segment) {
  struct segment *all = array_room(s->segments, s->n, &s->cap, sizeof(*all));

  if (!all)
    return -ENOMEM;
  s->segments = all;
  all[s->n++] = segment;
  return 0;
}

static void see_mapping(void *ctx, const struct rollup_line *line) {
  struct sampling *s = ctx;
  size_t mapping = mapping_table_add_line(s->sample->table, line);

  if (s->error == 0)
    s->error = add_segment(
        s, (struct segment){.first = line->start / s->lookup->reader->page_size,
                            .mapping = (uint32_t)mapping});
}

static int read_mappings(struct sampling *s) {
  const struct page_layout_watcher watcher = {.see = see_mapping, .ctx = s};
  struct mapping_table *table = calloc(1, sizeof(*table));
  int rc;

  s->sample->table = table;
  if (!table)
    return -ENOMEM;
  rc = page_layout_read(s->lookup->reader, s->lookup->dir_fd,
                        s->process->resident_pages, &watcher, &s->layout);
  if (rc == 0)
    rc = s->error;
  if (rc == 0)
    rc = mapping_table_finish_maps(table);
  if (rc != 0)
    return rc;
  s->sample->tallies =
      calloc(table->n ? table->n : 1, sizeof(*s->sample->tallies));
  return s->sample->tallies ? 0 : -ENOMEM;
}

/* --- the drawing --- */

static int look_up(struct sampling *s, struct page_walk *walk,
                   uint64_t number) {
  struct mapping_tally *t;
  struct page_finding found;
  uint64_t page;
  int rc;

  if (!page_walk_to(walk, number, &page))
    return 0;
  while (s->at + 1 < s->n && s->segments[s->at + 1].first <= page)
    s->at++;
  t = &s->sample->tallies[s->segments[s->at].mapping];
  t->is_shmem |= walk->run.is_shmem;
  rc = page_lookup_find(s->lookup, page, &found);
  if (rc == 0 && found.is_resident)
    page_tally_add(&t->kinds[found.kind], &found);
  return rc;
}

/* The number of lookups that find as many present pages as wanted. */
static uint64_t count_lookups(const struct sampling *s, uint64_t pages) {
  uint64_t wanted = s->request->pages_wanted;
  double lookups = (double)wanted * (double)pages /
                   (double)max(s->process->resident_pages, 1);

  if (lookups > (double)wanted * PAGE_LOOKUPS_MOST)
    return min(wanted * PAGE_LOOKUPS_MOST, pages);
  return min(max((uint64_t)lookups, wanted), pages);
}

static int draw(struct sampling *s) {
  struct page_walk walk = {.layout = s->layout};
  uint64_t pages = page_layout_pages(s->layout, PAGES_ALL);
  uint64_t n = count_lookups(s, pages);
  int rc = 0;

  for (uint64_t i = 0; rc == 0 && i < n; i++)
    rc = look_up(s, &walk, page_lookup_draw(s->lookup, pages, n, i));
  return rc;
}

/* --- all of it --- */

static int sample_through(void *ctx, struct page_lookup *l) {
  struct sampling *s = ctx;
  int rc;

  s->lookup = l;
  rc = read_mappings(s);
  if (rc != 0)
    return rc;
  procfs_announce(l->reader->procfs, "pagemap");
  for (int i = 0; i < REFINE_TIMES; i++)
    page_layout_refine(s->layout, l->reader, l->pagemap);
  rc = draw(s);
  s->sample->has_mapcounts = l->has_mapcounts;
  return rc != 0 ? rc : page_lookup_read_statm(l, &s->sample->statm);
}

int mapping_sample_read(struct page_reader *r, const struct proc_ref *p,
                        const struct page_request *request,
                        struct mapping_sample *ret) {
  struct sampling s = {.process = p, .request = request, .sample = ret};
  int rc;

  *ret = (struct mapping_sample){0};
  rc = page_lookup_run(r, p, request->seed, sample_through, &s);
  free(s.segments);
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
  *s = (struct mapping_sample){0};
}
