#include "test.h"

#include <math.h>
#include <string.h>

#include "sample/mapping_sample.h"

#include "paged.h"

struct fixture {
  struct paged in;
  struct mapping_sample sample;
};

static void begin(struct fixture *f) {
  f->sample = (struct mapping_sample){0};
  paged_make(&f->in, 1024);
  fake_pages_put(&f->in.tree, 10, FIRST, 1, 0, 0);
  fake_pages_count(&f->in.tree, FRAME, 65536, 1);
}

static void done(struct fixture *f) {
  mapping_sample_done(&f->sample);
  paged_remove(&f->in);
}

TEST_OBJECT(struct fixture, begin, done)
#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

/* --- memory --- */

/* Pages [at, at + n) after FIRST. */
struct part {
  uint64_t at, n;
  const char *name, *permissions;
};

static void map(const struct fixture *f, const struct part *parts, size_t n) {
  struct fake_range ranges[600];

  assert_true(n <= LENGTH(ranges));
  for (size_t i = 0; i < n; i++)
    ranges[i] = (struct fake_range){(FIRST + parts[i].at) * PAGE,
                                    (FIRST + parts[i].at + parts[i].n) * PAGE,
                                    parts[i].permissions, parts[i].name};
  fake_pages_map(&f->in.tree, 10, ranges, n);
}

static int read_sample(struct fixture *f, uint32_t wanted, uint64_t seed) {
  const struct page_request request = {.pages_wanted = wanted, .seed = seed};

  mapping_sample_done(&f->sample);
  return mapping_sample_draw(&f->in.reader, &f->in.ref, &request, &f->sample);
}

static void take_sample(struct fixture *f, uint32_t wanted) {
  assert_int_equal(read_sample(f, wanted, 1), 0);
}

static const struct mapping_tally *tally_of(const struct fixture *f,
                                            const char *name) {
  const struct mapping_table *t = f->sample.table;

  for (size_t i = 1; i < t->n; i++)
    if (t->mappings[i].name_len == strlen(name) &&
        memcmp(t->mappings[i].name, name, strlen(name)) == 0)
      return &f->sample.tallies[i];
  fail_msg("there is no mapping %s", name);
  return NULL;
}

static uint32_t found(const struct mapping_tally *t) {
  return t->kinds[PAGE_ANON].pages + t->kinds[PAGE_FILE].pages;
}

static uint32_t found_in(const struct fixture *f, const char *name) {
  return found(tally_of(f, name));
}

/* --- attribution --- */

