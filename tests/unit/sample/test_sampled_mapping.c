#include "test.h"

#include <math.h>

#include "sample/sampled_mapping.h"

/* Mappings 1 to 3, each a stratum of its own unless a test says otherwise. */
#define N 4

struct fixture {
  struct mapping mappings[N];
  struct mapping_table table;
  struct mapping_tally tallies[N];
  struct mapping_stratum strata[MAPPING_STRATA];
  struct mapping_sample sample;
};

static void begin(struct fixture *f) {
  *f = (struct fixture){.table = {.mappings = f->mappings, .n = N}};
  f->sample = (struct mapping_sample){.table = &f->table,
                                      .tallies = f->tallies,
                                      .strata = f->strata,
                                      .has_mapcounts = true};
}

static void done(struct fixture *f) { (void)f; }

TEST_OBJECT(struct fixture, begin, done)

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

/* Gives a mapping so many pages and so many lookups. */
static void put(struct fixture *f, uint32_t i, uint64_t pages,
                uint64_t lookups) {
  f->tallies[i].pages = pages;
  f->tallies[i].stratum = i;
  f->strata[i] = (struct mapping_stratum){.pages = pages, .lookups = lookups};
}

/* Lets so many lookups find a page that is mapped `mappings` times. */
static void find(struct fixture *f, uint32_t i, enum page_kind kind,
                 uint32_t pages, uint64_t mappings) {
  const struct page_finding found = {
      .is_resident = true, .kind = kind, .mappings = mappings};

  for (uint32_t k = 0; k < pages; k++)
    page_tally_add(&f->tallies[i].kinds[kind], &found);
}

