/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sample/page_layout.h"

#include "paged.h"

/* As if the file were on hugetlbfs. */
static bool is_hugetlbfs;

int __real_fstatfs(int fd, struct statfs *ret);
int __wrap_fstatfs(int fd, struct statfs *ret);
int __wrap_fstatfs(int fd, struct statfs *ret) {
  int rc = __real_fstatfs(fd, ret);

  if (is_hugetlbfs)
    ret->f_type = (__typeof__(ret->f_type))HUGETLBFS_MAGIC;
  return rc;
}

struct fixture {
  struct paged in;
  struct page_layout *layout;
};

static void begin(struct fixture *f) {
  f->layout = NULL;
  paged_make(&f->in, 1);
}

static void done(struct fixture *f) {
  page_layout_drop(f->layout);
  paged_remove(&f->in);
}

TEST_OBJECT(struct fixture, begin, done)
#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

/* Makes the layout anew. */
static int read_layout(struct fixture *f, uint64_t resident_pages) {
  int fd = -1, rc;

  page_layout_drop(f->layout);
  f->layout = NULL;
  procfs_open_file(f->in.procfs, 10, "pagemap", &fd);
  rc =
      page_layout_read(&f->in.reader, 10, fd, resident_pages, NULL, &f->layout);
  if (fd >= 0)
    close(fd);
  return rc;
}

static uint64_t count_pages(const struct fixture *f) {
  return page_layout_pages(f->layout, PAGES_ALL);
}

static uint64_t page_at(const struct fixture *f, uint64_t number,
                        bool *ret_is_shmem) {
  struct page_walk walk = {.layout = f->layout};
  uint64_t page = 0;

  assert_true(page_walk_to(&walk, number, &page));
  *ret_is_shmem = walk.run.is_shmem;
  return page;
}

/* The pages of the layout are in order, and none is there twice. */
static void assert_ordered(const struct fixture *f) {
  struct page_run run;
  uint64_t last = 0;

  for (size_t at = 0; page_layout_next(f->layout, PAGES_ALL, &at, &run);) {
    assert_true(run.first >= last && run.end > run.first);
    last = run.end;
  }
}

static bool has_page(const struct fixture *f, uint64_t page) {
  struct page_run run;

  for (size_t at = 0; page_layout_next(f->layout, PAGES_ALL, &at, &run);)
    if (page >= run.first && page < run.end)
      return true;
  return false;
}

static bool is_zero(const struct fixture *f, uint64_t i) {
  return f->in.can_scan && i >= f->in.zero && i < f->in.zero_end;
}

static void map_one(const struct fixture *f, uint64_t pages) {
  fake_pages_map(&f->in.tree, 10,
                 &(struct fake_range){START, START + pages * PAGE, 0, 0}, 1);
}

/* --- from maps --- */

FIXTURE_TEST(mappings_without_resident_pages_are_left_out) {
  static const struct {
    const char *name, *permissions;
    bool is_in, is_shmem;
  } cases[] = {
      {NULL, "rw-p", true, false},
      {"[heap]", "rw-p", true, false},
      {"[anon:vvar]", "rw-p", true, false},
      {"/usr/bin/server", "r-xp", true, false},
      {"/memfd", "rw-s", true, false},
      {"/dev/shm/x", "rw-s", true, true},
      {"/dev/zero (deleted)", "rw-s", true, true},
      {"/dev/zero", "rw-s", true, true},
      {"/memfd:heap (deleted)", "rw-s", true, true},
      {"/SYSV00000000 (deleted)", "rw-s", true, true},
      {"[anon_shmem:x]", "rw-s", true, true},
      {"/dev/shm/x", "rw-p", true, false},
      {"/memfd:sealed (deleted)", "r--p", true, false},
      {NULL, "---p", false, false},
      {NULL, "--xp", true, false},
      {"/anon_hugepage (deleted)", "rw-p", false, false},
      {"/dev/hugepages/x", "rw-s", false, false},
      {"/dev/shmem", "rw-s", false, false},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    const struct fake_range range = {START, START + 4 * PAGE,
                                     cases[i].permissions, cases[i].name};
    bool is_shmem = false;

    fake_pages_map(&f->in.tree, 10, &range, 1);
    assert_int_equal(read_layout(f, 4), 0);
    assert_int_equal(count_pages(f), cases[i].is_in ? 4 : 0);
    if (cases[i].is_in)
      assert_int_equal(page_at(f, 3, &is_shmem), START / PAGE + 3);
    assert_int_equal(is_shmem, cases[i].is_shmem);
  }
}

