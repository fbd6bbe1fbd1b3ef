/* SPDX-License-Identifier: MIT */
#include "sample/page_layout.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/array.h"
#include "proc/mountinfo.h"

/* A piece of maps takes as long as a few pages. */
#define READS_OF_PIECE 4

/* Runs of a layout, 24 bytes each: twice as many as vm.max_map_count allows
 * by default. */
#define RUNS_MOST 131072

/* From this ratio of mapped to resident pages on, lookups of absent pages cost
 * more than a search for the present ones. */
#define SPARSE 3

/* One call of PAGEMAP_SCAN holds the mmap lock for this much at most: 0.2 ms if
 * all of it is present. */
#define SCAN_BYTES (UINT64_C(64) << 20)
/* Regions that one call may find. */
#define REGIONS 256
#define REFINE_NS 2000000

struct run_list {
  struct page_run *runs;
  size_t n, cap;
};

struct page_layout {
  atomic_uint holders;
  struct run_list runs;
  struct shmem_mappings shmem;
};

/* Where the last run ends; 0 without any. */
static uint64_t end_of(const struct run_list *l) {
  return l->n > 0 ? l->runs[l->n - 1].end : 0;
}

/* Adds a run; adjacent runs of one mapping and sort become one. */
static int add_run(struct run_list *l, const struct page_run *run) {
  struct page_run *runs;

  if (run->first == end_of(l) && l->n > 0 &&
      run->mapping == l->runs[l->n - 1].mapping &&
      run->is_shmem == l->runs[l->n - 1].is_shmem) {
    l->runs[l->n - 1].end = run->end;
    return 0;
  }
  runs = array_room(l->runs, l->n, &l->cap, sizeof(*runs));
  if (!runs)
    return -ENOMEM;
  l->runs = runs;
  runs[l->n++] = *run;
  return 0;
}

/* --- making, sharing and dropping --- */

struct page_layout *page_layout_share(struct page_layout *l) {
  if (l)
    atomic_fetch_add(&l->holders, 1);
  return l;
}

const struct shmem_mappings *page_layout_shmem(const struct page_layout *l) {
  return &l->shmem;
}

void page_layout_drop(struct page_layout *l) {
  if (!l || atomic_fetch_sub(&l->holders, 1) != 1)
    return;
  free(l->runs.runs);
  free(l);
}

/* --- from maps --- */

struct maps_feed {
  struct page_reader *reader;
  struct page_layout *layout;
  struct mapping_table *table; /* or NULL */
  struct hugetlb_devices hugetlb;
  uint32_t pid;
  int error;
};

static bool starts_with(const struct span *name, const char *with) {
  size_t len = strlen(with);

  return name->len >= len && memcmp(name->text, with, len) == 0;
}

static bool has_shmem_name(const struct span *name) {
  return starts_with(name, "/dev/shm/") || starts_with(name, "/dev/zero") ||
         starts_with(name, "/SYSV") || starts_with(name, "/memfd:") ||
         starts_with(name, "[anon_shmem:");
}

/* Pages that were written to in a private mapping of shmem are anonymous. */
static bool is_shmem(const struct rollup_line *line) {
  const struct span *permissions = &line->permissions;

  return permissions->len > 3 && permissions->text[3] == 's' &&
         has_shmem_name(&line->name);
}

/* Reading it takes no lock of the process. */
static size_t feed_mounts(void *ctx, const char *text, size_t len) {
  struct maps_feed *f = ctx;

  page_reader_count(f->reader, 0);
  return hugetlb_devices_feed(&f->hugetlb, text, len);
}

/*
 * True if the file is of a hugetlbfs: one that is mounted, or the kernel's own.
 * The type of a file system is read for the kernel's own mounts only: it needs
 * CAP_SYS_ADMIN, and could hang if the server of a file system is dead.
 */
