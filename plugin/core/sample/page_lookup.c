/* SPDX-License-Identifier: MIT */
#include "sample/page_lookup.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "proc/cheap_files.h"
#include "proc/meminfo.h"

/* By default the kernel lets pauses of 50 us last for twice as long. */
#define TIMER_SLACK_NS 1000

/*
 * Each page is looked up with a read of its own, so that the mmap lock is held
 * for 1 us at a time. A process that waits for the lock gets it in the next
 * pause: without pauses, readers that follow each other keep it waiting for
 * 4 ms. More pauses did not shorten that in measurements, but each takes 5 to
 * 25 us of CPU time, as much as a dozen reads.
 */
#define READS_PER_PAUSE 64
#define PAUSE_NS 50000

void page_reader_count(struct page_reader *r, unsigned reads) {
  static const struct timespec pause = {.tv_nsec = PAUSE_NS};

  atomic_fetch_add_explicit(r->heartbeat, 1, memory_order_relaxed);
  r->reads += reads;
  if (r->reads < READS_PER_PAUSE)
    return;
  r->reads = 0;
  nanosleep(&pause, NULL);
}

/* --- files --- */

int page_lookup_read_statm(const struct page_lookup *l,
                           struct statm_sample *ret) {
  int rc = statm_read_of(l->reader->procfs, l->pid, NULL, ret);

  return rc == 0 && !statm_has_mm(ret) ? PROCFS_GONE : rc;
}

/* If maps can be opened, pagemap itself is refused, not the process. */
static int name_refusal(const struct page_lookup *l) {
  int fd, rc = procfs_open_file(l->reader->procfs, l->pid, "maps", &fd);

  if (rc == 0)
    close(fd);
  return rc == 0 ? -EPERM : rc;
}

/* A missing pagemap looks like a process that has ended. */
static int open_pagemap(struct page_lookup *l) {
  struct statm_sample statm;
  int rc = procfs_open_file(l->reader->procfs, l->pid, "pagemap", &l->pagemap);

  if (rc == PROCFS_DENIED)
    return name_refusal(l);
  if (rc != PROCFS_GONE)
    return rc;
  rc = page_lookup_read_statm(l, &statm);
  return rc == 0 ? -ENOSYS : rc;
}

/* Negative without the right to open it, or to read it; and if it is empty, as
 * where a container hides it. */
static int open_pagecount(struct page_reader *r) {
  uint64_t number;
  size_t n;
  int fd;

  if (procfs_open_file(r->procfs, 0, "kpagecount", &fd) != 0)
    return -1;
  if (pagemap_read(fd, 0, &number, 1, &n) == 0 && n == 1)
    return fd;
  close(fd);
  return -1;
}

int page_lookup_open(struct page_reader *r, const struct proc_ref *p,
                     uint64_t seed, struct page_lookup *ret) {
  struct page_lookup l = {.reader = r};
  int rc = proc_ref_find_memory(p, r->procfs, &l.pid);

  if (rc == 0)
    rc = open_pagemap(&l);
  if (rc != 0)
    return rc;
  prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
  l.pagecount = open_pagecount(r);
  l.has_mapcounts = l.pagecount >= 0;
  l.random = seed;
  *ret = l;
  return 0;
}

void page_lookup_close(const struct page_lookup *l) {
  if (l->pagecount >= 0)
    close(l->pagecount);
  close(l->pagemap);
}

/* --- random numbers --- */

/* splitmix64 of Sebastiano Vigna (prng.di.unimi.it). Its sequences of seeds
 * that follow each other have nothing in common. */
