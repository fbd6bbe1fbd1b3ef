#include "test.h"

#include "paged.h"

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
    assert_tally(&s.kinds[PAGE_ANON], s.kinds[PAGE_ANON].pages, 0,
                 s.kinds[PAGE_ANON].pages / 2.0,
                 s.kinds[PAGE_ANON].pages / 4.0);
    pages += s.census[PAGE_ANON].pages - 8;
  }
  assert_in_range(pages / 100, 32 - 3.2, 32 + 3.2);
}

/* Huge pages of shmem look like them before 6.11. */
PAGED_TEST(pages_of_shmem_are_never_anonymous) {
  struct page_sample s;

  put_beside_shmem(f);
  paged_put(f, 96, PAGES_IN_ALL - 96 - 8, FAKE_ANON, true);
  s = sample(f, 100);
  assert_in_range(s.shmem.pages, 70, 100);
  assert_price(s.shmem.price, s.shmem.pages / 20.0);
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
      ret[i] += (unsigned)((8 - s.kinds[PAGE_FILE].price) * 4 + 0.5);
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

static uint32_t count_picked_of(struct paged *f, size_t pages) {
  const uint64_t middle = START + pages * PAGE;
  const struct fake_range ranges[] = {
      {START, middle, NULL, NULL},
      {middle, middle + PAGE, "rw-s", "/dev/shm/buffers"}};

  paged_put(f, 0, pages, FAKE_FILE, true);
  fake_pages_map(&f->tree, 10, ranges, LENGTH(ranges));
  fake_pages_count(&f->tree, FRAME, pages, 2);
  paged_resize(f, (unsigned)pages);
  return sample(f, 100).kinds[PAGE_FILE].pages;
}

PAGED_TEST(more_are_picked_of_many) {
  assert_int_equal(count_picked_of(f, 10), 10);
  assert_int_equal(count_picked_of(f, 1000), CENSUS_PICKED_LEAST);
  assert_int_equal(count_picked_of(f, 10000), 39);
  assert_int_equal(count_picked_of(f, 40000), CENSUS_PICKED_MOST);
}

/* statm has 100 anonymous pages more than were there to be counted. */
PAGED_TEST(anonymous_pages_that_were_not_counted_are_told) {
  struct page_sample s;

  put_beside_shmem(f);
  proctree_write(&f->tree, "10/statm", TEXT("2000 1024 868 0 0 0 0\n"));
  s = sample(f, 100);
  assert_price(s.unseen, (1024 - 868 - 56) / 1024.0);
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
