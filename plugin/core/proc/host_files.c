#include "proc/host_files.h"

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

static bool parse_load(struct cursor *s) {
  uint32_t whole, centi;

  return parse_u32(s, &whole) && parse_char(s, '.') && parse_u32(s, &centi) &&
         parse_char(s, ' ');
}

/*
 * 0.20 0.18 0.12 1/80 11206
 *
 * The average load of one, five and fifteen minutes, runnable and all tasks,
 * and the last pid.
 */
int loadavg_parse(const char *text, size_t len, uint32_t *ret_tasks) {
  struct cursor s = cursor_begin(text, len);
  uint32_t runnable, tasks, last_pid;

  if (!parse_load(&s) || !parse_load(&s) || !parse_load(&s) ||
      !parse_u32(&s, &runnable) || !parse_char(&s, '/') ||
      !parse_u32(&s, &tasks) || !parse_char(&s, ' ') ||
      !parse_u32(&s, &last_pid) || !parse_char(&s, '\n') || !cursor_is_done(&s))
    return -EBADMSG;
  *ret_tasks = tasks;
  return 0;
}

#define STACK_LEAST (UINT64_C(4) << 10)
#define STACK_MOST (UINT64_C(128) << 10)

uint64_t kernel_stack_size(uint64_t all_bytes, uint64_t tasks) {
  double each = tasks ? (double)all_bytes / (double)tasks : 0;

  for (uint64_t size = STACK_LEAST; size <= STACK_MOST; size *= 2)
    if (each >= (double)size * 3 / 4 && each < (double)size * 3 / 2)
      return size;
  return 0;
}