/* With the right to see map_files. */
FIXTURE_TEST(memory_on_hugetlbfs_is_left_out) {
  static const struct {
    const char *name;
    uint64_t pages;
    bool is_hugetlbfs, is_in;
  } cases[] = {
      {"/memfd:heap (deleted)", 64, true, false},
      {"/SYSV00000000 (deleted)", 64, true, false},
      {"/memfd:heap (deleted)", 64, false, true},
      {"/srv/file", 64, true, true},
      {"[heap]", 64, true, true},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    const uint64_t end = START + cases[i].pages * PAGE;
    const struct fake_range range = {START, end, "rw-s", cases[i].name};
    char path[64];

    snprintf(path, sizeof(path), "10/map_files/%llx-%llx",
             (unsigned long long)START, (unsigned long long)end);
    proctree_write(&f->in.tree, path, "", 0);
    fake_pages_map(&f->in.tree, 10, &range, 1);
    is_hugetlbfs = cases[i].is_hugetlbfs;
    assert_int_equal(read_layout(f, 64), 0);
    is_hugetlbfs = false;
    assert_int_equal(count_pages(f), cases[i].is_in ? cases[i].pages : 0);
  }
}

/* Wherever it is mounted, by the device in maps, which has hexadecimal digits.
 */
FIXTURE_TEST(memory_of_mounted_hugetlbfs_is_left_out) {
  static const struct {
    const char *device;
    bool is_in;
  } cases[] = {{"00:2a", false},  {"00:2b", true}, {"103:2a", true},
               {"103:ff", false}, {"00:42", true}, {"x", true}};

  proctree_print(&f->in.tree, 10, "mountinfo",
                 "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                 "nonsense\n"
                 "71 20 0:42 / /mnt/huge rw - hugetlbfs none rw\n"
                 "72 20 0:43 / /mnt/hugetlbfs rw - tmpfs hugetlbfs rw\n"
                 "73 20 259:255 / /mnt/1G rw - hugetlbfs none rw\n");
  for (size_t i = 0; i < LENGTH(cases); i++) {
    proctree_print(&f->in.tree, 10, "maps",
                   "400000-440000 rw-s 00000000 %s 7    /mnt/huge/segment\n",
                   cases[i].device);
    assert_int_equal(read_layout(f, 64), 0);
    assert_int_equal(count_pages(f), cases[i].is_in ? 64 : 0);
  }
}

/* The mounts of 100, of which 64 are remembered. */
FIXTURE_TEST(mounts_of_hugetlbfs_are_limited) {
  char *text = NULL;
  size_t len = 0;
  FILE *out = open_memstream(&text, &len);

  for (int i = 0; i < 100; i++)
    fprintf(out, "%d 20 0:%d / /mnt/%d rw - hugetlbfs none rw\n", i, 16 + i, i);
  fclose(out);
  proctree_write(&f->in.tree, "10/mountinfo", text, len);
  free(text);
  for (unsigned i = 0; i < 100; i++) {
    proctree_print(&f->in.tree, 10, "maps",
                   "400000-440000 rw-s 00000000 00:%02x 7    /x\n", 16 + i);
    assert_int_equal(read_layout(f, 64), 0);
    assert_int_equal(count_pages(f), i < 64 ? 0 : 64);
  }
}

/* The third is as the first, and not as its neighbour. */
FIXTURE_TEST(neighbours_of_another_sort_stay_apart) {
  const struct fake_range ranges[] = {
      {START, START + 4 * PAGE, "rw-s", "/dev/shm/x"},
      {START + 4 * PAGE, START + 8 * PAGE, NULL, NULL},
      {START + 8 * PAGE, START + 12 * PAGE, "rw-s", "/dev/shm/x"}};

  fake_pages_map(&f->in.tree, 10, ranges, LENGTH(ranges));
  assert_int_equal(read_layout(f, 12), 0);
  assert_int_equal(page_layout_pages(f->layout, PAGES_SHMEM), 8);
  assert_int_equal(page_layout_pages(f->layout, PAGES_OWN), 4);
  assert_int_equal(count_pages(f), 12);
}

/* An allocator that is not the C library's counts nothing. */
FIXTURE_TEST(a_layout_is_freed_with_its_last_holder) {
  size_t before = 0;

  map_one(f, 4);
  for (int i = 0; i < 2; i++) {
    if (i == 1) /* after what is read once */
      before = heap_used();
    assert_int_equal(read_layout(f, 4), 0);
    assert_ptr_equal(page_layout_share(f->layout), f->layout);
    page_layout_drop(f->layout);
    assert_int_equal(count_pages(f), 4);
    page_layout_drop(f->layout);
    f->layout = NULL;
  }
  assert_int_equal(heap_used(), before);
}

/* The ranges have one page each, with gaps between them. */
FIXTURE_TEST(ranges_are_limited) {
  const size_t n = 131072 + 1;
  struct fake_range *ranges = calloc(n, sizeof(*ranges));

  for (size_t i = 0; i < n; i++) {
    ranges[i].start = START + i * 2 * PAGE;
    ranges[i].end = ranges[i].start + PAGE;
  }
  fake_pages_map(&f->in.tree, 10, ranges, n);
  assert_int_equal(read_layout(f, n), -EFBIG);
  fake_pages_map(&f->in.tree, 10, ranges, n - 1);
  assert_int_equal(read_layout(f, n - 1), 0);
  assert_int_equal(count_pages(f), n - 1);
  /* Neighbours are one. */
  for (size_t i = 0; i < n; i++)
    ranges[i] = (struct fake_range){START + i * PAGE, START + (i + 1) * PAGE,
                                    NULL, NULL};
  fake_pages_map(&f->in.tree, 10, ranges, n);
  assert_int_equal(read_layout(f, n), 0);
  assert_int_equal(count_pages(f), n);
  free(ranges);
}

