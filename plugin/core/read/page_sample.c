#include "read/page_sample.h"

#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "proc/cheap_files.h"
#include "proc/pagemap.h"

/* Pages whose mapping is asked about, and whose windows are walked to take the
 * time. */
#define ASKED_MOST 64
#define PROBES 8
#define WINDOW 512 /* pages */

/* By default the kernel lets pauses of 50 us last for twice as long. */
#define TIMER_SLACK_NS 1000

struct sampling {
  struct page_reader *reader;
  struct page_layout *layout;
  struct page_sample *sample;
  int pagemap;
  int pagecount; /* negative if it cannot be read */
  uint64_t random;
  uint32_t found;
  /* Present pages for the probe, each of those found with the same chance. */
  uint64_t kept[ASKED_MOST];
  uint32_t n_kept;
};

/* --- random numbers --- */

/* splitmix64 */
static uint64_t next_random(struct sampling *s) {
  uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* In [0, 1). */
static double next_fraction(struct sampling *s) {
  return (double)(next_random(s) >> 11) * 0x1p-53;
}

/* --- one page --- */

static void keep_for_probe(struct sampling *s, uint64_t page) {
  uint64_t place = s->n_kept;

  if (s->n_kept < ASKED_MOST)
    s->n_kept++;
  else
    place = next_random(s) % s->found;
  if (place < ASKED_MOST)
    s->kept[place] = page;
}

/* Frames that are no memory of the machine have no number. */
static int count_mappings(struct sampling *s, uint64_t entry, uint64_t *ret) {
  uint64_t mappings = 0;
  size_t n = 0;
  int rc = pagemap_read(s->pagecount, pagemap_frame(entry), &mappings, 1, &n);

  if (rc == 0)
    *ret = n > 0 ? mappings : 0;
  return rc;
}

/* True if all of the page is in a region of this category. */
static bool is_in(struct sampling *s, uint64_t page, unsigned category) {
  uint64_t start = page * s->reader->page_size, end;
  struct pagemap_region region;
  size_t n = 0;

  return pagemap_scan(s->pagemap, start, start + s->reader->page_size, category,
                      0, &region, 1, &n, &end) == 0 &&
         n > 0;
}

/* An unknown number of mappings is 0. */
static void tally(struct sampling *s, uint64_t entry, bool is_shmem,
                  uint64_t mappings) {
  bool is_file = pagemap_is_file(entry);
  struct page_tally *t = &s->sample->kinds[is_file ? PAGE_FILE : PAGE_ANON];
  double price = mappings > 0 ? 1 / (double)mappings : 0;

  t->pages++;
  t->exclusive += mappings == 1;
  t->price += price;
  t->price_squared += price * price;
  if (is_file && is_shmem) {
    s->sample->shmem_pages++;
    s->sample->shmem_price += price;
  }
}

/*
 * A page without mappings is in no resident size: the zero page and memory of
 * devices are mapped, but not counted. (Or it was unmapped just now.)
 */
static int add_present(struct sampling *s, uint64_t page, uint64_t entry,
                       bool is_shmem) {
  uint64_t mappings = 1;

  if (s->found == 0 && pagemap_frame(entry) == 0)
    s->sample->has_mapcounts = false;
  if (!pagemap_is_exclusive(entry) && s->sample->has_mapcounts) {
    int rc = count_mappings(s, entry, &mappings);

    if (rc != 0 || mappings == 0)
      return rc;
  } else if (!pagemap_is_exclusive(entry)) {
    mappings = 0;
    if (is_in(s, page, PAGEMAP_ZERO))
      return 0;
  }
  s->found++;
  tally(s, entry, is_shmem, mappings);
  keep_for_probe(s, page);
  return 0;
}

static int look_up(struct sampling *s, uint64_t i) {
  bool is_shmem = false;
  uint64_t page = page_layout_at(s->layout, i, &is_shmem);
  uint64_t entry = 0;
  size_t n = 0;
  int rc = pagemap_read(s->pagemap, page, &entry, 1, &n);

  if (rc != 0)
    return rc;
  page_reader_count(s->reader);
  s->sample->looked_at++;
  return n > 0 && pagemap_is_present(entry)
             ? add_present(s, page, entry, is_shmem)
             : 0;
}

/* --- the drawing --- */

/*
 * One page at random out of each of n equal parts. A part need not begin at a
 * page: so every page has the same chance, however small the parts are.
 */
static int draw(struct sampling *s, uint64_t pages, uint64_t n) {
  double part = (double)pages / (double)n;

  for (uint64_t i = 0; i < n; i++) {
    uint64_t at = (uint64_t)(((double)i + next_fraction(s)) * part);
    int rc = look_up(s, at < pages ? at : pages - 1);

    if (rc != 0)
      return rc;
  }
  return 0;
}

/* How many more addresses to look up, by what was found until now. */
static uint64_t next_round(const struct sampling *s, uint32_t wanted) {
  uint64_t looked_at = s->sample->looked_at;
  uint64_t room = (uint64_t)wanted * PAGE_LOOKUPS_MOST - looked_at;
  uint64_t n = wanted;

  if (s->found >= wanted)
    return 0;
  if (looked_at > 0)
    n = s->found > 0 ? (wanted - s->found) * looked_at / s->found + 1 : room;
  return n < room ? n : room;
}

/*
 * Each round goes through the whole layout: a round that was broken off would
 * favour low addresses. A layout of fewer pages than are wanted is looked up
 * whole, once.
 */
static int draw_rounds(struct sampling *s, uint32_t wanted) {
  uint64_t pages = page_layout_pages(s->layout);
  uint64_t n;

  if (pages <= wanted)
    return draw(s, pages, pages);
  while ((n = next_round(s, wanted)) > 0) {
    int rc = draw(s, pages, n);

    if (rc != 0)
      return rc;
  }
  return 0;
}

/* --- the probe --- */

static void ask_about_windows(struct sampling *s) {
  struct pagemap_region region;
  uint64_t end;
  size_t n;

  if (pagemap_scan(s->pagemap, 0, s->reader->page_size, PAGEMAP_HUGE, 0,
                   &region, 1, &n, &end) != 0)
    return;
  for (uint32_t i = 0; i < s->n_kept; i++) {
    s->sample->huge_windows += is_in(s, s->kept[i], PAGEMAP_HUGE);
    page_reader_count(s->reader);
  }
  s->sample->asked_windows = s->n_kept;
}

static uint32_t count_present(const uint64_t *entries, size_t n) {
  uint32_t present = 0;

  for (size_t i = 0; i < n; i++)
    present += pagemap_is_present(entries[i]);
  return present;
}

/*
 * The windows are those of pages that were drawn: a window is met the more
 * often the more pages it has. With that, the mean of the time by page is right
 * for a walk of all pages; the ratio of the sums would not be.
 */
static void walk_windows(struct sampling *s) {
  uint64_t entries[WINDOW];
  uint32_t probes = 0, pages = 0;
  double ns_by_page = 0;

  while (probes < PROBES && probes < s->n_kept) {
    uint64_t begin = s->reader->clock_ns(), took_ns;
    size_t n = 0;
    int rc = pagemap_read(s->pagemap, s->kept[probes] / WINDOW * WINDOW,
                          entries, WINDOW, &n);
    uint32_t present = rc == 0 ? count_present(entries, n) : 0;

    took_ns = s->reader->clock_ns() - begin;
    page_reader_count(s->reader);
    if (present == 0)
      break;
    ns_by_page += (double)took_ns / present;
    pages += present;
    probes++;
  }
  s->sample->probe_pages = pages;
  s->sample->probe_ns =
      probes > 0 ? (uint64_t)(ns_by_page / probes * pages) : 0;
}

/* --- all of it --- */

static int get_layout(struct page_reader *r, int dir_fd,
                      const struct proc_ref *p, struct page_layout *given,
                      struct page_sample *ret) {
  uint64_t begin = r->clock_ns();
  int rc;

  ret->layout = page_layout_share(given);
  if (given)
    return 0;
  rc = page_layout_read(r, dir_fd, p->resident_pages, &ret->layout);
  ret->layout_ns = r->clock_ns() - begin;
  return rc;
}

/* Afterwards: the process may have ended, or given up its memory by an exec. */
static int read_statm(struct page_reader *r, int dir_fd,
                      struct statm_sample *ret) {
  int rc = statm_read(r->procfs, dir_fd, ret);

  return rc == 0 && !statm_has_mm(ret) ? PROCFS_GONE : rc;
}

/* A missing pagemap looks like a process that has ended. */
static int open_pagemap(struct page_reader *r, int dir_fd, int *ret_fd) {
  struct statm_sample statm;
  int rc = procfs_open_file(r->procfs, dir_fd, "pagemap", ret_fd);

  if (rc != PROCFS_GONE)
    return rc;
  rc = read_statm(r, dir_fd, &statm);
  return rc == 0 ? -ENOSYS : rc;
}

/* Negative without the right to open it, or to read it. */
static int open_pagecount(struct page_reader *r) {
  uint64_t number;
  size_t n;
  int fd;

  if (procfs_open_file(r->procfs, PROCFS_ROOT, "kpagecount", &fd) != 0)
    return -1;
  if (pagemap_read(fd, 0, &number, 1, &n) == 0)
    return fd;
  close(fd);
  return -1;
}

static int sample_pages(struct page_reader *r, int pagemap,
                        const struct page_request *request,
                        struct page_sample *ret) {
  struct sampling s = {.reader = r,
                       .layout = ret->layout,
                       .sample = ret,
                       .pagemap = pagemap,
                       .pagecount = open_pagecount(r),
                       .random = request->seed};
  int rc;

  procfs_announce(r->procfs, "pagemap");
  ret->has_mapcounts = s.pagecount >= 0;
  page_layout_refine(ret->layout, r, pagemap);
  rc = draw_rounds(&s, request->pages_wanted);
  if (rc == 0 && request->wants_probe) {
    ask_about_windows(&s);
    walk_windows(&s);
  }
  if (s.pagecount >= 0)
    close(s.pagecount);
  return rc;
}

static int sample_through(struct page_reader *r, int dir_fd,
                          const struct proc_ref *p,
                          const struct page_request *request,
                          struct page_sample *ret) {
  int pagemap = -1;
  int rc = open_pagemap(r, dir_fd, &pagemap);

  if (rc != 0)
    return rc;
  rc = get_layout(r, dir_fd, p, request->layout, ret);
  if (rc == 0)
    rc = sample_pages(r, pagemap, request, ret);
  close(pagemap);
  return rc != 0 ? rc : read_statm(r, dir_fd, &ret->statm);
}

int page_sample_read(struct page_reader *r, const struct proc_ref *p,
                     const struct page_request *request,
                     struct page_sample *ret) {
  int fd = -1;
  int rc = inspect_open_memory(r->procfs, p, &fd);

  *ret = (struct page_sample){0};
  if (rc != 0)
    return rc;
  prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
  rc = sample_through(r, fd, p, request, ret);
  close(fd);
  if (rc == 0)
    return 0;
  page_layout_drop(ret->layout);
  ret->layout = NULL;
  return rc == PROCFS_NO_MM ? PROCFS_GONE : rc;
}
