/* SPDX-License-Identifier: MIT */
/* Huge pages: all pages of one show the exclusive bit of the first, and each
 * has its own number of mappings. */
#include "test.h"

#include <stdlib.h>

#include "sample/mapping_sample.h"

#include "paged.h"

/* The process has two huge pages of anonymous memory. */
#define HUGE_PAGE 512
#define PAGES (2 * HUGE_PAGE)
#define END (START + PAGES * PAGE)

static int make(void **state) {
  static struct paged f;

  paged_make(&f, PAGES);
  fake_pages_map(&f.tree, 10, &(struct fake_range){START, END, 0, 0}, 1);
  fake_pages_put(&f.tree, 10, FIRST, 1, 0, 0);
  fake_pages_count(&f.tree, FRAME, 2 * PAGES, 1);
  *state = &f;
  return 0;
}

static int unmake(void **state) {
  paged_remove(*state);
  return 0;
}

#define PAGED_TEST(name) TEST_WITH(name, make, unmake, struct paged *f)

static struct page_sample sample(struct paged *f, uint32_t wanted) {
  const struct page_request request = {.pages_wanted = wanted, .seed = 1};
  struct page_sample s;

  assert_int_equal(page_sample_read(&f->reader, &f->ref, &request, &s), 0);
  page_layout_drop(s.layout);
  s.layout = NULL;
  return s;
}

/* The huge pages, of which each maps pages [first, first + n) alone: the others
 * have that many mappings. */
static void put_shared(struct paged *f, uint64_t first, uint64_t n,
                       uint64_t mappings) {
  for (uint64_t at = 0; at < PAGES; at += HUGE_PAGE) {
    paged_put(f, at, HUGE_PAGE, FAKE_ANON | (first == 0 ? FAKE_EXCLUSIVE : 0),
              true);
    fake_pages_count(&f->tree, FRAME + at, HUGE_PAGE, mappings);
    fake_pages_count(&f->tree, FRAME + at + first, n, 1);
  }
}

/* The relatives have copied these pages of each huge page. */
static const struct {
  uint64_t first, n, mappings;
} copied[] = {
    {0, 1, 2}, {7, 1, 2}, {511, 1, 2}, {0, 256, 2}, {256, 256, 2},  {0, 512, 2},
    {0, 0, 2}, {7, 0, 2}, {0, 1, 4},   {7, 1, 4},   {256, 256, 10},
};

static void assert_near(double a, double b) {
  assert_true(a - b < 1e-6 && b - a < 1e-6);
}

PAGED_TEST(pages_of_a_huge_page_have_their_own_counts) {
  for (size_t i = 0; i < LENGTH(copied); i++) {
    uint64_t own = 2 * copied[i].n;
    struct page_sample s;

    put_shared(f, copied[i].first, copied[i].n, copied[i].mappings);
    s = sample(f, PAGES);
    assert_int_equal(s.kinds[PAGE_ANON].pages, PAGES);
    assert_int_equal(s.kinds[PAGE_ANON].exclusive, own);
    assert_near(s.kinds[PAGE_ANON].share,
                (double)own +
                    (double)(PAGES - own) / (double)copied[i].mappings);
    assert_near(s.unknown, 0);
  }
}

/* The first half of the process is the huge pages, the second is shmem. */
static void map_beside_shmem(struct paged *f) {
  const struct fake_range ranges[] = {
      {START, END, NULL, NULL},
      {END, END + PAGES * PAGE, "rw-s", "/dev/shm/buffers"}};

  paged_resize(f, 2 * PAGES);
  fake_pages_map(&f->tree, 10, ranges, 2);
  paged_put(f, PAGES, PAGES, FAKE_FILE, true);
  fake_pages_count(&f->tree, FRAME + PAGES, PAGES, 3);
  proctree_print(&f->tree, 10, "statm", "9999 %u %u 0 0 0 0\n", 2 * PAGES,
                 PAGES);
}

