/* SPDX-License-Identifier: MIT */
#include "proc/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "proc/pagemap.h"
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

/* --- mapcounts of large folios --- */

#define AVERAGES_SINCE_MAJOR 6
#define AVERAGES_SINCE_MINOR 15
#define COLLAPSE 25 /* MADV_COLLAPSE (6.1), which older headers lack */
#define COLLAPSE_TRIES 3
/* Processors with larger ones have larger pages, and few have them. */
#define HUGE_MOST (UINT64_C(32) << 20)
/* The page of the huge page that is given back. */
#define TRIED 7

/* Numbers of pagemap or kpagecount; false if one of them is missing. */
static bool read_page_numbers(const char *path, uint64_t first, uint64_t *ret,
                              size_t n) {
  int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
  size_t got = 0;

  if (fd < 0)
    return false;
  rc = pagemap_read(fd, first, ret, n, &got);
  close(fd);
  return rc == 0 && got == n;
}

/* The frame of a page of ours; 0 if it is not present, or hidden. */
static uint64_t frame_of(const char *memory, size_t page, size_t page_size) {
  uint64_t entry = 0;

  read_page_numbers("/proc/self/pagemap", (uintptr_t)memory / page_size + page,
                    &entry, 1);
  return pagemap_is_present(entry) ? pagemap_frame(entry) : 0;
}

/* Whether a page of a huge page still counts as mapped when it is not, and the
 * page after it is. */
static bool counts_unmapped(char *memory, size_t size, size_t page_size) {
  size_t last = size / page_size - 1;
  uint64_t frame, counts[2] = {0};

  memory[0] = 1;
  for (int i = 0; i < COLLAPSE_TRIES && madvise(memory, size, COLLAPSE) != 0 &&
                  errno == EAGAIN;
       i++)
    ;
  frame = frame_of(memory, 0, page_size);
  if (frame == 0 || frame_of(memory, last, page_size) != frame + last ||
      madvise(memory + TRIED * page_size, page_size, MADV_DONTNEED) != 0)
    return false;
  return read_page_numbers("/proc/kpagecount", frame + TRIED, counts, 2) &&
         counts[0] > 0 && counts[1] > 0 &&
         frame_of(memory, TRIED + 1, page_size) == frame + TRIED + 1;
}

bool kernel_averages_mapcounts(void) {
  size_t page_size = (size_t)sysconf(_SC_PAGESIZE), size;
  unsigned major, minor;
  char *room, *memory;
  bool is_counted;

  if (!kernel_release(&major, &minor) || major < AVERAGES_SINCE_MAJOR ||
      (major == AVERAGES_SINCE_MAJOR && minor < AVERAGES_SINCE_MINOR))
    return false;
  size =
      (size_t)read_number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
  if (size <= TRIED * page_size || size > HUGE_MOST)
    return false;
  room = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return false;
  memory = room + (size - (uintptr_t)room % size) % size;
  madvise(memory, size, MADV_HUGEPAGE);
  is_counted = counts_unmapped(memory, size, page_size);
  munmap(room, 2 * size);
  return is_counted;
}
