/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paged.h"

/* Samples of a process with a single mapping of 1,024 pages, whose frames are
 * mapped once. */
#define PAGES_IN_ALL 1024
#define END (START + PAGES_IN_ALL * PAGE)

static int make(void **state) {
  static struct paged f;

  paged_make(&f, PAGES_IN_ALL);
  fake_pages_map(&f.tree, 10, &(struct fake_range){START, END, 0, 0}, 1);
  fake_pages_count(&f.tree, FRAME, PAGES_IN_ALL, 1);
  *state = &f;
  return 0;
}

static int unmake(void **state) {
  paged_remove(*state);
  return 0;
}

#define PAGED_TEST(name) TEST_WITH(name, make, unmake, struct paged *f)

static struct page_sample sample_with(struct paged *f,
                                      const struct page_request *request) {
  struct page_sample s;

  assert_int_equal(page_sample_read(&f->reader, &f->ref, request, &s), 0);
  return s;
}

static int read_sample(struct paged *f, uint32_t wanted,
                       struct page_sample *ret) {
  const struct page_request request = {.pages_wanted = wanted, .seed = 1};

  return page_sample_read(&f->reader, &f->ref, &request, ret);
}

/* The layout is dropped. */
static struct page_sample sample(struct paged *f, uint32_t wanted) {
  struct page_sample s;

  assert_int_equal(read_sample(f, wanted, &s), 0);
  page_layout_drop(s.layout);
  s.layout = NULL;
  return s;
}

static void assert_share(double a, double b) {
  assert_true(a - b < 1e-9 && b - a < 1e-9);
}

static void assert_tally(const struct page_tally *t, uint32_t pages,
                         uint32_t exclusive, double share, double squared) {
  assert_int_equal(t->pages, pages);
  assert_int_equal(t->exclusive, exclusive);
  assert_share(t->share, share);
  assert_share(t->share_squared, squared);
}

/* --- shares --- */

/* The lock is free for a while after every 64 pages, and those who watch see
 * that the reading goes on. */
/* 64 of the pages are asked whether they are huge, and 8 windows are timed. */
PAGED_TEST(sample_pauses_and_shows_progress) {
  const unsigned reads = 245 + 64 + 8;

  paged_put(f, 0, PAGES_IN_ALL, FAKE_ANON | FAKE_EXCLUSIVE, true);
  sample(f, 245);
  assert_int_equal(f->pauses, (reads + 4) / 64); /* maps counts as four */
  assert_string_equal(f->file, "pagemap");
  assert_int_equal(atomic_load(&f->heartbeat), reads + 1);
}

/* A walk of a page takes its part of the time of a window, 512 pages that lie
 * in one page table. Where half of them are present, each takes twice as long.
 */
