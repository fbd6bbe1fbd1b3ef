#include "proc/loadavg.h"

#include <errno.h>

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
