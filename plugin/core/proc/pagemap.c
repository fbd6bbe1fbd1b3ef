/* SPDX-License-Identifier: MIT */
#include "proc/pagemap.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "proc/procfs.h"

int pagemap_read(int fd, uint64_t first, uint64_t *entries, size_t n,
                 size_t *ret_n) {
  ssize_t got = pread(fd, entries, n * sizeof(*entries),
                      (off_t)(first * sizeof(*entries)));

  if (got < 0)
    return procfs_outcome_of(errno);
  *ret_n = (size_t)got / sizeof(*entries);
  return 0;
}

/* struct pm_scan_arg of <linux/fs.h>, which older headers lack. */
struct scan_arg {
  uint64_t size;
  uint64_t flags;
  uint64_t start, end;
  uint64_t walk_end; /* set by the kernel */
  uint64_t regions, max_regions;
  uint64_t max_pages;
  /* A page is found if, with the inverted categories flipped, it has all of
   * `mask` and any of `any_mask`. */
  uint64_t inverted, mask, any_mask;
  uint64_t return_mask;
};

/* To musl a request is an int; the kernel takes the same bits. */
#ifdef __GLIBC__
#define SCAN _IOWR('f', 16, struct scan_arg)
#else
#define SCAN ((int)_IOWR('f', 16, struct scan_arg))
#endif

int pagemap_scan(int fd, uint64_t start, uint64_t end, unsigned with,
                 unsigned without, struct pagemap_region *regions, size_t max,
                 size_t *ret_n, uint64_t *ret_end) {
  struct scan_arg arg = {.size = sizeof(arg),
                         .start = start,
                         .end = end,
                         .regions = (uintptr_t)regions,
                         .max_regions = max,
                         .inverted = without,
                         .mask = with | without,
                         .return_mask = with};
  int n = ioctl(fd, SCAN, &arg);

  /* An emulator says ENOSYS of an ioctl that it does not know. */
  if (n < 0)
    return errno == ENOSYS ? -ENOTTY : -errno;
  *ret_n = (size_t)n;
  *ret_end = arg.walk_end;
  return 0;
}