PAGED_TEST(walk_of_a_page_takes_its_part_of_a_window) {
  f->step_ns = 5120;
  paged_put(f, 0, PAGES_IN_ALL, FAKE_ANON | FAKE_EXCLUSIVE, true);
  assert_share(sample(f, 255).walk_page_ns, 10);
  paged_put(f, 0, PAGES_IN_ALL, 0, false);
  for (uint64_t page = 0; page < PAGES_IN_ALL; page += 2)
    paged_put(f, page, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
  assert_share(sample(f, 255).walk_page_ns, 20);
}

/* Present pages that nothing maps are the zero page, or memory of a device. */
PAGED_TEST(pages_without_mappings_are_in_no_resident_size) {
  struct page_sample s;

  paged_put(f, 0, 100, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_put(f, 100, 300, FAKE_ANON, true);
  fake_pages_count(&f->tree, FRAME + 100, 300, 0);
  /* beyond the frames of the machine */
  fake_pages_put(&f->tree, 10, FIRST + 400, 300, FAKE_ANON, UINT64_C(1) << 40);
  s = sample(f, PAGES_IN_ALL);
  assert_tally(&s.kinds[PAGE_ANON], 100, 100, 100, 100);
}

/* The frames are hidden, or their counts are: by an empty file, or none. */
PAGED_TEST(without_counts_only_exclusive_pages_have_a_share) {
  struct page_sample s;

  for (int i = 0; i < 3; i++) {
    paged_put(f, 0, 400, FAKE_ANON, i > 0);
    paged_put(f, 400, 100, FAKE_ANON | FAKE_EXCLUSIVE, i > 0);
    paged_put(f, 500, 50, FAKE_FILE, i > 0);
    if (i == 1)
      proctree_write(&f->tree, "kpagecount", "", 0);
    if (i == 2)
      proctree_unlink(&f->tree, "kpagecount");
    s = sample(f, PAGES_IN_ALL);
    assert_false(s.has_mapcounts);
    assert_tally(&s.kinds[PAGE_ANON], 500, 100, 100, 100);
    assert_tally(&s.kinds[PAGE_FILE], 50, 0, 0, 0);
  }
}

/* --- what is drawn --- */

PAGED_TEST(lookups_are_limited) {
  struct page_sample s;

  paged_put(f, 3, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
  s = sample(f, 20);
  assert_int_equal(s.looked_at, 20 * PAGE_LOOKUPS_MOST);
  paged_put(f, 0, PAGES_IN_ALL, FAKE_SWAPPED, true);
  s = sample(f, 20);
  assert_int_equal(s.looked_at, 20 * PAGE_LOOKUPS_MOST);
  assert_int_equal(s.kinds[PAGE_ANON].pages, 0);
}

/*
 * One page is of another kind than the rest: in many samples it is found as
 * often as any, within 5 standard deviations of independent draws. (Parts only
 * lower these.)
 */
static void assert_same_chance(struct paged *f, uint64_t at, uint32_t present,
                               struct page_layout *layout) {
  double hits = 0, found = 0, expected;

  paged_put(f, at, 1, FAKE_FILE | FAKE_EXCLUSIVE, true);
  for (uint64_t seed = 1; seed <= 1000; seed++) {
    const struct page_request request = {
        .pages_wanted = 40, .layout = layout, .seed = seed};
    struct page_sample s;

    s = sample_with(f, &request);
    hits += s.kinds[PAGE_FILE].pages;
    found += s.kinds[PAGE_FILE].pages + s.kinds[PAGE_ANON].pages;
    page_layout_drop(s.layout);
  }
  paged_put(f, at, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
  expected = found / present;
  assert_true(expected > 100);
  assert_true((hits - expected) * (hits - expected) < 25 * expected);
}

/* A dense part, a thin one and the last page. */
#define UNEVEN (32 + 64 + 1)

static void put_uneven(const struct paged *f) {
  paged_put(f, 0, 32, FAKE_ANON | FAKE_EXCLUSIVE, true);
  for (uint64_t i = 508; i < 1020; i += 8)
    paged_put(f, i, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_put(f, PAGES_IN_ALL - 1, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
}

/* Half of the pages go, and come back elsewhere, as in a heap that is copied.
 * A quarter is not worth the time. */
PAGED_TEST(layout_is_made_anew_where_memory_has_moved) {
  const struct fake_range both[] = {
      {START, START + PAGES_IN_ALL * PAGE, 0, 0},
      {2 * START, 2 * START + PAGES_IN_ALL * PAGE, 0, 0}};
  struct page_request request = {.pages_wanted = 100, .seed = 1};
  struct page_layout *layout;
  struct page_sample s;

  paged_put(f, 0, PAGES_IN_ALL, FAKE_ANON | FAKE_EXCLUSIVE, true);
  s = sample_with(f, &request);
  assert_share(s.unknown, 0);
  assert_int_equal(s.layout_ns, f->step_ns);
  assert_true(s.walk_page_ns > 0);
  request.layout = layout = s.layout;
  fake_pages_map(&f->tree, 10, both, 2);
  fake_pages_put(&f->tree, 10, 2 * FIRST, PAGES_IN_ALL / 4, FAKE_FILE, FRAME);
  paged_put(f, 0, PAGES_IN_ALL / 5, 0, false);
  s = sample_with(f, &request);
  assert_ptr_equal(s.layout, layout);
  assert_int_equal(s.layout_ns, 0);
  assert_share(s.walk_page_ns, 0); /* is measured with the layout */
  page_layout_drop(s.layout);
  fake_pages_put(&f->tree, 10, 2 * FIRST, PAGES_IN_ALL / 2, FAKE_FILE, FRAME);
  paged_put(f, 0, PAGES_IN_ALL / 2, 0, false);
  s = sample_with(f, &request);
  assert_ptr_not_equal(s.layout, layout);
  assert_true(s.layout_ns > 0);
  assert_in_range(s.kinds[PAGE_FILE].pages, 30, 70);
  page_layout_drop(s.layout);
  page_layout_drop(layout);
}

PAGED_TEST(a_process_of_one_page_is_known) {
  struct page_sample s;

  fake_pages_map(&f->tree, 10, &(struct fake_range){START, START + PAGE, 0, 0},
                 1);
  paged_put(f, 0, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_resize(f, 1);
  f->step_ns = 10;
  s = sample(f, 100);
  assert_share(s.present[PAGE_ANON], 1);
  assert_share(s.unknown, 0);
  assert_share(s.walk_page_ns, 10);
}

/* Pages of a file are on every second address of the first half; of the others
 * every one is anonymous. */
PAGED_TEST(present_pages_are_counted_by_kind) {
  struct page_sample s;

  for (uint64_t i = 0; i < PAGES_IN_ALL / 2; i += 2)
    paged_put(f, i, 1, FAKE_FILE, true);
  paged_put(f, PAGES_IN_ALL / 2, PAGES_IN_ALL / 2, FAKE_ANON, true);
  s = sample(f, PAGES_IN_ALL);
  assert_share(s.present[PAGE_ANON], PAGES_IN_ALL / 2.0);
  assert_share(s.present[PAGE_FILE], PAGES_IN_ALL / 4.0);
  assert_share(s.chance, 0);
  s = sample(f, 400);
  assert_in_range(s.present[PAGE_ANON], PAGES_IN_ALL / 2 - 20,
                  PAGES_IN_ALL / 2 + 20);
  assert_in_range(s.present[PAGE_FILE], PAGES_IN_ALL / 4 - 40,
                  PAGES_IN_ALL / 4 + 40);
  /* two of sqrt(3/4 * 1/4 / n) */
  assert_in_range(s.chance, 30, 45);
}

/* statm counts more or less than chance explains, or neither. */
PAGED_TEST(what_chance_explains_is_not_unknown) {
  static const uint32_t resident[] = {PAGES_IN_ALL * 3 / 4, 968, 500};

  for (uint64_t i = 0; i < PAGES_IN_ALL; i++)
    paged_put(f, i, 1, i % 4 ? FAKE_ANON | FAKE_EXCLUSIVE : 0, true);
  for (size_t i = 0; i < LENGTH(resident); i++) {
    double present, unknown;
    struct page_sample s;

    paged_resize(f, resident[i]);
    s = sample(f, 400);
    assert_in_range(s.pages, 400, 420); /* as many as are wanted */
    present = s.present[PAGE_ANON] + s.present[PAGE_FILE];
    unknown = i == 0   ? 0
              : i == 1 ? (resident[i] - present - s.chance) / resident[i]
                       : (present - s.chance - resident[i]) / present;
    assert_share(s.unknown, unknown);
    assert_true((unknown > 0) == (i > 0));
    assert_true(s.chance > 20);
  }
}

static const uint64_t uneven[] = {0, 31, 508, 708, PAGES_IN_ALL - 1};

PAGED_TEST(every_page_has_the_same_chance) {
  put_uneven(f);
  for (size_t i = 0; i < LENGTH(uneven); i++)
    assert_same_chance(f, uneven[i], UNEVEN, NULL);
}

/* The first 512 pages are refined, and then the time is up. */
PAGED_TEST(every_page_has_the_same_chance_if_a_part_is_refined) {
  struct page_request request = {.pages_wanted = 1, .seed = 1};
  struct page_sample s;

  put_uneven(f);
  paged_resize(f, UNEVEN);
  f->step_ns = 2 * MS;
  s = sample_with(f, &request);
  assert_int_equal(page_layout_pages(s.layout, PAGES_ALL), 32 + 1 + 512);
  for (size_t i = 0; i < LENGTH(uneven); i++)
    assert_same_chance(f, uneven[i], UNEVEN, s.layout);
  page_layout_drop(s.layout);
}

/* --- a census, beside shmem --- */

/* 96 pages, the others are of shmem. The least run has 8 of them. */
static void put_beside_shmem(struct paged *f) {
  const uint64_t middle = START + 96 * PAGE, end = END;
  const struct fake_range ranges[] = {
      {START, middle, NULL, NULL},
      {middle, end - 8 * PAGE, "rw-s", "/dev/shm/buffers"},
      {end - 8 * PAGE, end, NULL, NULL}};

  fake_pages_map(&f->tree, 10, ranges, LENGTH(ranges));
  paged_put(f, 0, 32, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_put(f, 32, 16, FAKE_ANON, true);
  paged_put(f, 48, 16, FAKE_FILE | FAKE_EXCLUSIVE, true);
  paged_put(f, 64, 24, FAKE_FILE, true);
  paged_put(f, 88, 8, FAKE_SWAPPED, false);
  paged_put(f, 96, PAGES_IN_ALL - 96 - 8, FAKE_FILE, true);
  paged_put(f, PAGES_IN_ALL - 8, 8, FAKE_ANON | FAKE_EXCLUSIVE, true);
  fake_pages_count(&f->tree, FRAME + 32, 16, 2);
  fake_pages_count(&f->tree, FRAME + 64, 24, 4);
  fake_pages_count(&f->tree, FRAME + 96, PAGES_IN_ALL - 96 - 8, 20);
}

/* A zero page looks like an anonymous one that is not exclusive. Half of them
 * are some: as many of those that are picked, within 4 standard deviations. */
PAGED_TEST(zero_pages_are_left_out_as_picked_pages_show) {
  double pages = 0;

  put_beside_shmem(f);
  paged_put(f, 0, 64, FAKE_ANON, true);
  fake_pages_count(&f->tree, FRAME, 64, 2);
  fake_pages_count(&f->tree, FRAME, 32, 0);
  for (uint64_t seed = 1; seed <= 100; seed++) {
    const struct page_request request = {.pages_wanted = 10, .seed = seed};
    struct page_sample s = sample_with(f, &request);

    page_layout_drop(s.layout);
    assert_int_equal(s.census[PAGE_ANON].exclusive, 8);
    assert_int_equal(s.pages, s.census[PAGE_ANON].pages +
                                  s.census[PAGE_FILE].pages + s.shmem.pages);
    assert_tally(&s.kinds[PAGE_ANON], s.kinds[PAGE_ANON].pages, 0,
                 s.kinds[PAGE_ANON].pages / 2.0,
                 s.kinds[PAGE_ANON].pages / 4.0);
    pages += s.census[PAGE_ANON].pages - 8;
  }
  assert_in_range(pages / 100, 32 - 3.2, 32 + 3.2);
}

PAGED_TEST(a_single_zero_page_is_left_out) {
  struct page_sample s;

  put_beside_shmem(f);
  paged_put(f, 0, 64, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_put(f, 10, 1, FAKE_ANON, true);
  fake_pages_count(&f->tree, FRAME + 10, 1, 0);
  s = sample(f, 100);
  assert_int_equal(s.census[PAGE_ANON].pages, 63 + 8);
  assert_int_equal(s.census[PAGE_ANON].exclusive, 63 + 8);
}

/* Huge pages of shmem look like them before 6.11. */
PAGED_TEST(pages_of_shmem_are_never_anonymous) {
  struct page_sample s;

  put_beside_shmem(f);
  paged_put(f, 96, PAGES_IN_ALL - 96 - 8, FAKE_ANON, true);
  s = sample(f, 100);
  assert_in_range(s.shmem.pages, 70, 100);
  assert_share(s.shmem.share, s.shmem.pages / 20.0);
  assert_int_equal(s.kinds[PAGE_ANON].pages, 16);
}

/* How often pages of each fifth of them are picked, in 100 samples. */
static void count_picked(struct paged *f, size_t pages, unsigned ret[5]) {
  const uint64_t middle = START + pages * PAGE, end = END;
  const struct fake_range ranges[] = {
      {START, middle, NULL, NULL}, {middle, end, "rw-s", "/dev/shm/buffers"}};

  fake_pages_map(&f->tree, 10, ranges, LENGTH(ranges));
  paged_put(f, 0, PAGES_IN_ALL, FAKE_FILE, true);
  for (size_t i = 0; i < 5; i++) {
    ret[i] = 0;
    fake_pages_count(&f->tree, FRAME, pages, 2);
    fake_pages_count(&f->tree, FRAME + i * pages / 5, pages / 5, 4);
    for (uint64_t seed = 1; seed <= 100; seed++) {
      const struct page_request request = {.pages_wanted = 10, .seed = seed};
      struct page_sample s;

      s = sample_with(f, &request);
      page_layout_drop(s.layout);
      assert_int_equal(s.kinds[PAGE_FILE].pages, CENSUS_PICKED_LEAST);
      ret[i] += (unsigned)((8 - s.kinds[PAGE_FILE].share) * 4 + 0.5);
    }
  }
}

/* 16 are picked: of hardly more than are remembered meanwhile, and of many. 320
 * of 1,600 are in each fifth; the standard deviation is 16. */
PAGED_TEST(picked_pages_have_the_same_chance) {
  static const size_t pages[] = {150, 900};
  unsigned found[5];

  for (size_t i = 0; i < LENGTH(pages); i++) {
    count_picked(f, pages[i], found);
    for (size_t part = 0; part < LENGTH(found); part++)
      assert_in_range(found[part], 240, 400);
  }
}

/* As at the end of an address space. */
PAGED_TEST(pages_beyond_the_end_of_pagemap_are_absent) {
  const struct fake_range ranges[] = {
      {START, START + 16 * PAGE, "rw-s", "/dev/shm/buffers"},
      {START + 16 * PAGE, START + 100 * PAGE, NULL, NULL},
      {START + 600 * PAGE, START + 700 * PAGE, NULL, NULL}};
  struct page_sample s;

  fake_pages_map(&f->tree, 10, ranges, LENGTH(ranges));
  paged_put(f, 0, 16, FAKE_FILE, true);
  paged_put(f, 16, 84, FAKE_ANON | FAKE_EXCLUSIVE, true);
  s = sample(f, 100);
  assert_true(s.has_census);
  assert_int_equal(s.census[PAGE_ANON].pages, 84);
}

/* A window counts as one read, and one for each 8 pages in it: 33 where it is
 * half full. */
PAGED_TEST(a_census_pauses_by_the_pages_it_finds) {
  const unsigned windows = 30;
  const uint64_t end = START + windows * 512 * PAGE;
  const struct fake_range ranges[] = {
      {START, end, NULL, NULL},
      {end, end + 16 * PAGE, "rw-s", "/dev/shm/buffers"}};

  fake_pages_map(&f->tree, 10, ranges, LENGTH(ranges));
  paged_resize(f, windows * 256);
  for (uint64_t i = 0; i < windows; i++)
    paged_put(f, i * 512, 256, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_put(f, windows * 512, 16, FAKE_FILE, true);
  assert_true(sample(f, 100).has_census);
  /* Besides, those of 16 pages of shmem, and of probes. */
  assert_in_range(f->pauses, windows * 33 / 64, (windows * 33 + 64) / 64);
}

/* statm has 100 anonymous pages more than were there to be counted. */
PAGED_TEST(uncounted_anonymous_pages_are_reported) {
  struct page_sample s;

  put_beside_shmem(f);
  proctree_write(&f->tree, "10/statm", TEXT("2000 1024 868 0 0 0 0\n"));
  s = sample(f, 100);
  assert_share(s.unknown, (1024 - 868 - 56) / 1024.0);
}

/* Beside a mapping of 256 MiB without pages, and not so little memory that it
 * is left out. */
PAGED_TEST(many_pages_beside_shmem_are_drawn) {
  const uint64_t end = END;
  const struct fake_range ranges[] = {
      {START, START + 64 * PAGE, NULL, NULL},
      {START + 64 * PAGE, end, "rw-s", "/dev/shm/buffers"},
      {end + PAGE, end + PAGE * (CENSUS_PAGES_MOST - 61), NULL, NULL}};
  struct page_sample s;

  paged_put(f, 0, 64, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_put(f, 64, PAGES_IN_ALL - 64, FAKE_FILE, true);
  fake_pages_map(&f->tree, 10, ranges, 3);
  paged_resize(f, CENSUS_PAGES_MOST / 2);
  s = sample(f, 100);
  assert_false(s.has_census);
  fake_pages_map(&f->tree, 10, ranges, 2);
  s = sample(f, 100);
  assert_true(s.has_census);
  assert_int_equal(s.census[PAGE_ANON].exclusive, 64);
}

static bool counts_pages_apart(struct paged *f, size_t n, uint64_t apart) {
  struct fake_range ranges[CENSUS_READS_MOST + 2];
  const uint64_t end = END;

  ranges[0] = (struct fake_range){START, end, "rw-s", "/dev/shm/buffers"};
  for (uint64_t i = 0; i < n; i++) {
    uint64_t start = end + (1 + i * apart) * PAGE;

    ranges[1 + i] = (struct fake_range){start, start + PAGE, NULL, NULL};
  }
  fake_pages_map(&f->tree, 10, ranges, 1 + n);
  return sample(f, 100).has_census;
}

/* As the stacks of many threads are. */
PAGED_TEST(pages_that_take_a_read_each_are_drawn) {
  paged_put(f, 0, PAGES_IN_ALL, FAKE_FILE, true);
  assert_true(counts_pages_apart(f, CENSUS_READS_MOST, 512));
  assert_false(counts_pages_apart(f, CENSUS_READS_MOST + 1, 512));
  assert_true(counts_pages_apart(f, CENSUS_READS_MOST + 1, 511));
}

/* --- failures --- */

PAGED_TEST(failures_are_returned) {
  static const struct {
    const char *missing, *path, *text;
    int result;
  } cases[] = {
      {"10", 0, 0, PROCFS_GONE},
      {"10/maps", 0, 0, PROCFS_GONE},
      {"10/statm", 0, 0, PROCFS_GONE},
      {"10/pagemap", 0, 0, -ENOSYS},
      /* it has ended since, or given up its memory */
      {"10/pagemap", "10/statm", "0 0 0 0 0 0 0\n", PROCFS_GONE},
      {0, "10/statm", "0 0 0 0 0 0 0\n", PROCFS_GONE},
      {0, "10/maps", "", PROCFS_GONE},
      {0, "10/maps", "nonsense\n", -EBADMSG},
      {0, "10/maps", "4000-5000 rw-p 0 0:0 0\n1000-2000 rw-p 0 0:0 0\n",
       -EBADMSG},
      {0, "10/maps", "Rss:                1640 kB\n", -EBADMSG},
      {0, "10/statm", "1 2\n", -EBADMSG},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct page_sample s;

    paged_resize(f, PAGES_IN_ALL);
    fake_pages_map(&f->tree, 10,
                   &(struct fake_range){START, START + 4 * PAGE, 0, 0}, 1);
    paged_put(f, 0, 4, FAKE_ANON | FAKE_EXCLUSIVE, true);
    if (cases[i].missing)
      proctree_unlink(&f->tree, cases[i].missing);
    if (cases[i].path)
      proctree_write(&f->tree, cases[i].path, cases[i].text,
                     strlen(cases[i].text));
    assert_int_equal(read_sample(f, 100, &s), cases[i].result);
    assert_null(s.layout);
  }
}

static int lowest_free_fd(void) {
  int fd = dup(STDERR_FILENO);

  close(fd);
  return fd;
}

/* Of all that a census and a sample read, in turn. Without the first number of
 * kpagecount there are no counts, and of windows, PROBES are only timed. */
PAGED_TEST(each_read_that_fails_is_an_error) {
  unsigned succeeded = 0, n = 0;
  size_t before = 0;

  put_beside_shmem(f);
  for (bool has_failed = true; has_failed; n++) {
    struct page_sample s;
    int rc;

    f->fails_at = n + 1;
    rc = read_sample(f, 100, &s);
    has_failed = f->fails_at == 0;
    succeeded += rc == 0 && has_failed;
    if (rc == 0)
      page_layout_drop(s.layout);
    else if (rc != -EIO || s.layout)
      fail_msg("read %u: %d", n, rc);
    if (n == 0)
      before = heap_used();
  }
  f->fails_at = 0;
  assert_int_equal(heap_used(), before);
  assert_int_equal(succeeded, 1 + 8);
  assert_in_range(n, 2 * 100, 3 * 100);
}

/* Root may open all: so the test is another user meanwhile. No file stays open,
 * of which a daemon would run out. */
PAGED_TEST(refused_pagemap_is_an_error) {
  static const struct {
    const char *path;
    int result;
  } refused[] = {{"10/pagemap", -EPERM}, {"10/maps", PROCFS_DENIED}};

  paged_put(f, 0, 4, FAKE_ANON | FAKE_EXCLUSIVE, true);
  assert_int_equal(chmod(f->tree.root, 0755), 0);
  for (size_t i = 0; i < LENGTH(refused); i++) {
    char path[128];
    int fd = lowest_free_fd(), rc;
    struct page_sample s;

    snprintf(path, sizeof(path), "%s/%s", f->tree.root, refused[i].path);
    assert_int_equal(chmod(path, 0), 0);
    if (geteuid() == 0 && seteuid(65534) != 0)
      skip();
    rc = read_sample(f, 100, &s);
    assert_int_equal(seteuid(getuid()), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(rc, refused[i].result);
    assert_int_equal(lowest_free_fd(), fd);
  }
}
