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

int paged_setup(void **state) {
  static struct paged f;

  paged_make(&f, PAGES_IN_ALL);
  fake_pages_map(&f.tree, 10, &(struct fake_range){START, END, 0, 0}, 1);
  fake_pages_count(&f.tree, FRAME, PAGES_IN_ALL, 1);
  *state = &f;
  return 0;
}

int paged_teardown(void **state) {
  paged_remove(*state);
  return 0;
}

struct page_sample sample_with(struct paged *f,
                               const struct page_request *request) {
  struct page_sample s;

  assert_int_equal(page_sample_read(&f->reader, &f->ref, request, &s), 0);
  return s;
}

struct page_sample sample(struct paged *f, uint32_t wanted) {
  const struct page_request request = {.pages_wanted = wanted, .seed = 1};
  struct page_sample s = sample_with(f, &request);

  page_layout_drop(s.layout);
  s.layout = NULL;
  return s;
}

void assert_price(double a, double b) {
  assert_true(a - b < 1e-9 && b - a < 1e-9);
}

void assert_tally(const struct page_tally *t, uint32_t pages,
                  uint32_t exclusive, double price, double squared) {
  assert_int_equal(t->pages, pages);
  assert_int_equal(t->exclusive, exclusive);
  assert_price(t->price, price);
  assert_price(t->price_squared, squared);
}
