/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sample/page_lookup.h"

#define BIT(n) (UINT64_C(1) << (n))

static int make_file(const uint64_t *numbers, size_t n) {
  char name[] = "/tmp/smaps-pagemap-XXXXXX";
  int fd = mkstemp(name);

  assert_true(fd >= 0);
  unlink(name);
  assert_int_equal(write(fd, numbers, n * 8), n * 8);
  return fd;
}

TEST(failed_calls_leave_results_alone) {
  struct pagemap_region region = {0};
  uint64_t number = 7, end = 7;
  int fd = make_file(&number, 1);
  size_t n = 7;

  assert_int_equal(
      pagemap_scan(fd, 0, PAGE, PAGEMAP_PRESENT, 0, &region, 1, &n, &end),
      -ENOTTY);
  close(fd);
  assert_int_equal(pagemap_read(fd, 0, &number, 1, &n), -EBADF);
  assert_int_equal(n, 7);
  assert_int_equal(end, 7);
  assert_int_equal(number, 7);
}

/* The first two numbers of splitmix64 after the seed 1234567, as its author's
 * program prints them: fractions of 2^64. */
TEST(random_numbers_are_those_of_splitmix64) {
  static const uint64_t of_author[] = {UINT64_C(6457827717110365317),
                                       UINT64_C(3203168211198807973)};
  struct page_lookup l = {.random = 1234567};

  for (size_t i = 0; i < LENGTH(of_author); i++) {
    double off =
        page_lookup_random(&l) - (double)of_author[i] / 18446744073709551616.0;

    assert_true(off > -1e-15 && off < 1e-15);
  }
}

/* One of each for every sample: a daemon would run out of them. */
TEST(all_files_are_closed) {
  const uint64_t number = 7;

  for (int has_counts = 0; has_counts < 2; has_counts++) {
    struct page_lookup l = {.pagemap = make_file(&number, 1), .pagecount = -1};

    if (has_counts)
      l.pagecount = make_file(&number, 1);
    page_lookup_close(&l);
    assert_int_equal(fcntl(l.pagemap, F_GETFD), -1);
    assert_int_equal(fcntl(l.pagecount, F_GETFD), -1);
  }
}

/* --- the running kernel: our own memory, which takes no right --- */

static volatile char read_byte; /* valgrind drops what is not used */

/* Four pages: one written, one read, two left alone. Huge pages of any size
 * would be written around the first. */
static uint64_t make_memory(uint64_t size) {
  char *memory = mmap(NULL, (size_t)(4 * size), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  assert_true(memory != MAP_FAILED);
  /* Fails where the kernel has none. */
  madvise(memory, (size_t)(4 * size), MADV_NOHUGEPAGE);
  *(volatile char *)memory = 1;
  read_byte = *(volatile char *)(memory + size);
  return (uintptr_t)memory;
}

static void drop_memory(uint64_t address, uint64_t size) {
  munmap((void *)(uintptr_t)address, (size_t)(4 * size));
}

/* True if the page that was only read is the zero page, which is nobody's. Some
 * kernels have none, or not in each process, and give it a page of its own. */
static bool is_zero_page(int fd, uint64_t page) {
  uint64_t entry = 0;
  size_t n = 0;

  return pagemap_read(fd, page, &entry, 1, &n) == 0 && n == 1 &&
         pagemap_is_present(entry) && !pagemap_is_exclusive(entry);
}

struct found {
  unsigned with, without;
  size_t n;
  uint64_t first, end; /* pages */
};

static void check_found(int fd, uint64_t address, uint64_t size,
                        const struct found *expected) {
  struct pagemap_region regions[4] = {{0}};
  uint64_t end = 0;
  size_t n = 9;
  int rc = pagemap_scan(fd, address, address + 4 * size, expected->with,
                        expected->without, regions, 4, &n, &end);

  if (rc == -ENOTTY || rc == -EBADF) /* before 6.7, or none */
    skip();
  assert_int_equal(rc, 0);
  assert_int_equal(n, expected->n);
  assert_int_equal(end, address + 4 * size);
  if (n == 0)
    return;
  assert_int_equal(regions[0].start, address + expected->first * size);
  assert_int_equal(regions[0].end, address + expected->end * size);
  assert_int_equal(regions[0].categories, expected->with);
}

TEST(own_pages_are_found_by_category) {
  uint64_t size = (uint64_t)getpagesize();
  uint64_t address = make_memory(size);
  int fd = open("/proc/self/pagemap", O_RDONLY);
  bool is_zero = is_zero_page(fd, address / size + 1);
  const struct found cases[] = {
      {PAGEMAP_PRESENT, 0, 1, 0, 2},
      {PAGEMAP_PRESENT, PAGEMAP_ZERO, 1, 0, is_zero ? 1 : 2},
      {PAGEMAP_ZERO, 0, is_zero, 1, 2},
      {PAGEMAP_HUGE, 0, 0, 0, 0},
  };

  for (size_t i = 0; i < LENGTH(cases); i++)
    check_found(fd, address, size, &cases[i]);
  close(fd);
  drop_memory(address, size);
}
