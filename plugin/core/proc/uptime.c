#include "proc/uptime.h"

#include <errno.h>

#define CENTISECOND_NS UINT64_C(10000000)
/* Three centuries, which fit into nanoseconds. */
#define SECONDS_MOST UINT64_C(10000000000)

/*
 * 12345.67 23456.89
 *
 * Both have two decimals.
 */
int uptime_parse(const char *text, size_t len, uint64_t *ret_ns) {
  struct cursor s = cursor_begin(text, len);
  uint64_t seconds, idle;
  uint32_t centiseconds, idle_centiseconds;

  if (!parse_u64(&s, &seconds) || !parse_char(&s, '.') ||
      !parse_u32(&s, &centiseconds) || !parse_char(&s, ' ') ||
      !parse_u64(&s, &idle) || !parse_char(&s, '.') ||
      !parse_u32(&s, &idle_centiseconds) || !parse_char(&s, '\n') ||
      !cursor_is_done(&s) || centiseconds > 99 || seconds > SECONDS_MOST)
    return -EBADMSG;
  *ret_ns = (seconds * 100 + centiseconds) * CENTISECOND_NS;
  return 0;
}
