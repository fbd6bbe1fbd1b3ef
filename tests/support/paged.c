/* SPDX-License-Identifier: MIT */
#include "paged.h"

#include <errno.h>
#include <time.h>

#include "test.h"

/* The one that is read. */
static struct paged *the_paged;

static uint64_t clock_ns(void) {
  return the_paged->now_ns += the_paged->step_ns;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left) {
  (void)left;
  assert_int_equal(time->tv_sec, 0);
  assert_int_equal(time->tv_nsec, 50000);
  the_paged->pauses++;
  the_paged->file = procfs_announced(the_paged->procfs);
  return 0;
}

WRAPPED(int, pagemap_read, int fd, uint64_t first, uint64_t *entries, size_t n,
        size_t *ret_n);
int __wrap_pagemap_read(int fd, uint64_t first, uint64_t *entries, size_t n,
                        size_t *ret_n) {
  if (the_paged->fails_at > 0 && --the_paged->fails_at == 0)
    return -EIO;
  return __real_pagemap_read(fd, first, entries, n, ret_n);
}

static bool is_within(uint64_t page, uint64_t first, uint64_t end) {
  return page >= FIRST + first && page < FIRST + end;
}

static unsigned categories_of(int fd, uint64_t page) {
  const struct paged *p = the_paged;
  uint64_t entry = 0;
  size_t n = 0;

  assert_int_equal(__real_pagemap_read(fd, page, &entry, 1, &n), 0);
  return (n == 1 && pagemap_is_present(entry) ? PAGEMAP_PRESENT : 0) |
         (is_within(page, p->huge, p->huge_end) ? PAGEMAP_HUGE : 0) |
         (is_within(page, p->zero, p->zero_end) ? PAGEMAP_ZERO : 0);
}

/* As the kernel does, which stops before a region that has no room. */
WRAPPED(int, pagemap_scan, int fd, uint64_t start, uint64_t end, unsigned with,
        unsigned without, struct pagemap_region *regions, size_t max,
        size_t *ret_n, uint64_t *ret_end);
int __wrap_pagemap_scan(int fd, uint64_t start, uint64_t end, unsigned with,
                        unsigned without, struct pagemap_region *regions,
                        size_t max, size_t *ret_n, uint64_t *ret_end) {
  size_t n = 0;
  uint64_t at = start;

  if (!the_paged->can_scan)
    return __real_pagemap_scan(fd, start, end, with, without, regions, max,
                               ret_n, ret_end);
  the_paged->scans++;
  /* The mmap lock is held for all of it. */
  assert_in_range(end - start, PAGE, 64 * MIB);
  for (; at < end; at += PAGE) {
    unsigned has = categories_of(fd, at / PAGE);

    if ((has & with) != with || (has & without) != 0)
      continue;
    if (n > 0 && regions[n - 1].end == at) {
      regions[n - 1].end = at + PAGE;
      continue;
    }
    if (n == max)
      break;
    regions[n++] = (struct pagemap_region){at, at + PAGE, with};
  }
  *ret_n = n;
  *ret_end = at;
  return 0;
}

void paged_resize(struct paged *p, unsigned pages) {
  struct fake fake = fake_process(10, "giant");

  fake.private_kb = pages * 4;
  proctree_put(&p->tree, &fake);
  p->ref.resident_pages = pages;
}

void paged_make(struct paged *p, unsigned pages) {
  *p = (struct paged){.ref = {.pid = 10, .starttime_ticks = 110}, .step_ns = 1};
  the_paged = p;
  proctree_make(&p->tree);
  paged_resize(p, pages);
  assert_int_equal(procfs_new(p->tree.root, &p->procfs), 0);
  p->reader = (struct page_reader){.procfs = p->procfs,
                                   .page_size = PAGE,
                                   .clock_ns = clock_ns,
                                   .heartbeat = &p->heartbeat};
}

void paged_remove(struct paged *p) {
  procfs_free(p->procfs);
  proctree_remove(&p->tree);
}

void paged_put(const struct paged *p, uint64_t at, size_t n, uint64_t entry,
               bool has_frames) {
  fake_pages_put(&p->tree, 10, FIRST + at, n, entry,
                 has_frames ? FRAME + at : 0);
}
