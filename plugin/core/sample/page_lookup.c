#include "sample/page_lookup.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "proc/cheap_files.h"

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

/* --- pagemap --- */

int pagemap_read(int fd, uint64_t first, uint64_t *entries, size_t n,
                 size_t *ret_n) {
  ssize_t got = pread(fd, entries, n * sizeof(*entries),
                      (off_t)(first * sizeof(*entries)));

  if (got < 0)
    return procfs_outcome_of(errno);
  *ret_n = (size_t)got / sizeof(*entries);
  return 0;
}

/* struct pm_scan_arg of <linux/fs.h>, which older headers lack. */
struct scan_arg {
  uint64_t size;
  uint64_t flags;
  uint64_t start, end;
  uint64_t walk_end; /* set by the kernel */
  uint64_t regions, max_regions;
  uint64_t max_pages;
  /* A page is found if, with the inverted categories flipped, it has all of
   * `mask` and any of `any_mask`. */
  uint64_t inverted, mask, any_mask;
  uint64_t return_mask;
};

#define SCAN _IOWR('f', 16, struct scan_arg)

int pagemap_scan(int fd, uint64_t start, uint64_t end, unsigned with,
                 unsigned without, struct pagemap_region *regions, size_t max,
                 size_t *ret_n, uint64_t *ret_end) {
  struct scan_arg arg = {.size = sizeof(arg),
                         .start = start,
                         .end = end,
                         .regions = (uintptr_t)regions,
                         .max_regions = max,
                         .inverted = without,
                         .mask = with | without,
                         .return_mask = with};
  int n = ioctl(fd, SCAN, &arg);

  /* An emulator says ENOSYS of an ioctl that it does not know. */
  if (n < 0)
    return errno == ENOSYS ? -ENOTTY : -errno;
  *ret_n = (size_t)n;
  *ret_end = arg.walk_end;
  return 0;
}

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

/* Negative without the right to open it, or to read it. */
static int open_pagecount(struct page_reader *r) {
  uint64_t number;
  size_t n;
  int fd;

  if (procfs_open_file(r->procfs, 0, "kpagecount", &fd) != 0)
    return -1;
  if (pagemap_read(fd, 0, &number, 1, &n) == 0)
    return fd;
  close(fd);
  return -1;
}

int page_lookup_open(struct page_reader *r, const struct proc_ref *p,
                     uint64_t seed, struct page_lookup *ret) {
  struct page_lookup l = {.reader = r};
  int rc = inspect_find_memory(r->procfs, p, &l.pid);

  if (rc == 0)
    rc = open_pagemap(&l);
  if (rc != 0)
    return rc;
  prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
  l.pagecount = open_pagecount(r);
  l.has_mapcounts = l.pagecount >= 0;
  /* Seeds that follow each other begin apart. */
  srand48_r((long)(seed * UINT64_C(0x9e3779b97f4a7c15) >> 33), &l.random);
  *ret = l;
  return 0;
}

void page_lookup_close(const struct page_lookup *l) {
  if (l->pagecount >= 0)
    close(l->pagecount);
  close(l->pagemap);
}

/* --- random numbers --- */

double page_lookup_random(struct page_lookup *l) {
  double fraction;

  drand48_r(&l->random, &fraction);
  return fraction;
}

uint64_t page_lookup_draw(struct page_lookup *l, uint64_t pages, uint64_t n,
                          uint64_t i) {
  double part = (double)pages / (double)n;
  uint64_t at = (uint64_t)(((double)i + page_lookup_random(l)) * part);

  return at < pages ? at : pages - 1;
}

/* --- one page --- */

bool page_lookup_is_in(const struct page_lookup *l, uint64_t page,
                       unsigned category) {
  uint64_t start = page * l->reader->page_size, end;
  struct pagemap_region region;
  size_t n = 0;

  return pagemap_scan(l->pagemap, start, start + l->reader->page_size, category,
                      0, &region, 1, &n, &end) == 0 &&
         n > 0;
}

/* kpagecount has no number for frames that are not memory of the machine. */
static int count_mappings(const struct page_lookup *l, uint64_t entry,
                          uint64_t *ret) {
  uint64_t mappings = 0;
  size_t n = 0;
  int rc = pagemap_read(l->pagecount, pagemap_frame(entry), &mappings, 1, &n);

  if (rc == 0)
    *ret = n > 0 ? mappings : 0;
  return rc;
}

/*
 * A page without mappings is in no resident size: the zero page and memory of
 * devices are mapped, but not counted. (Or it was unmapped just now.)
 */
static int look_at_present(struct page_lookup *l, uint64_t page, uint64_t entry,
                           struct page_finding *ret) {
  uint64_t mappings = 1;

  if (pagemap_frame(entry) == 0)
    l->has_mapcounts = false;
  if (!pagemap_is_exclusive(entry) && l->has_mapcounts) {
    int rc = count_mappings(l, entry, &mappings);

    if (rc != 0 || mappings == 0)
      return rc;
  } else if (!pagemap_is_exclusive(entry)) {
    mappings = 0;
    if (page_lookup_is_in(l, page, PAGEMAP_ZERO))
      return 0;
  }
  *ret = (struct page_finding){.is_resident = true,
                               .kind = pagemap_is_file(entry) ? PAGE_FILE
                                                              : PAGE_ANON,
                               .mappings = mappings};
  return 0;
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
  double price = found->mappings > 0 ? 1 / (double)found->mappings : 0;

  t->pages++;
  t->exclusive += found->mappings == 1;
  t->price += price;
  t->price_squared += price * price;
}
