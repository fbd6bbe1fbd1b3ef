/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample/mapping_sample.h"

#include "paged.h"

struct fixture {
  struct paged in;
  struct mapping_table table;
};

static void begin(struct fixture *f) {
  f->table = (struct mapping_table){0};
  paged_make(&f->in, 1024);
  fake_pages_put(&f->in.tree, 10, FIRST, 1, 0, 0);
  fake_pages_count(&f->in.tree, FRAME, 65536, 1);
}

static void done(struct fixture *f) {
  mapping_table_done(&f->table);
  paged_remove(&f->in);
}

TEST_OBJECT(struct fixture, begin, done)
#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

/* --- memory --- */

/* A part maps the pages [at, at + n) after FIRST. */
struct part {
  uint64_t at, n;
  const char *name, *permissions;
};

static void map(const struct fixture *f, const struct part *parts, size_t n) {
  struct fake_range ranges[8];

  assert_true(n <= LENGTH(ranges));
  for (size_t i = 0; i < n; i++)
    ranges[i] = (struct fake_range){(FIRST + parts[i].at) * PAGE,
                                    (FIRST + parts[i].at + parts[i].n) * PAGE,
                                    parts[i].permissions, parts[i].name};
  fake_pages_map(&f->in.tree, 10, ranges, n);
}

static int read_sample(struct fixture *f, uint32_t wanted, uint64_t seed) {
  const struct page_request request = {.pages_wanted = wanted, .seed = seed};

  mapping_table_done(&f->table);
  return mapping_sample_read(&f->in.reader, &f->in.ref, &request, &f->table);
}

/* Makes statm show so many pages. */
static void resize(struct fixture *f, unsigned anon, unsigned files) {
  proctree_print(&f->in.tree, 10, "statm", "99999 %u %u 0 0 0 0\n",
                 anon + files, files);
  f->in.ref.resident_pages = anon + files;
}

static void take_sample(struct fixture *f, uint32_t wanted) {
  assert_int_equal(read_sample(f, wanted, 1), 0);
}

static const struct mapping *mapping_of(const struct fixture *f,
                                        const char *name) {
  const struct mapping_table *t = &f->table;

  for (size_t i = 1; i < t->n; i++)
    if (t->mappings[i].name_len == strlen(name) &&
        memcmp(t->mappings[i].name, name, strlen(name)) == 0)
      return &t->mappings[i];
  fail_msg("there is no mapping %s", name);
  return NULL;
}

static uint64_t found_in(const struct fixture *f, const char *name) {
  return mapping_of(f, name)->pages_sampled;
}

static bool is_known(const struct fixture *f, const char *name,
                     enum rollup_field field) {
  return rollup_has(&mapping_of(f, name)->sum, field);
}

/* Returns an amount in pages. */
static double get(const struct fixture *f, const char *name,
                  enum rollup_field field) {
  assert_true(is_known(f, name, field));
  return (double)mapping_of(f, name)->sum.bytes[field] / (double)PAGE;
}

static double error_of(const struct fixture *f, const char *name) {
  return (double)mapping_of(f, name)->pss_error / (double)PAGE;
}

/* --- amounts --- */

/* All mappings of a name are one, wherever they are. Anonymous memory and shmem
 * are dirty, files are clean. */
