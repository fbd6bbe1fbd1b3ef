#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paged.h"

static int read_sample(struct paged *f, uint32_t wanted,
                       struct page_sample *ret) {
  const struct page_request request = {.pages_wanted = wanted, .seed = 1};

  return page_sample_read(&f->reader, &f->ref, &request, ret);
}

/* --- prices --- */

/* The lock is free for a while after every 64 pages, and those who watch see
 * that the reading goes on. */
PAGED_TEST(sample_pauses_and_shows_progress) {
  paged_put(f, 0, PAGES_IN_ALL, FAKE_ANON | FAKE_EXCLUSIVE, true);
  sample(f, 255);
  assert_int_equal(f->pauses, (255 + 4) / 64); /* maps counts as four */
  assert_string_equal(f->file, "pagemap");
  assert_int_equal(atomic_load(&f->heartbeat), 255 + 1);
}

/* A layout of no more pages than are wanted is looked up whole. */
PAGED_TEST(kinds_and_prices_are_kept_apart) {
  struct page_sample s;

  paged_put(f, 0, 400, FAKE_ANON, true);
  paged_put(f, 400, 100, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_put(f, 500, 200, FAKE_FILE, true);
  paged_put(f, 700, 24, FAKE_FILE, true);
  paged_put(f, 724, 300, FAKE_SWAPPED | FAKE_EXCLUSIVE, false);
  fake_pages_count(&f->tree, FRAME, 400, 2);
  fake_pages_count(&f->tree, FRAME + 500, 200, 20);
  /* mapped once, but not by the bit: a kernel before 4.2 */
  fake_pages_count(&f->tree, FRAME + 700, 24, 1);
  s = sample(f, PAGES_IN_ALL);
  assert_int_equal(s.looked_at, PAGES_IN_ALL);
  assert_tally(&s.kinds[PAGE_ANON], 500, 100, 300, 200);
  assert_tally(&s.kinds[PAGE_FILE], 224, 24, 34, 24.5);
  assert_tally(&s.shmem, 0, 0, 0, 0);
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

/* The frames are hidden, or their counts are. */
PAGED_TEST(without_counts_only_exclusive_pages_have_a_price) {
  struct page_sample s;

  for (int has_frames = 0; has_frames < 2; has_frames++) {
    paged_put(f, 0, 400, FAKE_ANON, has_frames);
    paged_put(f, 400, 100, FAKE_ANON | FAKE_EXCLUSIVE, has_frames);
    paged_put(f, 500, 50, FAKE_FILE, has_frames);
    if (has_frames)
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
  for (uint64_t i = 0; i < PAGES_IN_ALL; i += 8)
    paged_put(f, i, 1, FAKE_ANON | FAKE_EXCLUSIVE, true);
  s = sample(f, 100);
  assert_int_equal(s.looked_at, 100 * PAGE_LOOKUPS_MOST);
  assert_in_range(s.kinds[PAGE_ANON].pages, 20, 80);
  paged_put(f, 0, PAGES_IN_ALL, FAKE_SWAPPED, true);
  s = sample(f, 20);
  assert_int_equal(s.looked_at, 20 * PAGE_LOOKUPS_MOST);
  assert_int_equal(s.kinds[PAGE_ANON].pages, 0);
}

/* The offsets in pagemap have more than 32 bits. */
PAGED_TEST(pages_of_another_size_are_numbered_by_it_at_high_addresses) {
  const uint64_t size = 65536, start = UINT64_C(0x7ff000000000);
  struct page_sample s;

  f->reader.page_size = size;
  fake_pages_map(&f->tree, 10,
                 &(struct fake_range){start, start + 100 * size, 0, "[stack]"},
                 1);
  fake_pages_put(&f->tree, 10, start / size, 100, FAKE_ANON | FAKE_EXCLUSIVE,
                 FRAME);
  s = sample(f, 200);
  assert_int_equal(s.looked_at, 100);
  assert_tally(&s.kinds[PAGE_ANON], 100, 100, 100, 100);
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

/* The layout of a process all of whose memory is present. After it is made, as
 * much is mapped elsewhere. */
static struct page_layout *lay_out(struct paged *f) {
  const struct fake_range both[] = {
      {START, START + PAGES_IN_ALL * PAGE, 0, 0},
      {2 * START, 2 * START + PAGES_IN_ALL * PAGE, 0, 0}};
  const struct page_request request = {.pages_wanted = 100, .seed = 1};
  struct page_sample s;

  paged_put(f, 0, PAGES_IN_ALL, FAKE_ANON | FAKE_EXCLUSIVE, true);
  s = sample_with(f, &request);
  assert_price(s.unseen, 0);
  fake_pages_map(&f->tree, 10, both, 2);
  return s.layout;
}

/* Half of the pages go, and come back elsewhere, as in a heap that is copied.
 * A quarter is not worth the time. */
PAGED_TEST(layout_is_made_anew_where_memory_has_moved) {
  struct page_request request = {.pages_wanted = 100, .seed = 1};
  struct page_layout *layout = lay_out(f);
  struct page_sample s;

  request.layout = layout;
  fake_pages_put(&f->tree, 10, 2 * FIRST, PAGES_IN_ALL / 4, FAKE_FILE, FRAME);
  paged_put(f, 0, PAGES_IN_ALL / 5, 0, false);
  s = sample_with(f, &request);
  assert_ptr_equal(s.layout, layout);
  assert_int_equal(s.layout_ns, 0);
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

/* Half of the layout is not present. By chance a sample shows more or less. */
PAGED_TEST(chance_is_no_page_beside_the_layout) {
  unsigned doubts = 0;

  paged_put(f, 0, PAGES_IN_ALL / 2, FAKE_ANON | FAKE_EXCLUSIVE, true);
  paged_resize(f, PAGES_IN_ALL / 2);
  for (uint64_t seed = 1; seed <= 200; seed++) {
    const struct page_request request = {.pages_wanted = 100, .seed = seed};
    struct page_sample s;

    s = sample_with(f, &request);
    doubts += s.unseen > 0;
    page_layout_drop(s.layout);
  }
  assert_true(doubts <= 10);
}

/* Pages of a file are on every second address of the first half; of the others
 * every one is anonymous. */
PAGED_TEST(present_pages_are_counted_by_kind) {
  struct page_sample s;

  for (uint64_t i = 0; i < PAGES_IN_ALL / 2; i += 2)
    paged_put(f, i, 1, FAKE_FILE, true);
  paged_put(f, PAGES_IN_ALL / 2, PAGES_IN_ALL / 2, FAKE_ANON, true);
  s = sample(f, PAGES_IN_ALL);
  assert_price(s.present[PAGE_ANON], PAGES_IN_ALL / 2.0);
  assert_price(s.present[PAGE_FILE], PAGES_IN_ALL / 4.0);
  assert_price(s.chance, 0);
  s = sample(f, 400);
  assert_in_range(s.present[PAGE_ANON], PAGES_IN_ALL / 2 - 20,
                  PAGES_IN_ALL / 2 + 20);
  assert_in_range(s.present[PAGE_FILE], PAGES_IN_ALL / 4 - 40,
                  PAGES_IN_ALL / 4 + 40);
  /* two of sqrt(3/4 * 1/4 / n) */
  assert_in_range(s.chance, 30, 45);
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

/* --- failures --- */

PAGED_TEST(failures_are_told) {
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

/* Root may open all: so the test is another user meanwhile. */
PAGED_TEST(refused_pagemap_is_told) {
  static const struct {
    const char *path;
    int result;
  } refused[] = {{"10/pagemap", -EPERM}, {"10/maps", PROCFS_DENIED}};

  paged_put(f, 0, 4, FAKE_ANON | FAKE_EXCLUSIVE, true);
  assert_int_equal(chmod(f->tree.root, 0755), 0);
  for (size_t i = 0; i < LENGTH(refused); i++) {
    char path[128];
    struct page_sample s;
    int rc;

    snprintf(path, sizeof(path), "%s/%s", f->tree.root, refused[i].path);
    assert_int_equal(chmod(path, 0), 0);
    if (geteuid() == 0 && seteuid(65534) != 0)
      skip();
    rc = read_sample(f, 100, &s);
    assert_int_equal(seteuid(getuid()), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(rc, refused[i].result);
  }
}

PAGED_TEST(dead_main_thread_is_sampled_through_a_live_one) {
  struct fake live = fake_process(12, "giant");
  struct page_sample s;
  char maps[128];

  paged_put(f, 0, 4, FAKE_ANON | FAKE_EXCLUSIVE, true);
  live.private_kb = 16;
  proctree_put_thread(&f->tree, 10, &live);
  proctree_write(&f->tree, "10/statm", TEXT("0 0 0 0 0 0 0\n"));
  snprintf(maps, sizeof(maps), "%llx-%llx rw-p 00000000 00:00 0 \n",
           (unsigned long long)START, (unsigned long long)(START + 4 * PAGE));
  proctree_write(&f->tree, "10/task/12/maps", maps, strlen(maps));
  proctree_rename(&f->tree, "10/pagemap", "10/task/12/pagemap");
  f->ref.is_dead_leader = true;
  s = sample(f, 100);
  assert_tally(&s.kinds[PAGE_ANON], 4, 4, 4, 4);
  assert_int_equal(s.statm.resident_pages, 4);
}