static bool is_hugetlb(struct maps_feed *f, const struct rollup_line *line) {
  char path[64];
  uint64_t type = 0;

  if (starts_with(&line->name, "/anon_hugepage") ||
      hugetlb_devices_has(&f->hugetlb, line->device))
    return true;
  if (!starts_with(&line->name, "/memfd:") &&
      !starts_with(&line->name, "/SYSV"))
    return false;
  snprintf(path, sizeof(path), "map_files/%" PRIx64 "-%" PRIx64, line->start,
           line->end);
  return procfs_file_system(f->reader->procfs, f->pid, path, &type) == 0 &&
         type == HUGETLBFS_MAGIC;
}

/*
 * Memory of devices is present, but has no page that a process is charged for.
 * Under /dev only shm and zero have such pages, and hugepages has those of
 * hugetlbfs. (The kernel's own [vvar] and [vdso] are a few pages.)
 */
static bool is_left_out(struct maps_feed *f, const struct rollup_line *line) {
  const struct span *name = &line->name;

  if (line->permissions.len < 3 ||
      memcmp(line->permissions.text, "---", 3) == 0)
    return true;
  if (starts_with(name, "/dev/") && !has_shmem_name(name))
    return true;
  return is_hugetlb(f, line);
}

static int add_mapping(struct maps_feed *f, const struct rollup_line *line) {
  struct run_list *mapped = &f->layout->runs;
  struct page_run run = {.first = line->start / f->reader->page_size,
                         .end = line->end / f->reader->page_size,
                         .is_shmem = is_shmem(line)};

  if (line->kind != ROLLUP_LINE_MAPPING || run.first < end_of(mapped))
    return -EBADMSG;
  if (f->table)
    run.mapping = (uint32_t)mapping_table_add_line(f->table, line);
  if (run.first == run.end || is_left_out(f, line))
    return 0;
  shmem_mappings_add(&f->layout->shmem, line);
  return mapped->n < RUNS_MOST ? add_run(mapped, &run) : -EFBIG;
}

static size_t feed_maps(void *ctx, const char *text, size_t len) {
  struct maps_feed *f = ctx;
  size_t used = whole_lines(text, len);
  struct cursor s = cursor_begin(text, used);
  struct rollup_line line = {0};

  page_reader_count(f->reader, READS_OF_PIECE);
  while (f->error == 0 && !cursor_is_done(&s))
    f->error = rollup_line_next(&s, &line) ? add_mapping(f, &line) : -EBADMSG;
  return f->error ? PROCFS_ENOUGH : used;
}

/* --- refining --- */

struct refining {
  struct page_reader *reader;
  int pagemap;
  bool is_over;
  struct run_list present;
};

/* Present regions at the beginning of a run, up to `end`; addresses in bytes.
 */
struct finding {
  struct pagemap_region regions[REGIONS];
  size_t n;
  uint64_t end;
};

static int find_by_window(const struct refining *f, const struct page_run *run,
                          struct finding *ret) {
  uint64_t entries[PAGE_WINDOW], page_size = f->reader->page_size;
  uint64_t wanted = min(run->end - run->first, PAGE_WINDOW);
  size_t n = 0;
  int rc = pagemap_read(f->pagemap, run->first, entries, (size_t)wanted, &n);

  if (rc != 0)
    return rc;
  ret->n = 0;
  for (size_t i = 0; i < n; i++) {
    if (!pagemap_is_present(entries[i]))
      continue;
    if (i == 0 || !pagemap_is_present(entries[i - 1]))
      ret->regions[ret->n++].start = (run->first + i) * page_size;
    ret->regions[ret->n - 1].end = (run->first + i + 1) * page_size;
  }
  ret->end = (run->first + wanted) * page_size;
  return 0;
}

static int find_present(const struct refining *f, const struct page_run *run,
                        struct finding *ret) {
  uint64_t start = run->first * f->reader->page_size;
  uint64_t end = run->end * f->reader->page_size;
  int rc = pagemap_scan(f->pagemap, start, min(end, start + SCAN_BYTES),
                        PAGEMAP_PRESENT, PAGEMAP_ZERO, ret->regions, REGIONS,
                        &ret->n, &ret->end);

  return rc == 0 && ret->end > start ? 0 : find_by_window(f, run, ret);
}