PAGED_TEST(a_census_counts_the_pages_of_huge_pages) {
  map_beside_shmem(f);
  for (size_t i = 0; i < LENGTH(copied); i++) {
    struct page_sample s;

    put_shared(f, copied[i].first, copied[i].n, copied[i].mappings);
    s = sample(f, 100);
    assert_true(s.has_census);
    assert_int_equal(s.census[PAGE_ANON].exclusive, 2 * copied[i].n);
    assert_int_equal(s.census[PAGE_ANON].pages, PAGES);
    assert_near(s.unknown, 0);
  }
}

/* Pages of shmem are drawn. */
PAGED_TEST(huge_pages_of_shmem_have_their_own_counts) {
  struct page_sample s;

  map_beside_shmem(f);
  put_shared(f, 0, 512, 2);
  paged_put(f, PAGES, PAGES, FAKE_FILE | FAKE_EXCLUSIVE, true);
  s = sample(f, PAGES);
  assert_int_equal(s.shmem.pages, PAGES);
  assert_int_equal(s.shmem.exclusive, 0);
  assert_near(s.shmem.share, PAGES / 3.0);
}

/* From 6.15 the huge zero page seems to be exclusive. */
PAGED_TEST(a_huge_zero_page_is_in_no_resident_size) {
  put_shared(f, 0, 512, 2);
  fake_pages_count(&f->tree, FRAME + HUGE_PAGE, HUGE_PAGE, 0);
  assert_int_equal(sample(f, PAGES).kinds[PAGE_ANON].pages, HUGE_PAGE);
  map_beside_shmem(f);
  for (int averages = 0; averages < 2; averages++) {
    f->reader.averages_mapcounts = averages;
    assert_int_equal(sample(f, PAGES).census[PAGE_ANON].pages, HUGE_PAGE);
  }
}

/* Its frames are beyond those that kpagecount has a number for. */
PAGED_TEST(memory_of_a_device_is_in_no_resident_size) {
  map_beside_shmem(f);
  put_shared(f, 0, 512, 2);
  fake_pages_put(&f->tree, 10, FIRST + HUGE_PAGE, HUGE_PAGE,
                 FAKE_ANON | FAKE_EXCLUSIVE, UINT64_C(1) << 40);
  assert_int_equal(sample(f, PAGES).census[PAGE_ANON].pages, HUGE_PAGE);
}

/* The counts are not asked: one page of the window is not there, be it the
 * first. */
