/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "proc/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "proctree.h"

/* The answer of uname(2), "" for a failure. */
static const char *release;

int __wrap_uname(struct utsname *u);
int __wrap_uname(struct utsname *u) {
  if (!*release) {
    errno = EFAULT;
    return -1;
  }
  snprintf(u->release, sizeof(u->release), "%s", release);
  return 0;
}

/* What pagemap and kpagecount show: each page has the frame of its number, one
 * of the frames is `absent`, and the page that is given back has a count. */
static struct {
  bool is_on;
  uint64_t count, next_count, hole;
  unsigned reads;
} frames;

/* Paths that stand for /sys/kernel/mm/ksm, for /sys/block and for
 * /sys/kernel/mm/hugepages, or NULL. */
static const struct proctree *ksm, *block, *hugepages;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
  const struct {
    const char *real;
    const struct proctree *tree;
  } places[] = {{"/sys/kernel/mm/ksm/", ksm},
                {"/sys/block/", block},
                {"/sys/kernel/mm/hugepages/", hugepages}};
  char whole[128];

  if (frames.is_on && strncmp(path, "/proc/", 6) == 0) /* any file will do */
    return __real_open("/dev/null", flags);
  for (size_t i = 0; i < LENGTH(places); i++) {
    size_t len = strlen(places[i].real);

    if (!places[i].tree || strncmp(path, places[i].real, len) != 0)
      continue;
    snprintf(whole, sizeof(whole), "%s/%s", places[i].tree->root, path + len);
    return __real_open(whole, flags);
  }
  return __real_open(path, flags, 0600);
}

/* --- mapcounts of large folios --- */

ssize_t __real_pread(int fd, void *buffer, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t offset) {
  uint64_t *numbers = buffer;

  if (!frames.is_on)
    return __real_pread(fd, buffer, size, offset);
  frames.reads++;
  if (size == 2 * sizeof(*numbers)) {
    numbers[0] = frames.count;
    numbers[1] = frames.next_count;
    return (ssize_t)size;
  }
  assert_int_equal(size, sizeof(*numbers));
  numbers[0] = UINT64_C(1) << 63 | (uint64_t)offset / 8;
  if (frames.hole && (uint64_t)offset / 8 % 512 == frames.hole)
    numbers[0] = 0;
  return (ssize_t)size;
}

/* Where there are huge pages at all. */
static bool has_huge_pages(void) {
  return access("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", R_OK) ==
         0;
}

TEST(a_page_that_is_given_back_shows_averages) {
  static const struct {
    const char *release;
    uint64_t count, next_count, hole;
    bool averages, is_tried;
  } cases[] = {
      {"6.15.0", 1, 1, 0, true, true},
      {"7.0", 1, 1, 0, true, true},
      {"6.18.5", 0, 1, 0, false, true},
      /* the huge page is gone, or none could be had */
      {"6.18.5", 1, 0, 0, false, true},
      {"6.18.5", 1, 1, 511, false, true},
      {"6.18.5", 1, 1, 8, false, true},
      {"6.14.9", 1, 1, 0, false, false},
      {"5.10.0", 1, 1, 0, false, false},
      {"", 1, 1, 0, false, false},
  };

  if (!has_huge_pages())
    skip();
  for (size_t i = 0; i < LENGTH(cases); i++) {
    release = cases[i].release;
    frames.is_on = true;
    frames.count = cases[i].count;
    frames.next_count = cases[i].next_count;
    frames.hole = cases[i].hole;
    frames.reads = 0;
    assert_int_equal(kernel_averages_mapcounts(), cases[i].averages);
    frames.is_on = false;
    assert_int_equal(frames.reads > 0, cases[i].is_tried);
  }
}

TEST(release_begins_with_two_numbers) {
  static const struct {
    const char *release;
    bool is_one;
    unsigned major, minor;
  } cases[] = {
      {"6.18.5", true, 6, 18}, {"4.14.0-3-amd64", true, 4, 14},
      {"5.10+", true, 5, 10},  {"6", false, 0, 0},
      {"6-rc1", false, 0, 0},  {"6.x", false, 0, 0},
      {"x.6", false, 0, 0},    {"", false, 0, 0},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    unsigned major = 77, minor = 77;
    bool is_one;

    release = cases[i].release;
    is_one = kernel_release(&major, &minor);
    if (is_one != cases[i].is_one)
      fail_msg("\"%s\" is %sone", cases[i].release, is_one ? "" : "n");
    if (is_one) {
      assert_int_equal(major, cases[i].major);
      assert_int_equal(minor, cases[i].minor);
    }
  }
}

