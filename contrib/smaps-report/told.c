#include "told.h"

#include "memory.h"
#include "text.h"

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>

#include <pthread.h>
#include <stdarg.h>

#define OURS "smaps plugin: "
/* Of a long watch; later ones are forgotten. */
#define LINES_MAX 1000

/* The daemon's log has no handle either. Any thread may tell. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
  char **lines;
  size_t n;
  size_t errors;
} told;

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
  told.errors += level <= LOG_ERR;
  if (told.n < LINES_MAX) {
    told.lines = memory_room(told.lines, told.n, sizeof(*told.lines));
    told.lines[told.n++] = line;
  } else {
    free(line);
  }
  pthread_mutex_unlock(&mutex);
}

cdtime_t cdtime(void) {
  struct timespec now;

  clock_gettime(CLOCK_REALTIME, &now);
  return NS_TO_CDTIME_T((cdtime_t)now.tv_sec * 1000000000 +
                        (cdtime_t)now.tv_nsec);
}

size_t told_errors(void) { return told.errors; }

/* Where they cannot be written, the rest of the output is as good as before. */
static void print_line(const char *line, FILE *out) {
  const struct style plain = {.out = out};
  struct text text = {0};
  size_t len = strlen(OURS);

  text_add_name(&text, strncmp(line, OURS, len) == 0 ? line + len : line,
                &plain);
  fprintf(out, "%s\n", text.bytes ? text.bytes : "");
  text_done(&text);
}

void told_print(FILE *out) {
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < told.n; i++) {
    print_line(told.lines[i], out);
    free(told.lines[i]);
  }
  free(told.lines);
  memset(&told, 0, sizeof(told));
  pthread_mutex_unlock(&mutex);
}
