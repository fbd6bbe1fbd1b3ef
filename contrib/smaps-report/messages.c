/* SPDX-License-Identifier: MIT */
#include "messages.h"

#include "memory.h"
#include "text.h"

#include <daemon/collectd.h>
#include <daemon/plugin.h>

#include <pthread.h>
#include <stdarg.h>

#define OURS "smaps plugin: "
/* A long watch may have more; the later lines are dropped. */
#define LINES_MAX 1000

/* One log for all, as in the daemon. Any thread may add a line. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
  struct text lines;
  size_t n;
  size_t errors;
} kept;

static void add_line(const char *line) {
  const struct style plain = {.out = NULL};
  size_t len = strlen(OURS);

  text_add_name(&kept.lines, strncmp(line, OURS, len) == 0 ? line + len : line,
                &plain);
  text_add(&kept.lines, "\n");
}

void plugin_log(int level, const char *format, ...) {
  va_list args;
  char *line;
  int n;

  if (level > LOG_WARNING)
    return;
  va_start(args, format);
  n = vasprintf(&line, format, args);
  va_end(args);
  memory_check(n < 0 ? NULL : line);
  pthread_mutex_lock(&mutex);
  kept.errors += level <= LOG_ERR;
  if (kept.n++ < LINES_MAX)
    add_line(line);
  pthread_mutex_unlock(&mutex);
  free(line);
}

cdtime_t cdtime(void) {
  struct timespec now;

  clock_gettime(CLOCK_REALTIME, &now);
  return NS_TO_CDTIME_T((cdtime_t)now.tv_sec * 1000000000 +
                        (cdtime_t)now.tv_nsec);
}

size_t messages_errors(void) { return kept.errors; }

/* A failure is ignored: the rest of the output does not need the lines. */
void messages_print(FILE *out) {
  pthread_mutex_lock(&mutex);
  if (kept.lines.bytes)
    fputs(kept.lines.bytes, out);
  text_done(&kept.lines);
  kept.n = kept.errors = 0;
  pthread_mutex_unlock(&mutex);
}
