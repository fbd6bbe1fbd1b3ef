/* SPDX-License-Identifier: MIT */
#include "proc/units.h"

#include <errno.h>
#include <unistd.h>

#define PAGE_SIZE_LEAST 4096
#define PAGE_SIZE_MOST (UINT64_C(1) << 20)
#define TICKS_MOST 1000000

int units_read(struct procfs *procfs, struct units *ret) {
  struct units u = {.page_size = (uint64_t)sysconf(_SC_PAGESIZE),
                    .ticks = (uint64_t)sysconf(_SC_CLK_TCK)};
  struct span text = {.len = 0}, line;
  int rc = procfs_read(procfs, 0, "getconf", &text);
  struct cursor s = cursor_begin(text.text, text.len);

  if (rc < 0)
    return rc;
  while (parse_line(&s, &line)) {
    struct cursor l = cursor_begin(line.text, line.len);
    uint64_t *value = parse_word(&l, "PAGESIZE ")  ? &u.page_size
                      : parse_word(&l, "CLK_TCK ") ? &u.ticks
                                                   : NULL;

    if (value && (!parse_u64(&l, value) || !cursor_is_done(&l)))
      return -EBADMSG;
  }
  if (u.page_size < PAGE_SIZE_LEAST || u.page_size > PAGE_SIZE_MOST ||
      (u.page_size & (u.page_size - 1)) != 0 || u.ticks == 0 ||
      u.ticks > TICKS_MOST)
    return -EBADMSG;
  *ret = u;
  return 0;
}