PAGED_TEST(small_pages_keep_their_bits) {
  struct page_sample s;

  map_beside_shmem(f);
  proctree_print(&f->tree, 0, "meminfo",
                 "MemTotal: 1048576 kB\nAnonHugePages: 4096 kB\n");
  paged_put(f, 0, 300, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_put(f, 300, 1, 0, false);
  paged_put(f, 301, 723, FAKE_ANON, true);
  paged_put(f, HUGE_PAGE, 1, 0, false);
  fake_pages_count(&f->tree, FRAME, PAGES, 2);
  s = sample(f, 100);
  assert_int_equal(s.census[PAGE_ANON].exclusive, 300);
  assert_int_equal(s.census[PAGE_ANON].pages, PAGES - 2);
  assert_near(s.unknown, 2.0 / (2 * PAGES)); /* which statm has */
}

/* --- CONFIG_NO_PAGE_MAPCOUNT --- */

/* The count is the average of the huge page, and the bit is right. */
static const struct {
  bool is_exclusive;
  uint64_t average;
} averages[] = {
    {true, 1},
    {true, 3},  /* mapped three times in this process */
    {false, 1}, /* another process maps a part of it */
    {false, 2},
};

PAGED_TEST(averages_are_taken_as_the_kernel_does) {
  f->reader.averages_mapcounts = true;
  for (size_t i = 0; i < LENGTH(averages); i++) {
    uint64_t bit = averages[i].is_exclusive ? FAKE_EXCLUSIVE : 0;
    struct page_sample s;

    fake_pages_map(&f->tree, 10, &(struct fake_range){START, END, 0, 0}, 1);
    paged_resize(f, PAGES);
    paged_put(f, 0, PAGES, FAKE_ANON | bit, true);
    fake_pages_count(&f->tree, FRAME, PAGES, averages[i].average);
    s = sample(f, PAGES);
    assert_int_equal(s.kinds[PAGE_ANON].exclusive, bit ? PAGES : 0);
    assert_near(s.kinds[PAGE_ANON].share, PAGES / (double)averages[i].average);
    map_beside_shmem(f);
    s = sample(f, 100);
    assert_int_equal(s.census[PAGE_ANON].exclusive, bit ? PAGES : 0);
    assert_int_equal(s.census[PAGE_ANON].pages, PAGES);
  }
}

/* --- without counts --- */

static void put_meminfo(struct paged *f, const char *key, unsigned kb) {
  proctree_print(&f->tree, 0, "meminfo", "MemTotal: 1048576 kB\n%s: %u kB\n",
                 key, kb);
}

/* The tree has no PAGEMAP_SCAN, like Linux 6.6: any page can be of a huge page
 * if the host has one. */
PAGED_TEST(huge_pages_without_counts_are_unsure) {
  static const char *const keys[] = {"AnonHugePages", "ShmemPmdMapped",
                                     "FilePmdMapped"};

  paged_put(f, 0, PAGES, FAKE_ANON | FAKE_EXCLUSIVE, false);
  for (size_t i = 0; i < LENGTH(keys); i++) {
    struct page_sample s;

    put_meminfo(f, keys[i], 2048);
    s = sample(f, 100);
    assert_int_equal(s.kinds[PAGE_ANON].exclusive, 100);
    assert_int_equal(s.kinds[PAGE_ANON].unsure, 100);
    assert_near(s.unknown, 1);
    put_meminfo(f, keys[i], 0);
    assert_near(sample(f, 100).unknown, 0);
  }
  proctree_unlink(&f->tree, "meminfo");
  assert_near(sample(f, 100).unknown, 1);
  /* As much of two kinds, before or behind the third. */
  for (size_t i = 0; i + 1 < LENGTH(keys); i++) {
    proctree_print(&f->tree, 0, "meminfo",
                   "MemTotal: 1048576 kB\n%s: 2048 kB\n%s: 2048 kB\n", keys[i],
                   keys[i + 1]);
    assert_near(sample(f, 100).unknown, 1);
  }
}

/* Half of the process; shmem is of small pages. */
PAGED_TEST(a_census_without_counts_is_unsure_of_huge_pages) {
  struct page_sample s;

  map_beside_shmem(f);
  put_meminfo(f, "AnonHugePages", 0);
  paged_put(f, 0, PAGES, FAKE_ANON | FAKE_EXCLUSIVE, false);
  paged_put(f, PAGES, PAGES, FAKE_FILE, false);
  assert_near(sample(f, 100).unknown, 0);
  put_meminfo(f, "AnonHugePages", 4096);
  assert_near(sample(f, 100).unknown, 1);
  paged_put(f, 7, 1, 0, false);
  paged_put(f, HUGE_PAGE + 7, 1, 0, false);
  assert_near(sample(f, 100).unknown, 0.5 + 2.0 / (2 * PAGES));
  /* Nothing of shmem shows before that frames are hidden. */
  paged_put(f, 0, PAGES, FAKE_ANON | FAKE_EXCLUSIVE, false);
  paged_put(f, PAGES, PAGES, 0, false);
  proctree_print(&f->tree, 10, "statm", "9999 %u 0 0 0 0 0\n", PAGES);
  s = sample(f, 100);
  assert_true(s.has_census);
  assert_int_equal(s.census[PAGE_ANON].exclusive, PAGES);
  assert_near(s.unknown, 1);
}

/* True if the mapping has an amount; *ret_error is the error of its Pss. */
static bool knows(struct paged *f, enum rollup_field field,
                  uint64_t *ret_error) {
  const struct page_request request = {.pages_wanted = 100, .seed = 1};
  struct mapping_table table = {0};
  bool is_known;

  assert_int_equal(mapping_sample_read(&f->reader, &f->ref, &request, &table),
                   0);
  is_known = rollup_has(&table.mappings[1].sum, field);
  *ret_error = table.mappings[1].pss_error;
  mapping_table_done(&table);
  return is_known;
}

PAGED_TEST(unsure_pages_are_in_the_error_of_a_mapping) {
  uint64_t error;

  paged_put(f, 0, HUGE_PAGE, FAKE_ANON | FAKE_EXCLUSIVE, false);
  paged_put(f, HUGE_PAGE, HUGE_PAGE, FAKE_FILE | FAKE_EXCLUSIVE, false);
  proctree_print(&f->tree, 10, "statm", "9999 %u %u 0 0 0 0\n", PAGES,
                 HUGE_PAGE);
  put_meminfo(f, "AnonHugePages", 0);
  assert_true(knows(f, ROLLUP_PRIVATE_DIRTY, &error));
  assert_true(knows(f, ROLLUP_PSS, &error));
  assert_true(error < PAGES * PAGE / 4);
  put_meminfo(f, "AnonHugePages", 4096);
  assert_false(knows(f, ROLLUP_PRIVATE_DIRTY, &error));
  assert_true(knows(f, ROLLUP_RSS, &error));
  assert_true(knows(f, ROLLUP_PSS, &error));
  assert_in_range(error, PAGES * PAGE, PAGES * PAGE * 5 / 4);
}

/* --- with PAGEMAP_SCAN --- */

/* It tells of each page if it is in a huge one: the host is not asked. */
PAGED_TEST(huge_pages_are_unsure_and_small_ones_are_not) {
  struct page_sample s;

  f->can_scan = true;
  f->huge_end = HUGE_PAGE;
  put_meminfo(f, "AnonHugePages", 4096);
  paged_put(f, 0, PAGES, FAKE_ANON | FAKE_EXCLUSIVE, false);
  s = sample(f, PAGES);
  assert_int_equal(s.kinds[PAGE_ANON].pages, PAGES);
  assert_int_equal(s.kinds[PAGE_ANON].unsure, HUGE_PAGE);
  assert_near(s.unknown, 0.5);
  map_beside_shmem(f);
  paged_put(f, 0, PAGES, FAKE_ANON | FAKE_EXCLUSIVE, false);
  paged_put(f, PAGES, PAGES, FAKE_FILE, false);
  s = sample(f, PAGES);
  assert_true(s.has_census);
  assert_near(s.unknown, 0.25);
}

PAGED_TEST(without_counts_the_kernel_knows_the_zero_page) {
  f->can_scan = true;
  f->zero = 100;
  f->zero_end = 140;
  paged_put(f, 0, PAGES, FAKE_ANON, false);
  assert_int_equal(sample(f, PAGES).kinds[PAGE_ANON].pages, PAGES - 40);
}

/* All 64 pages are asked: three of them may be huge by chance. A walk takes a
 * huge page as one page of 100 ns. */
PAGED_TEST(a_walk_takes_huge_pages_as_one) {
  static const unsigned huge[] = {0, 1, 3, 4, 64};

  f->can_scan = true;
  f->step_ns = 640;
  fake_pages_map(&f->tree, 10,
                 &(struct fake_range){START, START + 64 * PAGE, 0, 0}, 1);
  paged_resize(f, 64);
  paged_put(f, 0, 64, FAKE_ANON | FAKE_EXCLUSIVE, true);
  for (size_t i = 0; i < LENGTH(huge); i++) {
    double part = huge[i] > 3 ? (huge[i] - 3) / 64.0 : 0;
    struct page_sample s;

    f->huge_end = huge[i];
    s = sample(f, 64);
    assert_near(s.huge, part);
    assert_near(s.walk_page_ns, (1 - part) * 640 / 64 + part * 100 / 512);
  }
}

/* --- memory that is present and not resident --- */

/* A third of the pages found is not resident, such as a hugetlbfs that was not
 * recognised. */
PAGED_TEST(pages_that_are_not_resident_widen_the_error) {
  paged_put(f, 0, PAGES, FAKE_ANON | FAKE_EXCLUSIVE, true);
  proctree_print(&f->tree, 10, "statm", "9999 %u 0 0 0 0 0\n", PAGES * 2 / 3);
  assert_in_range(1000 * sample(f, PAGES).unknown, 332, 334);
}

/* All of it went to swap. */
PAGED_TEST(without_resident_pages_nothing_is_unknown) {
  proctree_print(&f->tree, 10, "statm", "9999 0 0 0 0 0 0\n");
  assert_near(sample(f, PAGES).unknown, 0);
}
