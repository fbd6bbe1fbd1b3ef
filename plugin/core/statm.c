#include <smaps/statm.h>

#include <errno.h>

static bool take_pages(struct scan *s, uint64_t *ret, char separator) {
  return scan_u64(s, ret) && scan_char(s, separator);
}

/*
 * 765 418 390 5 0 123 0
 *
 * size, resident, shared, text, lib, data and dirty; lib and dirty have been 0
 * since 2.6.
 */
int statm_parse(const char *text, size_t len, struct statm_sample *ret) {
  struct scan s = scan_begin(text, len);
  struct statm_sample sample;
  uint64_t lib, dirty;

  if (!take_pages(&s, &sample.size_pages, ' ') ||
      !take_pages(&s, &sample.resident_pages, ' ') ||
      !take_pages(&s, &sample.shared_pages, ' ') ||
      !take_pages(&s, &sample.text_pages, ' ') || !take_pages(&s, &lib, ' ') ||
      !take_pages(&s, &sample.data_pages, ' ') ||
      !take_pages(&s, &dirty, '\n') || !scan_is_done(&s))
    return -EBADMSG;
  /* task_statm() prints resident as shared plus anonymous, whatever the
   * precision of its counters. */
  if (sample.shared_pages > sample.resident_pages)
    return -EBADMSG;
  *ret = sample;
  return 0;
}

bool statm_has_mm(const struct statm_sample *s) { return s->size_pages > 0; }
