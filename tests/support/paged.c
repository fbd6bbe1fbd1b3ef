/* SPDX-License-Identifier: MIT */
#include "paged.h"

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