FIXTURE_TEST(amounts_are_counted_by_mapping_and_kind) {
  const struct part parts[] = {{0, 40, "/a", 0},
                               {40, 10, "/none", 0},
                               {200, 60, "/a", "r--p"},
                               {300, 19, "/dev/shm/b", "rw-s"},
                               {400, 1, "/one", 0}};

  map(f, parts, LENGTH(parts));
  paged_put(&f->in, 0, 30, FAKE_FILE | FAKE_EXCLUSIVE, true);
  paged_put(&f->in, 30, 10, FAKE_FILE, true);
  paged_put(&f->in, 200, 40, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_put(&f->in, 240, 20, FAKE_ANON, true);
  paged_put(&f->in, 300, 7, FAKE_FILE | FAKE_EXCLUSIVE, true);
  paged_put(&f->in, 307, 12, FAKE_FILE, true);
  paged_put(&f->in, 400, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
  fake_pages_count(&f->in.tree, FRAME + 30, 10, 2);
  fake_pages_count(&f->in.tree, FRAME + 240, 20, 2);
  fake_pages_count(&f->in.tree, FRAME + 307, 12, 3);
  resize(f, 60 + 1, 40 + 19);
  take_sample(f, 1000); /* more than there are */
  assert_true(get(f, "/a", ROLLUP_PRIVATE_DIRTY) == 40);
  assert_true(get(f, "/a", ROLLUP_SHARED_DIRTY) == 20);
  assert_true(get(f, "/a", ROLLUP_PRIVATE_CLEAN) == 30);
  assert_true(get(f, "/a", ROLLUP_SHARED_CLEAN) == 10);
  assert_true(get(f, "/a", ROLLUP_ANONYMOUS) == 60);
  assert_true(get(f, "/a", ROLLUP_PSS) == 85);
  assert_true(get(f, "/dev/shm/b", ROLLUP_PRIVATE_DIRTY) == 7);
  assert_true(get(f, "/dev/shm/b", ROLLUP_SHARED_DIRTY) == 12);
  assert_true(get(f, "/dev/shm/b", ROLLUP_SHARED_CLEAN) == 0);
  assert_true(get(f, "/dev/shm/b", ROLLUP_ANONYMOUS) == 0);
  assert_true(get(f, "/one", ROLLUP_RSS) == 1);
  assert_false(is_known(f, "/a", ROLLUP_SWAP_PSS));
  assert_false(is_known(f, "/a", ROLLUP_SWAP));
  assert_false(is_known(f, "/a", ROLLUP_PSS_ANON));
  assert_int_equal(mapping_of(f, "/none")->sum.known, 0);
  assert_true(mapping_of(f, "/none")->is_sampled);
  assert_int_equal(found_in(f, "/none"), 0);
}

FIXTURE_TEST(no_mapping_has_more_than_its_pages) {
  const struct part parts[] = {{0, 100, "/a", 0}, {100, 10000, "/b", 0}};

  map(f, parts, LENGTH(parts));
  paged_put(&f->in, 0, 10100, FAKE_ANON | FAKE_EXCLUSIVE, true);
  resize(f, 10100, 0);
  for (uint64_t seed = 1; seed <= 20; seed++) {
    assert_int_equal(read_sample(f, 148, seed), 0);
    /* 2.6 standard deviations of a sample of 148 in which it is found once, and
     * its share could be anything */
    if (found_in(f, "/a") == 1)
      assert_true(error_of(f, "/a") > 2.6 * 10100 / 148);
    if (found_in(f, "/a") < 2)
      continue;
    assert_true(get(f, "/a", ROLLUP_RSS) == 100);
    assert_true(get(f, "/b", ROLLUP_RSS) == 10000);
  }
}

FIXTURE_TEST(neighbours_have_their_own_pages) {
  const struct part parts[] = {
      {0, 40, "/a", 0}, {40, 30, "/b", 0}, {70, 20, "/a", 0}, {90, 10, 0, 0}};

  map(f, parts, LENGTH(parts));
  paged_put(&f->in, 0, 100, FAKE_ANON | FAKE_EXCLUSIVE, true);
  resize(f, 100, 0);
  take_sample(f, 1000);
  assert_int_equal(found_in(f, "/a"), 60);
  assert_int_equal(found_in(f, "/b"), 30);
}

/* Also if more has come where there was no mapping yet. */
FIXTURE_TEST(mappings_of_a_page_have_it) {
  const struct part parts[] = {
      {0, 1, "/a", 0}, {10, 1, "/b", 0}, {20, 1, "/c", 0}};

  for (size_t n = 1; n <= LENGTH(parts); n++) {
    map(f, parts, n);
    paged_put(&f->in, parts[n - 1].at, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
    for (unsigned more = 0; more < 2; more++) {
      resize(f, (unsigned)n + more, 0);
      take_sample(f, 100);
      for (size_t i = 0; i < n; i++)
        assert_true(get(f, parts[i].name, ROLLUP_RSS) == 1);
    }
  }
}

/* The first mapping of the table is the rest. */
FIXTURE_TEST(names_beyond_the_limit_are_sampled_together) {
  const unsigned n = MAPPING_NAMES_MAX + 20;
  struct fake_range *ranges = calloc(n, sizeof(*ranges));
  char(*names)[16] = calloc(n, sizeof(*names));
  const struct mapping *rest;

  for (unsigned i = 0; i < n; i++) {
    snprintf(names[i], sizeof(names[i]), "/%u", i);
    ranges[i] = (struct fake_range){(FIRST + i) * PAGE, (FIRST + i + 1) * PAGE,
                                    NULL, names[i]};
  }
  fake_pages_map(&f->in.tree, 10, ranges, n);
  paged_put(&f->in, 0, n, FAKE_ANON | FAKE_EXCLUSIVE, true);
  resize(f, n, 0);
  take_sample(f, n);
  rest = &f->table.mappings[0];
  assert_in_range(rest->pages_sampled, 20, 21);
  assert_int_equal(rest->sum.bytes[ROLLUP_PSS], rest->pages_sampled * PAGE);
  assert_true(get(f, "/0", ROLLUP_PSS) == 1);
  free(ranges);
  free(names);
}

/* One of them is wholly resident: it cannot have more, however often it is
 * found. */
static void assert_adding_up(struct fixture *f, uint64_t first,
                             uint64_t second) {
  const struct part parts[] = {
      {0, first == 10000 ? 12000 : first, "/b", 0},
      {12000, second == 10000 ? 12000 : second, "/a", 0}};

  map(f, parts, LENGTH(parts));
  fake_pages_put(&f->in.tree, 10, FIRST, 24000, 0, 0);
  paged_put(&f->in, 0, first, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_put(&f->in, 12000, second, FAKE_ANON | FAKE_EXCLUSIVE, true);
  resize(f, (unsigned)(first + second), 0);
  for (uint64_t seed = 1; seed <= 20; seed++) {
    double sum = 0;

    assert_int_equal(read_sample(f, 148, seed), 0);
    if (found_in(f, "/a") > 0)
      sum += get(f, "/a", ROLLUP_RSS);
    if (found_in(f, "/b") > 0)
      sum += get(f, "/b", ROLLUP_RSS);
    assert_true(sum == (double)(first + second));
  }
}

FIXTURE_TEST(mappings_add_up_to_statm) {
  assert_adding_up(f, 10000, 100);
  assert_adding_up(f, 100, 10000);
  assert_adding_up(f, 12000, 10000);
}

/* 100 pages of each are found; statm has 1,300, of which the first and the last
 * cannot have more. */
FIXTURE_TEST(what_a_mapping_has_no_room_for_is_divided_between_the_others) {
  const struct part parts[] = {{0, 100, "/a", 0},
                               {1000, 6000, "/b", 0},
                               {7000, 6000, "/c", 0},
                               {13000, 100, "/d", 0}};

  map(f, parts, LENGTH(parts));
  for (size_t i = 0; i < LENGTH(parts); i++)
    paged_put(&f->in, parts[i].at, 100, FAKE_ANON | FAKE_EXCLUSIVE, true);
  resize(f, 1300, 0);
  take_sample(f, 1000);
  for (size_t i = 0; i < LENGTH(parts); i++)
    assert_true(get(f, parts[i].name, ROLLUP_RSS) ==
                (parts[i].n == 100 ? 100 : 550));
}

FIXTURE_TEST(without_mapcounts_pss_is_known_of_exclusive_pages_alone) {
  const struct part parts[] = {{0, 100, "/a", 0}, {100, 100, "/b", 0}};

  map(f, parts, LENGTH(parts));
  paged_put(&f->in, 0, 160, FAKE_ANON | FAKE_EXCLUSIVE, false);
  paged_put(&f->in, 60, 40, FAKE_FILE | FAKE_EXCLUSIVE, false);
  paged_put(&f->in, 160, 40, FAKE_ANON, false);
  resize(f, 160, 40);
  take_sample(f, 1000);
  assert_true(get(f, "/a", ROLLUP_PSS) == 100);
  assert_false(is_known(f, "/b", ROLLUP_PSS));
  assert_true(get(f, "/b", ROLLUP_RSS) == 100);
  assert_true(get(f, "/b", ROLLUP_PRIVATE_DIRTY) == 60);
  assert_true(get(f, "/b", ROLLUP_SHARED_DIRTY) == 40);
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
  resize(f, 3000, 8000);
  take_sample(f, 110);
  assert_in_range(found_in(f, "/dev/shm/large"), 79, 81);
  assert_in_range(found_in(f, "/b"), 19, 21);
  assert_in_range(found_in(f, "/c"), 9, 11);
  assert_true(get(f, "/dev/shm/large", ROLLUP_RSS) == 8000);
  assert_true(get(f, "/b", ROLLUP_RSS) + get(f, "/c", ROLLUP_RSS) == 3000);
}

/* Where little is present more is looked up, and not without an end. */
FIXTURE_TEST(holes_are_made_up_for) {
  const struct part parts[] = {{0, 5000, "/a", 0}, {5000, 5000, "/b", 0}};

  map(f, parts, 2);
  for (uint64_t i = 0; i < 10000; i += 2)
    paged_put(&f->in, i, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
  resize(f, 5000, 0);
  take_sample(f, 500);
  assert_in_range(found_in(f, "/a"), 240, 300);
  assert_in_range(found_in(f, "/b"), 240, 300);
  assert_true(get(f, "/a", ROLLUP_RSS) + get(f, "/b", ROLLUP_RSS) == 5000);
  paged_put(&f->in, 0, 10000, 0, false);
  for (uint64_t i = 0; i < 10000; i += 16)
    paged_put(&f->in, i, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
  resize(f, 625, 0);
  f->in.step_ns = NS; /* no time to refine it */
  take_sample(f, 500);
  assert_in_range(found_in(f, "/a") + found_in(f, "/b"),
                  500 * PAGE_LOOKUPS_MOST / 16 * 0.8,
                  500 * PAGE_LOOKUPS_MOST / 16 * 1.2);
}

/* --- errors --- */

/* The number of present pages is known from statm, where all are of one
 * mapping: then their shares alone are uncertain. */
FIXTURE_TEST(shares_are_uncertain) {
  const struct part parts[] = {{0, 5000, "/a", 0}};

  map(f, parts, 1);
  paged_put(&f->in, 0, 5000, FAKE_ANON, true);
  for (uint64_t i = 0; i < 5000; i += 2)
    fake_pages_count(&f->in.tree, FRAME + i, 1, 2);
  resize(f, 5000, 0);
  take_sample(f, 400);
  /* 2.6 standard deviations of the mean of 400 shares of 0.5 and 1 */
  assert_true(fabs(error_of(f, "/a") - 2.6 * 5000 * 0.25 / 20) < 3);
  assert_true(fabs(get(f, "/a", ROLLUP_PSS) - 3750) < error_of(f, "/a"));
  /* 4.6 of 400 may be shared, and cost nothing, if none was found to be */
  fake_pages_count(&f->in.tree, FRAME, 5000, 1);
  paged_put(&f->in, 0, 5000, FAKE_ANON | FAKE_EXCLUSIVE, true);
  take_sample(f, 400);
  assert_true(fabs(error_of(f, "/a") - 5000 * 4.6 / 400) < 1);
}

/* Two of the same: one may have what the other lacks. */
FIXTURE_TEST(presence_is_uncertain) {
  const struct part parts[] = {{0, 5000, "/a", 0}, {5000, 5000, "/b", 0}};

  map(f, parts, 2);
  paged_put(&f->in, 0, 10000, FAKE_ANON | FAKE_EXCLUSIVE, true);
  resize(f, 10000, 0);
  take_sample(f, 400);
  assert_true(get(f, "/a", ROLLUP_PSS) == 5000);
  /* 2.6 standard deviations of a half of 400; and what the rule of three leaves
   * of shares */
  assert_true(error_of(f, "/a") > 2.6 * 10000 * 0.5 / 20);
  assert_true(error_of(f, "/a") < 2.6 * 10000 * 0.5 / 20 * 1.1);
}

/* --- failures --- */

FIXTURE_TEST(failures_leave_nothing) {
  const struct part parts[] = {{0, 4, 0, 0}};

  map(f, parts, 1);
  paged_put(&f->in, 0, 4, FAKE_ANON | FAKE_EXCLUSIVE, true);
  proctree_write(&f->in.tree, "10/statm", TEXT("0 0 0 0 0 0 0\n"));
  assert_int_equal(read_sample(f, 10, 1), PROCFS_GONE);
  assert_null(f->table.mappings);
  proctree_unlink(&f->in.tree, "10/maps");
  assert_int_equal(read_sample(f, 10, 1), PROCFS_GONE);
  assert_null(f->table.mappings);
}