/* --- refining --- */

/* 64 windows of 512 pages, of which one in 64 is present. */
#define WINDOWS 64
#define MAPPED (UINT64_C(512) * WINDOWS)

static void put_thin(const struct fixture *f, uint64_t from) {
  map_one(f, MAPPED);
  paged_put(&f->in, 0, MAPPED, 0, false);
  for (uint64_t i = from; i < MAPPED; i += 64)
    paged_put(&f->in, i, 1, i % 128 ? FAKE_ANON : FAKE_FILE, false);
}

/* From 6.7 on by PAGEMAP_SCAN, which does not find the zero page. */
FIXTURE_TEST(sparse_layout_is_refined_to_present_pages) {
  put_thin(f, 5);
  paged_put(&f->in, 500, 40, FAKE_ANON, false);
  paged_put(&f->in, 3, 1, FAKE_SWAPPED, false);
  for (int can_scan = 0; can_scan < 2; can_scan++) {
    unsigned zero_pages = can_scan ? 10 : 0;

    f->in.can_scan = can_scan;
    f->in.zero = 510;
    f->in.zero_end = 520;
    assert_int_equal(read_layout(f, 100), 0);
    /* One of these 40 ranges was there before. */
    assert_int_equal(count_pages(f), MAPPED / 64 + 40 - 1 - zero_pages);
    assert_ordered(f);
    for (uint64_t i = 5; i < MAPPED; i += 64)
      assert_true(has_page(f, START / PAGE + i) != is_zero(f, i));
    for (uint64_t i = 500; i < 540; i++)
      assert_true(has_page(f, START / PAGE + i) != is_zero(f, i));
  }
  /* A call finds 256 regions at most, of the 513. */
  assert_int_equal(f->in.scans, 3);
}

/* Two mappings have a third between them that is left out, one window is full,
 * and a page is missing between two. */
FIXTURE_TEST(refining_stays_within_mappings) {
  const struct fake_range ranges[] = {
      {START, START + 100 * PAGE, NULL, NULL},
      {START + 100 * PAGE, START + 200 * PAGE, "rw-s", "/dev/card0"},
      {START + 200 * PAGE, START + 8192 * PAGE, NULL, NULL}};

  fake_pages_map(&f->in.tree, 10, ranges, LENGTH(ranges));
  paged_put(&f->in, 0, 8192, 0, false);
  paged_put(&f->in, 90, 120, FAKE_ANON, false);
  paged_put(&f->in, 1024, 1024, FAKE_ANON, false);
  paged_put(&f->in, 3000, 1, FAKE_ANON, false);
  paged_put(&f->in, 3002, 1, FAKE_ANON, false);
  for (int can_scan = 0; can_scan < 2; can_scan++) {
    f->in.can_scan = can_scan;
    assert_int_equal(read_layout(f, 100), 0);
    assert_int_equal(count_pages(f), 10 + 10 + 1024 + 2);
    assert_ordered(f);
  }
}

/* Ranges that were not refined stay as they are. */
FIXTURE_TEST(refining_stops_for_time) {
  put_thin(f, 5);
  f->in.step_ns = MS; /* for a window; 2 of them until the time has passed */
  assert_int_equal(read_layout(f, 100), 0);
  assert_int_equal(count_pages(f), MAPPED - 2 * 512 + 2 * 512 / 64);
  assert_ordered(f);
  for (uint64_t i = 5; i < MAPPED; i += 64)
    assert_true(has_page(f, START / PAGE + i));
}

FIXTURE_TEST(refining_that_fails_leaves_nothing) {
  size_t before = 0;

  put_thin(f, 5);
  for (unsigned at = 1; at <= WINDOWS + 1; at++) {
    f->in.fails_at = at;
    assert_int_equal(read_layout(f, 100), at <= WINDOWS ? -EIO : 0);
    if (at == 10) /* after what is read once, and kept */
      before = heap_used();
    if (at >= 10 && at <= WINDOWS)
      assert_int_equal(heap_used(), before);
  }
}

/* Pages that are present count, but not as much as a read. */
FIXTURE_TEST(refining_pauses) {
  put_thin(f, 5);
  assert_int_equal(read_layout(f, 100), 0);
  assert_int_equal(f->in.pauses, (4 + WINDOWS * (1 + 512 / 64 / 8)) / 64);
  assert_string_equal(f->in.file, "pagemap");
}
