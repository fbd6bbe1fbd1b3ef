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