static uint64_t draw_bits(uint64_t *state) {
  uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* As many bits as a double holds exactly. */
double page_lookup_random(struct page_lookup *l) {
  return (double)(draw_bits(&l->random) >> 11) * 0x1p-53;
}

uint64_t page_lookup_draw(struct page_lookup *l, uint64_t pages, uint64_t n,
                          uint64_t i) {
  double part = (double)pages / (double)n;
  uint64_t at = (uint64_t)(((double)i + page_lookup_random(l)) * part);

  return at < pages ? at : pages - 1;
}

/* --- one page --- */

static int ask_category(const struct page_lookup *l, uint64_t page,
                        unsigned category, bool *ret) {
  uint64_t start = page * l->reader->page_size, end;
  struct pagemap_region region;
  size_t n = 0;
  int rc = pagemap_scan(l->pagemap, start, start + l->reader->page_size,
                        category, 0, &region, 1, &n, &end);

  *ret = rc == 0 && n > 0;
  return rc;
}

bool page_lookup_is_in(const struct page_lookup *l, uint64_t page,
                       unsigned category) {
  bool is_in;

  ask_category(l, page, category, &is_in);
  return is_in;
}

/* kpagecount has no number for frames that are not memory of the machine. */
static int count_mappings(const struct page_lookup *l, uint64_t entry, size_t n,
                          uint64_t *ret) {
  size_t got = 0;
  int rc = pagemap_read(l->pagecount, pagemap_frame(entry), ret, n, &got);

  for (size_t i = got; rc == 0 && i < n; i++)
    ret[i] = 0;
  return rc;
}

/* Whether the kernel counts as the process's own what is mapped so often. */
static bool is_exclusive(const struct page_lookup *l, uint64_t entry,
                         uint64_t mappings) {
  return l->reader->averages_mapcounts ? pagemap_is_exclusive(entry)
                                       : mappings == 1;
}

static bool has_huge_pages(struct procfs *procfs) {
  struct meminfo_sample m;
  struct span text;

  return procfs_read(procfs, 0, "meminfo", &text) != 0 ||
         meminfo_parse(text.text, text.len, &m) != 0 ||
         m.anon_huge_pages_bytes + m.shmem_pmd_mapped_bytes +
                 m.file_pmd_mapped_bytes >
             0;
}

/* True if the page may be part of a huge page: before 6.7, if the host has any.
 */
static bool may_be_huge(struct page_lookup *l, uint64_t page) {
  bool is_huge;

  if (ask_category(l, page, PAGEMAP_HUGE, &is_huge) == 0)
    return is_huge;
  if (!l->is_host_asked)
    l->host_has_huge_pages = has_huge_pages(l->reader->procfs);
  l->is_host_asked = true;
  return l->host_has_huge_pages;
}

/*
 * A page without mappings is in no resident size: the zero page and memory of
 * devices are mapped, but not counted. (Or it was unmapped just now.)
 */
static int look_at_present(struct page_lookup *l, uint64_t page, uint64_t entry,
                           struct page_finding *ret) {
  uint64_t mappings = pagemap_is_exclusive(entry);
  bool is_unsure = false;

  if (pagemap_frame(entry) == 0)
    l->has_mapcounts = false;
  if (l->has_mapcounts) {
    int rc = count_mappings(l, entry, 1, &mappings);

    if (rc != 0 || mappings == 0)
      return rc;
  } else {
    if (page_lookup_is_in(l, page, PAGEMAP_ZERO))
      return 0;
    is_unsure = may_be_huge(l, page);
  }
  *ret = (struct page_finding){.is_resident = true,
                               .is_exclusive = is_exclusive(l, entry, mappings),
                               .is_unsure = is_unsure,
                               .kind = pagemap_is_file(entry) ? PAGE_FILE
                                                              : PAGE_ANON,
                               .mappings = mappings};
  return 0;
}

/* Entries of whole huge pages have successive frames; so may others, and then
 * nothing is corrected. */
static bool may_be_of_huge_page(const uint64_t *entries) {
  for (size_t i = 0; i < PAGE_WINDOW; i++)
    if (!pagemap_is_present(entries[i]) ||
        (pagemap_frame(entries[0]) > 0 &&
         pagemap_frame(entries[i]) != pagemap_frame(entries[0]) + i))
      return false;
  return true;
}

static void set_exclusive(const struct page_lookup *l, uint64_t *entry,
                          uint64_t mappings) {
  if (mappings == 0)
    *entry = 0;
  else if (!l->reader->averages_mapcounts)
    *entry =
        (*entry & ~PAGEMAP_EXCLUSIVE) | (mappings == 1 ? PAGEMAP_EXCLUSIVE : 0);
}

int page_lookup_correct(struct page_lookup *l, uint64_t first,
                        uint64_t *entries, uint32_t *ret_unsure) {
  uint64_t mappings[PAGE_WINDOW];
  int rc = 0;

  *ret_unsure = 0;
  if (!may_be_of_huge_page(entries))
    return 0;
  if (!l->has_mapcounts || pagemap_frame(entries[0]) == 0) {
    *ret_unsure = may_be_huge(l, first) ? PAGE_WINDOW : 0;
    return 0;
  }
  rc = count_mappings(l, entries[0], PAGE_WINDOW, mappings);
  for (size_t i = 0; rc == 0 && i < PAGE_WINDOW; i++)
    set_exclusive(l, &entries[i], mappings[i]);
  return rc;
}

int page_lookup_find(struct page_lookup *l, uint64_t page,
                     struct page_finding *ret) {
  uint64_t entry = 0;
  size_t n = 0;
  int rc = pagemap_read(l->pagemap, page, &entry, 1, &n);

  *ret = (struct page_finding){.is_resident = false};
  if (rc != 0)
    return rc;
  page_reader_count(l->reader, 1);
  return n > 0 && pagemap_is_present(entry)
             ? look_at_present(l, page, entry, ret)
             : 0;
}

void page_tally_add(struct page_tally *t, const struct page_finding *found) {
  double share = found->mappings > 0 ? 1 / (double)found->mappings : 0;

  t->pages++;
  t->exclusive += found->is_exclusive;
  t->unsure += found->is_unsure;
  t->share += share;
  t->share_squared += share * share;
}
