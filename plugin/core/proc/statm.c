#include "proc/statm.h"

#include <errno.h>

/*
 * 765 418 390 5 0 123 0
 *
 * size, resident, shared, text, lib, data and dirty; lib and dirty are 0 since
 * 2.6.
 */
int statm_parse(const char *text, size_t len, struct statm_sample *ret) {
  struct cursor s = cursor_begin(text, len);
  uint64_t pages[7] = {0};

  for (int i = 0; i < 7; i++)
    if (!parse_u64(&s, &pages[i]) || !parse_char(&s, i < 6 ? ' ' : '\n'))
      return -EBADMSG;
  /* task_statm() prints resident as shared plus anonymous, whatever the
   * precision of its counters. */
  if (!cursor_is_done(&s) || pages[2] > pages[1])
    return -EBADMSG;
  *ret = (struct statm_sample){.size_pages = pages[0],
                               .resident_pages = pages[1],
                               .shared_pages = pages[2],
                               .text_pages = pages[3],
                               .data_pages = pages[5]};
  return 0;
}

bool statm_has_mm(const struct statm_sample *s) { return s->size_pages > 0; }
