#include "test.h"

#include <math.h>

#include "sample/mapping_sample.h"

/* Mappings 1 to 3. */
#define N 4

struct fixture {
  struct mapping mappings[N];
  struct mapping_table table;
  struct mapping_tally tallies[N];
  struct mapping_sample sample;
};

static void begin(struct fixture *f) {
  *f = (struct fixture){.table = {.mappings = f->mappings, .n = N}};
  f->sample = (struct mapping_sample){.table = &f->table,
                                      .tallies = f->tallies,
                                      .has_mapcounts = true,
                                      .page_size = PAGE};
}

static void done(struct fixture *f) { (void)f; }

TEST_OBJECT(struct fixture, begin, done)

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

/* Finds pages of it that are mapped `mappings` times. */
static void find(struct fixture *f, uint32_t i, enum page_kind kind,
                 uint32_t pages, uint64_t mappings) {
  const struct page_finding found = {
      .is_resident = true, .kind = kind, .mappings = mappings};

  if (f->mappings[i].size == 0)
    f->mappings[i].size = 100000 * PAGE;
  for (uint32_t k = 0; k < pages; k++)
    page_tally_add(&f->tallies[i].kinds[kind], &found);
}

static void fill(struct fixture *f, uint64_t anon, uint64_t files) {
  f->sample.statm = (struct statm_sample){.resident_pages = anon + files,
                                          .shared_pages = files};
  mapping_sample_fill(&f->sample);
}

static bool is_known(const struct fixture *f, uint32_t i,
                     enum rollup_field field) {
  return rollup_has(&f->mappings[i].sum, field);
}

/* In pages. */
static double get(const struct fixture *f, uint32_t i,
                  enum rollup_field field) {
  assert_true(is_known(f, i, field));
  return (double)f->mappings[i].sum.bytes[field] / (double)PAGE;
}

static double error_of(const struct fixture *f, uint32_t i) {
  return (double)f->mappings[i].pss_error / (double)PAGE;
}

/* --- amounts --- */

/* Anonymous memory and shmem are dirty, files are clean. */
FIXTURE_TEST(amounts_are_told_apart_by_kind) {
  find(f, 1, PAGE_ANON, 40, 1);
  find(f, 1, PAGE_ANON, 20, 2);
  find(f, 1, PAGE_FILE, 30, 1);
  find(f, 1, PAGE_FILE, 10, 2);
  f->tallies[2].is_shmem = true;
  find(f, 2, PAGE_FILE, 7, 1);
  find(f, 2, PAGE_FILE, 12, 3);
  fill(f, 60, 40 + 19);
  assert_true(get(f, 1, ROLLUP_PRIVATE_DIRTY) == 40);
  assert_true(get(f, 1, ROLLUP_SHARED_DIRTY) == 20);
  assert_true(get(f, 1, ROLLUP_PRIVATE_CLEAN) == 30);
  assert_true(get(f, 1, ROLLUP_SHARED_CLEAN) == 10);
  assert_true(get(f, 1, ROLLUP_ANONYMOUS) == 60);
  assert_true(get(f, 1, ROLLUP_PSS) == 85);
  assert_true(get(f, 2, ROLLUP_PRIVATE_DIRTY) == 7);
  assert_true(get(f, 2, ROLLUP_SHARED_DIRTY) == 12);
  assert_true(get(f, 2, ROLLUP_SHARED_CLEAN) == 0);
  assert_true(get(f, 2, ROLLUP_ANONYMOUS) == 0);
  assert_false(is_known(f, 1, ROLLUP_SWAP_PSS));
  assert_false(is_known(f, 1, ROLLUP_SWAP));
  assert_false(is_known(f, 1, ROLLUP_PSS_ANON));
}

FIXTURE_TEST(mappings_have_their_part_of_all) {
  find(f, 1, PAGE_FILE, 30, 1);
  find(f, 2, PAGE_FILE, 15, 1);
  fill(f, 0, 450);
  assert_true(get(f, 1, ROLLUP_RSS) == 300);
  assert_true(get(f, 2, ROLLUP_RSS) == 150);
  assert_int_equal(f->mappings[3].sum.known, 0);
  assert_true(f->mappings[3].is_sampled);
  assert_int_equal(f->mappings[3].pages_sampled, 0);
}

/* --- sums --- */

FIXTURE_TEST(no_mapping_has_more_than_its_pages) {
  f->mappings[1].size = 100 * PAGE;
  find(f, 1, PAGE_ANON, 49, 1);
  find(f, 2, PAGE_ANON, 99, 1);
  fill(f, 10100, 0);
  assert_true(get(f, 1, ROLLUP_RSS) <= 100);
  assert_true(get(f, 2, ROLLUP_RSS) <= 10000);
  assert_true(get(f, 1, ROLLUP_RSS) + get(f, 2, ROLLUP_RSS) == 10100);
}

/* --- what is not known --- */

FIXTURE_TEST(without_mapcounts_pss_is_known_of_exclusive_pages_alone) {
  f->sample.has_mapcounts = false;
  find(f, 1, PAGE_ANON, 100, 1);
  find(f, 2, PAGE_ANON, 60, 1);
  find(f, 2, PAGE_ANON, 40, 0);
  fill(f, 2000, 0);
  assert_true(get(f, 1, ROLLUP_PSS) == 1000);
  assert_false(is_known(f, 2, ROLLUP_PSS));
  assert_true(get(f, 2, ROLLUP_RSS) == 1000);
  assert_true(get(f, 2, ROLLUP_PRIVATE_DIRTY) == 600);
  assert_true(get(f, 2, ROLLUP_SHARED_DIRTY) == 400);
}

/* --- errors --- */

/* The number of present pages is known from statm, where all are of one
 * mapping: then their prices alone are uncertain. */
FIXTURE_TEST(prices_are_uncertain) {
  find(f, 1, PAGE_ANON, 200, 1);
  find(f, 1, PAGE_ANON, 200, 2);
  fill(f, 5000, 0);
  assert_true(get(f, 1, ROLLUP_PSS) == 3750);
  /* 2.6 standard deviations of the mean of 400 prices of 0.5 and 1 */
  assert_true(fabs(error_of(f, 1) - 2.6 * 5000 * 0.25 / 20) < 1);
}

/* Two of the same: one may have what the other lacks. */
FIXTURE_TEST(presence_is_uncertain) {
  for (uint32_t i = 1; i <= 2; i++) {
    find(f, i, PAGE_ANON, 200, 1);
  }
  fill(f, 10000, 0);
  assert_true(get(f, 1, ROLLUP_PSS) == 5000);
  /* 2.6 standard deviations of a half of 400; and what the rule of three leaves
   * of prices */
  assert_true(error_of(f, 1) > 2.6 * 10000 * 0.5 / 20);
  assert_true(error_of(f, 1) < 2.6 * 10000 * 0.5 / 20 * 1.1);
}
