#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sample/page_lookup.h"

#define BIT(n) (UINT64_C(1) << (n))

TEST(entries_are_decoded) {
  static const struct {
    uint64_t entry, frame;
    bool is_present, is_file, is_exclusive;
  } cases[] = {
      {0, 0, false, false, false},
      {BIT(63), 0, true, false, false},
      {BIT(63) | 0x1234, 0x1234, true, false, false},
      {BIT(63) | BIT(61) | BIT(56) | 7, 7, true, true, true},
      {BIT(63) | BIT(55) | BIT(54), BIT(54), true, false, false},
      {BIT(62) | BIT(56), 0, false, false, false}, /* before 6.11 */
      {BIT(62) | BIT(61), 0, false, true, false},
      {BIT(63) | (BIT(56) - 1), BIT(55) - 1, true, false, false},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    uint64_t e = cases[i].entry;

    assert_int_equal(pagemap_is_present(e), cases[i].is_present);
    assert_int_equal(pagemap_is_file(e), cases[i].is_file);
    assert_int_equal(pagemap_is_exclusive(e), cases[i].is_exclusive);
    assert_int_equal(pagemap_frame(e), cases[i].frame);
  }
}

static int make_file(const uint64_t *numbers, size_t n) {
  char name[] = "/tmp/smaps-pagemap-XXXXXX";
  int fd = mkstemp(name);

  assert_true(fd >= 0);
  unlink(name);
  assert_int_equal(write(fd, numbers, n * 8), n * 8);
  return fd;
}

TEST(numbers_are_read_up_to_the_end_of_the_file) {
  static const uint64_t numbers[] = {1, 2, 3};
  uint64_t got[4] = {0};
  int fd = make_file(numbers, 3);
  size_t n = 9;

  assert_int_equal(pagemap_read(fd, 1, got, 4, &n), 0);
  assert_int_equal(n, 2);
  assert_int_equal(got[0], 2);
  assert_int_equal(got[1], 3);
  assert_int_equal(pagemap_read(fd, 0, got, 1, &n), 0);
  assert_int_equal(n, 1);
  assert_int_equal(got[0], 1);
  assert_int_equal(pagemap_read(fd, UINT64_C(1) << 45, got, 1, &n), 0);
  assert_int_equal(n, 0);
  close(fd);
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

/* --- the running kernel: our own memory, which takes no right --- */

static volatile char read_byte; /* valgrind drops what is not used */

/* Four pages: one written, one read, two left alone. */
static uint64_t make_memory(uint64_t size) {
  volatile char *memory = mmap(NULL, (size_t)(4 * size), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  assert_true(memory != MAP_FAILED);
  memory[0] = 1;
  read_byte = memory[size];
  return (uintptr_t)memory;
}

static void drop_memory(uint64_t address, uint64_t size) {
  munmap((void *)(uintptr_t)address, (size_t)(4 * size));
}

TEST(own_pages_are_found_by_category) {
  static const struct {
    unsigned with, without;
    size_t n;
    uint64_t first, end; /* pages */
  } cases[] = {
      {PAGEMAP_PRESENT, 0, 1, 0, 2},
      {PAGEMAP_PRESENT, PAGEMAP_ZERO, 1, 0, 1},
      {PAGEMAP_ZERO, 0, 1, 1, 2},
      {PAGEMAP_HUGE, 0, 0, 0, 0},
  };
  uint64_t size = (uint64_t)getpagesize();
  uint64_t address = make_memory(size);
  int fd = open("/proc/self/pagemap", O_RDONLY);

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct pagemap_region regions[4] = {{0}};
    uint64_t end = 0;
    size_t n = 9;
    int rc = pagemap_scan(fd, address, address + 4 * size, cases[i].with,
                          cases[i].without, regions, 4, &n, &end);

    if (rc == -ENOTTY || rc == -EBADF) /* before 6.7, or none */
      skip();
    assert_int_equal(rc, 0);
    assert_int_equal(n, cases[i].n);
    assert_int_equal(end, address + 4 * size);
    if (n == 0)
      continue;
    assert_int_equal(regions[0].start, address + cases[i].first * size);
    assert_int_equal(regions[0].end, address + cases[i].end * size);
    assert_int_equal(regions[0].categories, cases[i].with);
  }
  close(fd);
  drop_memory(address, size);
}