static void put(const struct proctree *tree, const char *path,
                const char *text) {
  if (text)
    proctree_write(tree, path, text, strlen(text));
}

/* The texts of run and pages_sharing; NULL means that there is no such file. */
TEST(merging_means_that_ksm_runs_and_has_merged_pages) {
  static const struct {
    const char *run, *sharing;
    bool is_merging;
  } cases[] = {
      {"1\n", "1\n", true},
      {"1\n", "0\n", false},
      {"0\n", "1\n", false},
      {"2\n", "1\n", false}, /* all is taken apart */
      {"1\n", NULL, false},
      {NULL, "1\n", false},
      {"1\n", "", false},
      {"on\n", "1\n", false},
      {"1\n", "18446744073709551616\n", false},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct proctree tree;
    struct ksm found;

    proctree_make(&tree);
    put(&tree, "run", cases[i].run);
    put(&tree, "pages_sharing", cases[i].sharing);
    ksm = &tree;
    kernel_read_ksm(&found);
    ksm = NULL;
    proctree_remove(&tree);
    if (ksm_is_merging(&found) != cases[i].is_merging)
      fail_msg("case %zu: merging is %d", i, ksm_is_merging(&found));
  }
}

static uint64_t zram_of(const struct proctree *tree) {
  uint64_t bytes;

  block = tree;
  bytes = kernel_zram_bytes();
  block = NULL;
  return bytes;
}

/* mm_stat has the original data, compressed, memory used, its limit, … */
TEST(zram_is_the_memory_of_all_devices) {
  struct proctree tree;

  proctree_make(&tree);
  assert_int_equal(zram_of(&tree), 0);
  put(&tree, "zram0/mm_stat", "     100      50    4096 0 8192 0 0 0 0\n");
  assert_int_equal(zram_of(&tree), 4096);
  put(&tree, "zram1/mm_stat", "0 0 0 0 0 0 0\n");
  put(&tree, "zram2/mm_stat", "300 200 12288 0 12288 0 0\n");
  assert_int_equal(zram_of(&tree), 16384);
  put(&tree, "zram3/mm_stat", "100 50\n");
  assert_int_equal(zram_of(&tree), 16384);
  put(&tree, "zram3/mm_stat", "");
  assert_int_equal(zram_of(&tree), 16384);
  proctree_remove(&tree);
}

static uint64_t free_but(const struct proctree *tree, uint64_t default_size) {
  uint64_t bytes;

  hugepages = tree;
  bytes = kernel_hugetlb_free(default_size);
  hugepages = NULL;
  return bytes;
}

TEST(free_huge_pages_are_of_all_sizes_but_the_default) {
  struct proctree tree;

  proctree_make(&tree);
  assert_int_equal(free_but(&tree, 2 * MIB), 0);
  put(&tree, "hugepages-2048kB/free_hugepages", "7\n");
  assert_int_equal(free_but(&tree, 2 * MIB), 0);
  assert_int_equal(free_but(&tree, 1024 * MIB), 14 * MIB);
  put(&tree, "hugepages-1048576kB/free_hugepages", "3\n");
  put(&tree, "hugepages-64kB/free_hugepages", "5\n");
  put(&tree, "hugepages-16777216kB/free_hugepages", "1\n");
  assert_int_equal(free_but(&tree, 2 * MIB),
                   3 * 1024 * MIB + 5 * 64 * KIB + 16 * 1024 * MIB);
  proctree_remove(&tree);
}

TEST(a_stack_is_of_16_kib_or_a_page) {
  assert_int_equal(kernel_stack_size(4096), sizeof(void *) == 4 ? 8192 : 16384);
  assert_int_equal(kernel_stack_size(65536), 65536);
}