static void fill(struct fixture *f, uint64_t anon, uint64_t files) {
  f->sample.statm = (struct statm_sample){.resident_pages = anon + files,
                                          .shared_pages = files};
  sampled_mapping_fill(&f->sample, PAGE);
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

FIXTURE_TEST(present_pages_are_a_part_of_the_stratum) {
  put(f, 1, 1000, 100);
  find(f, 1, PAGE_ANON, 50, 1);
  put(f, 2, 400, 100);
  find(f, 2, PAGE_FILE, 25, 4);
  fill(f, 500, 100);
  assert_true(get(f, 1, ROLLUP_RSS) == 500);
  assert_true(get(f, 1, ROLLUP_PSS) == 500);
  assert_true(get(f, 2, ROLLUP_RSS) == 100);
  assert_true(get(f, 2, ROLLUP_PSS) == 25);
  assert_int_equal(f->mappings[1].pages_sampled, 50);
  assert_true(f->mappings[1].is_sampled);
}

/* Anonymous memory and shmem are dirty, files are clean. */
FIXTURE_TEST(amounts_are_told_apart_by_kind) {
  put(f, 1, 200, 200);
  find(f, 1, PAGE_ANON, 40, 1);
  find(f, 1, PAGE_ANON, 20, 2);
  find(f, 1, PAGE_FILE, 30, 1);
  find(f, 1, PAGE_FILE, 10, 2);
  put(f, 2, 200, 200);
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

/* As many pages of the pool as lookups found in them, whatever their size. */
FIXTURE_TEST(mappings_of_a_pool_have_their_part_of_it) {
  f->tallies[1].pages = 500;
  f->tallies[2].pages = f->tallies[3].pages = 200;
  f->strata[0] = (struct mapping_stratum){.pages = 900, .lookups = 90};
  find(f, 1, PAGE_FILE, 30, 1);
  find(f, 2, PAGE_FILE, 15, 1);
  fill(f, 0, 450);
  assert_true(get(f, 1, ROLLUP_RSS) == 300);
  assert_true(get(f, 2, ROLLUP_RSS) == 150);
  assert_false(is_known(f, 3, ROLLUP_RSS));
}

/* --- sums --- */

/* Also where the fractions of many pages would be lost. */
FIXTURE_TEST(sums_are_those_of_statm) {
  double anon = 0, files = 0;

  for (uint32_t i = 1; i < N; i++) {
    put(f, i, 1000 * i + 7, 90 + i);
    find(f, i, PAGE_ANON, 30 + i, 1);
    find(f, i, PAGE_FILE, 20, 3);
  }
  fill(f, 2011, 1499);
  for (uint32_t i = 1; i < N; i++) {
    anon += get(f, i, ROLLUP_PRIVATE_DIRTY);
    files += get(f, i, ROLLUP_PRIVATE_CLEAN) + get(f, i, ROLLUP_SHARED_CLEAN);
  }
  assert_true(anon == 2011);
  assert_true(files == 1499);
}

/* The one that was looked up whole is as it was found, and what lacks is in the
 * other. */
FIXTURE_TEST(what_is_certain_is_not_moved) {
  put(f, 1, 200, 200);
  find(f, 1, PAGE_ANON, 100, 1);
  put(f, 2, 10000, 100);
  find(f, 2, PAGE_ANON, 50, 1);
  fill(f, 100 + 5600, 0);
  assert_true(get(f, 1, ROLLUP_RSS) == 100);
  assert_true(get(f, 2, ROLLUP_RSS) == 5600);
}

FIXTURE_TEST(no_mapping_has_more_than_its_pages) {
  put(f, 1, 100, 50);
  find(f, 1, PAGE_ANON, 49, 1);
  put(f, 2, 10000, 100);
  find(f, 2, PAGE_ANON, 99, 1);
  fill(f, 10100, 0);
  assert_true(get(f, 1, ROLLUP_RSS) <= 100);
  assert_true(get(f, 2, ROLLUP_RSS) <= 10000);
  assert_true(get(f, 1, ROLLUP_RSS) + get(f, 2, ROLLUP_RSS) == 10100);
}

/* --- what is not known --- */

FIXTURE_TEST(empty_is_0_only_if_it_is_certain) {
  put(f, 1, 100, 16);
  put(f, 2, 100, 16);
  f->tallies[2].is_empty = true;
  put(f, 3, 100, 100);
  find(f, 3, PAGE_ANON, 100, 1);
  fill(f, 100, 0);
  assert_int_equal(f->mappings[1].sum.known, 0);
  assert_true(get(f, 2, ROLLUP_RSS) == 0);
  assert_true(get(f, 2, ROLLUP_PSS) == 0);
  assert_int_equal(f->mappings[2].pss_error, 0);
  assert_true(f->mappings[1].is_sampled);
  assert_int_equal(f->mappings[1].pages_sampled, 0);
}

FIXTURE_TEST(without_mapcounts_pss_is_known_of_exclusive_pages_alone) {
  f->sample.has_mapcounts = false;
  put(f, 1, 1000, 100);
  find(f, 1, PAGE_ANON, 100, 1);
  put(f, 2, 1000, 100);
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

FIXTURE_TEST(mapping_that_was_looked_up_whole_has_no_error) {
  put(f, 1, 100, 100);
  find(f, 1, PAGE_ANON, 50, 1);
  find(f, 1, PAGE_ANON, 20, 4);
  fill(f, 70, 0);
  assert_true(get(f, 1, ROLLUP_PSS) == 55);
  assert_int_equal(f->mappings[1].pss_error, 0);
}

/* The number of present pages is known from statm, where all are of one
 * mapping: then their prices alone are uncertain. */
FIXTURE_TEST(prices_are_uncertain) {
  put(f, 1, 10000, 800);
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
    put(f, i, 10000, 400);
    find(f, i, PAGE_ANON, 200, 1);
  }
  fill(f, 10000, 0);
  assert_true(get(f, 1, ROLLUP_PSS) == 5000);
  /* 2.6 standard deviations of the mean of 400, of which statm explains a half;
   * and what the rule of three leaves of prices */
  assert_true(error_of(f, 1) > 2.6 * 10000 * 0.5 / 20 / sqrt(2));
  assert_true(error_of(f, 1) < 2.6 * 10000 * 0.5 / 20 / sqrt(2) * 1.1);
}
