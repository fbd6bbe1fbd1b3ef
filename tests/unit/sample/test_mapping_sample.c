#include "test.h"

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

/* One page is of another kind than the rest: in many samples it is found as
 * often as any, within 5 standard deviations of independent draws. */
FIXTURE_TEST(every_page_of_a_mapping_has_the_same_chance) {
  static const uint64_t places[] = {0, 99, 100, 399, 600, 999};
  const struct part parts[] = {
      {0, 100, "/a", 0}, {100, 500, "/b", 0}, {600, 400, "/a", 0}};

  map(f, parts, LENGTH(parts));
  paged_put(&f->in, 0, 1000, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_resize(&f->in, 1000);
  for (size_t i = 0; i < LENGTH(places); i++) {
    double hits = 0;

    paged_put(&f->in, places[i], 1, FAKE_FILE | FAKE_EXCLUSIVE, true);
    for (uint64_t seed = 1; seed <= 500; seed++) {
      assert_int_equal(read_sample(f, 100, seed), 0);
      hits += tally_of(f, "/a")->kinds[PAGE_FILE].pages +
              tally_of(f, "/b")->kinds[PAGE_FILE].pages;
    }
    paged_put(&f->in, places[i], 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
    assert_true((hits - 50) * (hits - 50) < 25 * 50);
  }
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
