#include "proc/kernel.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <smaps/text.h>

bool kernel_release(unsigned *ret_major, unsigned *ret_minor) {
  struct utsname u;
  struct cursor s;

  if (uname(&u) != 0)
    return false;
  s = cursor_begin(u.release, strlen(u.release));
  return parse_u32(&s, ret_major) && parse_char(&s, '.') &&
         parse_u32(&s, ret_minor);
}

/* Reads number `place` of a file, from 0; numbers are separated by blanks.
 * False if the file cannot be opened. The result is 0 if there is no such
 * number. */
static bool read_nth(const char *path, unsigned place, uint64_t *ret) {
  uint64_t number = 0;
  char text[256];
  struct cursor s;
  ssize_t n;
  int fd = open(path, O_RDONLY | O_CLOEXEC);

  if (fd < 0)
    return false;
  n = read(fd, text, sizeof(text));
  close(fd);
  s = cursor_begin(text, n > 0 ? (size_t)n : 0);
  *ret = 0;
  for (unsigned i = 0; i <= place; i++) {
    skip_blanks(&s);
    if (!parse_u64(&s, &number))
      return true;
  }
  *ret = number;
  return true;
}

static uint64_t read_number(const char *path) {
  uint64_t number;

  return read_nth(path, 0, &number) ? number : 0;
}

uint64_t kernel_mappings_most(void) {
  uint64_t most = read_number("/proc/sys/vm/max_map_count");

  return most ? most : UINT64_MAX;
}

void kernel_read_ksm(struct ksm *ret) {
  *ret = (struct ksm){.run = read_number("/sys/kernel/mm/ksm/run"),
                      .pages_sharing =
                          read_number("/sys/kernel/mm/ksm/pages_sharing")};
}

/*
 * mm_stat of a zram device (Documentation/admin-guide/blockdev/zram.rst): its
 * third number is the memory of the pool, in bytes. Devices that are not in use
 * have zeros.
 */
#define ZRAM_USED 2

uint64_t kernel_zram_bytes(void) {
  uint64_t sum = 0, used;
  char path[48];

  for (int i = 0;; i++) {
    snprintf(path, sizeof(path), "/sys/block/zram%d/mm_stat", i);
    if (!read_nth(path, ZRAM_USED, &used))
      return sum;
    sum += used;
  }
}

/* From 64 KiB (arm64) to 16 GiB (powerpc). */
#define HUGE_KB_LEAST UINT64_C(64)
#define HUGE_KB_MOST (UINT64_C(16) << 20)

uint64_t kernel_hugetlb_free(uint64_t default_size) {
  uint64_t sum = 0;
  char path[80];

  for (uint64_t kb = HUGE_KB_LEAST; kb <= HUGE_KB_MOST; kb *= 2) {
    if (kb * 1024 == default_size)
      continue;
    snprintf(path, sizeof(path),
             "/sys/kernel/mm/hugepages/hugepages-%" PRIu64 "kB/free_hugepages",
             kb);
    sum += read_number(path) * kb * 1024;
  }
  return sum;
}
