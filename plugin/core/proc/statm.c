#include "proc/statm.h"

#include <errno.h>

static bool parse_pages(struct cursor *s, uint64_t *ret, char separator) {
  return parse_u64(s, ret) && parse_char(s, separator);
}

/*
 * 765 418 390 5 0 123 0
 *
 * size, resident, shared, text, lib, data and dirty; lib and dirty are 0 since
 * 2.6.
 */
int statm_parse(const char *text, size_t len, struct statm_sample *ret) {
  struct cursor s = cursor_begin(text, len);
  struct statm_sample sample;
  uint64_t lib, dirty;

  if (!parse_pages(&s, &sample.size_pages, ' ') ||
      !parse_pages(&s, &sample.resident_pages, ' ') ||
      !parse_pages(&s, &sample.shared_pages, ' ') ||
      !parse_pages(&s, &sample.text_pages, ' ') ||
      !parse_pages(&s, &lib, ' ') ||
      !parse_pages(&s, &sample.data_pages, ' ') ||
      !parse_pages(&s, &dirty, '\n') || !cursor_is_done(&s))
    return -EBADMSG;
  /* task_statm() prints resident as shared plus anonymous, whatever the
   * precision of its counters. */
  if (sample.shared_pages > sample.resident_pages)
    return -EBADMSG;
  *ret = sample;
  return 0;
}

bool statm_has_mm(const struct statm_sample *s) { return s->size_pages > 0; }