/* Takes a piece off the beginning of a run. */
static int refine_piece(struct refining *f, struct page_run *run) {
  uint64_t page_size = f->reader->page_size, pages = 0;
  /* (Valgrind does not know what the ioctl writes.) */
  struct finding found = {.n = 0};
  int rc = find_present(f, run, &found);

  for (size_t i = 0; rc == 0 && i < found.n; i++) {
    struct page_run present = *run;

    present.first = found.regions[i].start / page_size;
    present.end = found.regions[i].end / page_size;
    pages += present.end - present.first;
    rc = add_run(&f->present, &present);
  }
  if (rc != 0)
    return rc;
  run->first = found.end / page_size;
  page_reader_count(f->reader, 1 + (unsigned)(pages / PRESENT_PER_READ));
  return 0;
}

/* Leaves only what is present, until the time has passed: the rest stays as
 * maps shows it. */
static int refine(struct page_layout *l, struct page_reader *r, int pagemap) {
  struct refining f = {.reader = r, .pagemap = pagemap};
  uint64_t begin = r->clock_ns();
  int rc = 0;

  procfs_announce(r->procfs, "pagemap");
  for (size_t i = 0; rc == 0 && i < l->runs.n; i++) {
    struct page_run run = l->runs.runs[i];

    while (rc == 0 && run.first < run.end && !f.is_over) {
      rc = refine_piece(&f, &run);
      f.is_over = r->clock_ns() - begin >= REFINE_NS;
    }
    if (rc == 0 && run.first < run.end)
      rc = add_run(&f.present, &run);
  }
  free(rc == 0 ? l->runs.runs : f.present.runs);
  if (rc == 0)
    l->runs = f.present;
  return rc;
}

/* --- all of it --- */

int page_layout_read(struct page_reader *r, uint32_t pid, int pagemap,
                     uint64_t resident_pages, struct mapping_table *table,
                     struct page_layout **ret) {
  struct page_layout *l = calloc(1, sizeof(*l));
  struct maps_feed f = {.reader = r, .layout = l, .table = table, .pid = pid};
  int rc;

  if (!l)
    return -ENOMEM;
  atomic_init(&l->holders, 1);
  procfs_read_pieces(r->procfs, pid, "mountinfo", feed_mounts, &f);
  rc = procfs_read_pieces(r->procfs, pid, "maps", feed_maps, &f);
  if (rc == 0)
    rc = f.error ? f.error : table ? table->error : 0;
  if (rc == 0 && resident_pages < page_layout_pages(l, PAGES_ALL) / SPARSE)
    rc = refine(l, r, pagemap);
  if (rc != 0) {
    page_layout_drop(l);
    return rc;
  }
  *ret = l;
  return 0;
}

/* --- drawing --- */

bool page_layout_next(const struct page_layout *l, enum page_sort sort,
                      size_t *at, struct page_run *ret) {
  while (*at < l->runs.n) {
    *ret = l->runs.runs[(*at)++];
    if (sort == PAGES_ALL || ret->is_shmem == (sort == PAGES_SHMEM))
      return true;
  }
  return false;
}

uint64_t page_layout_pages(const struct page_layout *l, enum page_sort sort) {
  struct page_run run;
  uint64_t pages = 0;

  for (size_t at = 0; page_layout_next(l, sort, &at, &run);)
    pages += run.end - run.first;
  return pages;
}

bool page_walk_to(struct page_walk *w, uint64_t number, uint64_t *ret_page) {
  while (number - w->before >= w->run.end - w->run.first) {
    w->before += w->run.end - w->run.first;
    if (!page_layout_next(w->layout, w->sort, &w->at, &w->run))
      return false;
  }
  *ret_page = w->run.first + (number - w->before);
  return true;
}