/* All mappings of a name are one, wherever they are. */
FIXTURE_TEST(pages_count_for_their_mapping) {
  const struct part parts[] = {{0, 40, "/a", 0},
                               {40, 100, 0, 0},
                               {200, 60, "/a", "r--p"},
                               {300, 100, "/dev/shm/b", "rw-s"}};

  map(f, parts, LENGTH(parts));
  paged_put(&f->in, 0, 40, FAKE_FILE | FAKE_EXCLUSIVE, true);
  paged_put(&f->in, 40, 100, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_put(&f->in, 200, 60, FAKE_ANON, true);
  paged_put(&f->in, 300, 50, FAKE_FILE, true);
  fake_pages_count(&f->in.tree, FRAME + 200, 60, 2);
  fake_pages_count(&f->in.tree, FRAME + 300, 50, 5);
  take_sample(f, 1000); /* more than there are */
  assert_int_equal(tally_of(f, "/a")->kinds[PAGE_FILE].exclusive, 40);
  assert_int_equal(tally_of(f, "/a")->kinds[PAGE_ANON].pages, 60);
  assert_int_equal(tally_of(f, "/a")->kinds[PAGE_ANON].exclusive, 0);
  assert_true(tally_of(f, "/a")->kinds[PAGE_ANON].price == 30);
  assert_int_equal(found(tally_of(f, "[anon]")), 100);
  assert_int_equal(tally_of(f, "/dev/shm/b")->kinds[PAGE_FILE].pages, 50);
  assert_true(tally_of(f, "/dev/shm/b")->is_shmem);
  assert_false(tally_of(f, "/a")->is_shmem);
  assert_int_equal(f->sample.statm.resident_pages, 1024);
  assert_true(f->sample.has_mapcounts);
}

/* --- what is drawn --- */

/* Whatever they are: neither is shmem left out, nor anonymous memory drawn more
 * often. */
FIXTURE_TEST(large_mappings_have_more_draws) {
  const struct part parts[] = {{0, 8000, "/dev/shm/large", "rw-s"},
                               {8000, 2000, "/b", 0},
                               {10000, 1000, "/c", 0}};

  map(f, parts, LENGTH(parts));
  paged_put(&f->in, 0, 8000, FAKE_FILE | FAKE_EXCLUSIVE, true);
  paged_put(&f->in, 8000, 3000, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_resize(&f->in, 11000);
  take_sample(f, 110);
  assert_in_range(found_in(f, "/dev/shm/large"), 79, 81);
  assert_in_range(found_in(f, "/b"), 19, 21);
  assert_in_range(found_in(f, "/c"), 9, 11);
}

/* Where little is present more is looked up, and not without an end. */
FIXTURE_TEST(holes_are_made_up_for) {
  const struct part parts[] = {{0, 5000, "/a", 0}, {5000, 5000, "/b", 0}};

  map(f, parts, 2);
  for (uint64_t i = 0; i < 10000; i += 2)
    paged_put(&f->in, i, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_resize(&f->in, 5000);
  take_sample(f, 500);
  assert_in_range(found_in(f, "/a"), 240, 300);
  assert_in_range(found_in(f, "/b"), 240, 300);
  paged_put(&f->in, 0, 10000, 0, false);
  for (uint64_t i = 0; i < 10000; i += 16)
    paged_put(&f->in, i, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_resize(&f->in, 625);
  f->in.step_ns = NS; /* no time to refine it */
  take_sample(f, 500);
  assert_in_range(found_in(f, "/a") + found_in(f, "/b"),
                  500 * PAGE_LOOKUPS_MOST / 16 * 0.8,
                  500 * PAGE_LOOKUPS_MOST / 16 * 1.2);
}

/* --- without rights, and failures --- */

FIXTURE_TEST(without_frames_prices_are_unknown) {
  const struct part parts[] = {{0, 100, 0, 0}};

  map(f, parts, 1);
  fake_pages_put(&f->in.tree, 10, FIRST, 60, FAKE_ANON, 0);
  fake_pages_put(&f->in.tree, 10, FIRST + 60, 40, FAKE_ANON | FAKE_EXCLUSIVE,
                 0);
  take_sample(f, 100);
  assert_false(f->sample.has_mapcounts);
  assert_int_equal(tally_of(f, "[anon]")->kinds[PAGE_ANON].pages, 100);
  assert_int_equal(tally_of(f, "[anon]")->kinds[PAGE_ANON].exclusive, 40);
}

FIXTURE_TEST(failures_leave_nothing) {
  const struct part parts[] = {{0, 4, 0, 0}};

  map(f, parts, 1);
  paged_put(&f->in, 0, 4, FAKE_ANON | FAKE_EXCLUSIVE, true);
  proctree_write(&f->in.tree, "10/statm", TEXT("0 0 0 0 0 0 0\n"));
  assert_int_equal(read_sample(f, 10, 1), PROCFS_GONE);
  assert_null(f->sample.table);
  proctree_unlink(&f->in.tree, "10/maps");
  assert_int_equal(read_sample(f, 10, 1), PROCFS_GONE);
  assert_null(f->sample.table);
}

/* --- amounts, of pages that were found --- */

/* Mappings 1 to 3. */
#define N 4

struct amounts {
  struct mapping mappings[N];
  struct mapping_table table;
  struct mapping_tally tallies[N];
  struct mapping_sample sample;
};

static int make_amounts(void **state) {
  static struct amounts f;

  f = (struct amounts){.table = {.mappings = f.mappings, .n = N},
                       .sample = {.table = &f.table,
                                  .tallies = f.tallies,
                                  .has_mapcounts = true,
                                  .page_size = PAGE}};
  *state = &f;
  return 0;
}

#define AMOUNTS_TEST(name)                                                     \
  TEST_WITH(name, make_amounts, NULL, struct amounts *f)

/* Finds pages of it that are mapped `mappings` times. */
static void find(struct amounts *f, uint32_t i, enum page_kind kind,
                 uint32_t pages, uint64_t mappings) {
  const struct page_finding found = {
      .is_resident = true, .kind = kind, .mappings = mappings};

  if (f->mappings[i].size == 0)
    f->mappings[i].size = 100000 * PAGE;
  for (uint32_t k = 0; k < pages; k++)
    page_tally_add(&f->tallies[i].kinds[kind], &found);
}

static void fill(struct amounts *f, uint64_t anon, uint64_t files) {
  f->sample.statm = (struct statm_sample){.resident_pages = anon + files,
                                          .shared_pages = files};
  mapping_sample_fill(&f->sample);
}

static bool is_known(const struct amounts *f, uint32_t i,
                     enum rollup_field field) {
  return rollup_has(&f->mappings[i].sum, field);
}

/* In pages. */
static double get(const struct amounts *f, uint32_t i,
                  enum rollup_field field) {
  assert_true(is_known(f, i, field));
  return (double)f->mappings[i].sum.bytes[field] / (double)PAGE;
}

static double error_of(const struct amounts *f, uint32_t i) {
  return (double)f->mappings[i].pss_error / (double)PAGE;
}

/* --- amounts --- */

/* Anonymous memory and shmem are dirty, files are clean. */
AMOUNTS_TEST(amounts_are_told_apart_by_kind) {
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

AMOUNTS_TEST(mappings_have_their_part_of_all) {
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

AMOUNTS_TEST(no_mapping_has_more_than_its_pages) {
  f->mappings[1].size = 100 * PAGE;
  find(f, 1, PAGE_ANON, 49, 1);
  find(f, 2, PAGE_ANON, 99, 1);
  fill(f, 10100, 0);
  assert_true(get(f, 1, ROLLUP_RSS) <= 100);
  assert_true(get(f, 2, ROLLUP_RSS) <= 10000);
  assert_true(get(f, 1, ROLLUP_RSS) + get(f, 2, ROLLUP_RSS) == 10100);
}

/* --- what is not known --- */

AMOUNTS_TEST(without_mapcounts_pss_is_known_of_exclusive_pages_alone) {
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
AMOUNTS_TEST(prices_are_uncertain) {
  find(f, 1, PAGE_ANON, 200, 1);
  find(f, 1, PAGE_ANON, 200, 2);
  fill(f, 5000, 0);
  assert_true(get(f, 1, ROLLUP_PSS) == 3750);
  /* 2.6 standard deviations of the mean of 400 prices of 0.5 and 1 */
  assert_true(fabs(error_of(f, 1) - 2.6 * 5000 * 0.25 / 20) < 1);
}

/* Two of the same: one may have what the other lacks. */
AMOUNTS_TEST(presence_is_uncertain) {
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
