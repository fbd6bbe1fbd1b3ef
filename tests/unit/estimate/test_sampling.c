/* When the mappings of a process that is sampled are read again. */
#include "test.h"

#include "estimate/measure.h"
#include "estimate/sampling.h"

#define LAYOUT_NS NS_PER_MS
#define PAGES 100000

struct fixture {
  struct measurer measurer;
  struct sampling sampling;
  struct track track;
  struct process process;
};

/* Its mappings were read two seconds ago. */
static int make(void **state) {
  static struct fixture f;

  f = (struct fixture){
      .measurer = {.estimator = {.now_ns = 102 * NS_PER_S}},
      .sampling = {.layout_at_ns = 100 * NS_PER_S,
                   .layout_ns = LAYOUT_NS,
                   .layout_size_pages = 2 * PAGES,
                   .layout_resident_pages = PAGES},
      .track = {.sampling = &f.sampling},
      .process = {.track = &f.track,
                  .statm = {.size_pages = 2 * PAGES, .resident_pages = PAGES}}};
  *state = &f;
  return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, make, NULL, struct fixture *f)

static bool reads_mappings(const struct fixture *f) {
  struct fixture without = *f;

  without.sampling.layout_ns = 0;
  without.track.sampling = &without.sampling;
  without.process.track = &without.track;
  return sampling_cost_ns(&f->measurer, &f->process) ==
         sampling_cost_ns(&without.measurer, &without.process) + LAYOUT_NS;
}

FIXTURE_TEST(mappings_are_kept_while_little_changes) {
  assert_false(reads_mappings(f));
  f->process.statm.resident_pages = PAGES + PAGES / 64;
  assert_false(reads_mappings(f));
  f->process.statm.resident_pages = PAGES / 2;
  assert_false(reads_mappings(f));
  f->process.statm.size_pages += PAGES / 512;
  assert_false(reads_mappings(f));
}

/* They may not show where it is, as in buffers that fill. */
FIXTURE_TEST(mappings_are_read_again_when_memory_has_come) {
  f->process.statm.resident_pages = PAGES + PAGES / 32;
  assert_true(reads_mappings(f));
}

FIXTURE_TEST(mappings_are_read_again_when_the_size_has_changed) {
  f->process.statm.size_pages -= PAGES / 128;
  assert_true(reads_mappings(f));
}

FIXTURE_TEST(mappings_are_read_again_after_a_minute) {
  f->measurer.estimator.now_ns += 58 * NS_PER_S;
  assert_true(reads_mappings(f));
}

FIXTURE_TEST(mappings_take_a_thousandth_of_a_processor) {
  f->process.statm.resident_pages = 2 * PAGES;
  f->measurer.estimator.now_ns -= 1001 * NS_PER_MS;
  assert_false(reads_mappings(f));
  f->measurer.estimator.now_ns += NS_PER_MS;
  assert_true(reads_mappings(f));
}
