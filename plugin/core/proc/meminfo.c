#include "proc/meminfo.h"

#include <errno.h>

/*
 * MemTotal:       24684092 kB
 * MemFree:        24334532 kB
 * MemAvailable:   24344248 kB
 * …
 * HugePages_Total:       0
 */
int meminfo_parse(const char *text, size_t len, struct meminfo_sample *ret) {
  struct cursor s = cursor_begin(text, len);
  struct meminfo_sample sample = {0};
  uint64_t swap_total = 0, swap_free = 0;
  struct span skipped;

  while (!cursor_is_done(&s)) {
    uint64_t *value = NULL;

    if (parse_word(&s, "MemTotal:"))
      value = &sample.mem_total_bytes;
    else if (parse_word(&s, "MemAvailable:"))
      value = &sample.mem_available_bytes;
    else if (parse_word(&s, "AnonPages:"))
      value = &sample.anon_pages_bytes;
    else if (parse_word(&s, "Mapped:"))
      value = &sample.mapped_bytes;
    else if (parse_word(&s, "SwapTotal:"))
      value = &swap_total;
    else if (parse_word(&s, "SwapFree:"))
      value = &swap_free;
    if (value && !(parse_kb(&s, value) && parse_char(&s, '\n')))
      return -EBADMSG;
    if (!value)
      parse_line(&s, &skipped);
  }
  if (sample.mem_total_bytes == 0)
    return -EBADMSG;
  if (swap_total > swap_free)
    sample.swap_used_bytes = swap_total - swap_free;
  *ret = sample;
  return 0;
}
