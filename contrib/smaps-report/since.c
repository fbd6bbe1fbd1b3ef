#include "since.h"

#include "load.h"
#include "memory.h"
#include "text.h"

#include <smaps/store.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the time ---- */

static bool parse_age(const char *text, time_t now, time_t *ret) {
  static const char units[] = "dhms";
  static const uint64_t sizes[] = {86400, 3600, 60, 1};
  struct cursor s = cursor_begin(text, strlen(text));
  const char *unit, *last = units - 1;
  uint64_t n, age = 0;

  do {
    if (!parse_u64(&s, &n) || cursor_is_done(&s))
      return false;
    unit = strchr(units, *s.at++);
    if (!unit || unit <= last ||
        __builtin_mul_overflow(n, sizes[unit - units], &n) ||
        __builtin_add_overflow(age, n, &age))
      return false;
    last = unit;
  } while (!cursor_is_done(&s));
  if (now < 0 || age > (uint64_t)now)
    return false;
  *ret = now - (time_t)age;
  return true;
}

/* What a format leaves to the present. */
enum open { OPEN_NOTHING, OPEN_YEAR, OPEN_DAY };

/* A time of the future was a year or a day earlier. -1: not of this format. */
static time_t parse_format(const char *text, const char *format, enum open open,
                           time_t now) {
  struct tm today, tm;
  const char *end;
  time_t when;

  if (!localtime_r(&now, &today))
    return -1;
  tm = (struct tm){.tm_year = today.tm_year,
                   .tm_mon = today.tm_mon,
                   .tm_mday = today.tm_mday,
                   .tm_isdst = -1};
  end = strptime(text, format, &tm);
  if (!end || *end)
    return -1;
  today = tm; /* mktime() changes it */
  when = mktime(&tm);
  if (tm.tm_mday != today.tm_mday) /* such as February 30 */
    return -1;
  if (when <= now || open == OPEN_NOTHING)
    return when;
  today.tm_year -= open == OPEN_YEAR;
  today.tm_mday -= open == OPEN_DAY;
  return mktime(&today);
}

bool since_parse(const char *text, time_t now, time_t *ret) {
  static const struct {
    const char *format;
    enum open open;
  } formats[] = {
      {"%H:%M", OPEN_DAY},        {"%H:%M:%S", OPEN_DAY},
      {"%m-%d %H:%M", OPEN_YEAR}, {"%m-%d %H:%M:%S", OPEN_YEAR},
      {"%Y-%m-%d %H:%M", 0},      {"%Y-%m-%d %H:%M:%S", 0},
      {"%Y-%m-%dT%H:%M", 0},      {"%Y-%m-%dT%H:%M:%S", 0},
      {"%Y-%m-%d", OPEN_NOTHING},
  };

  if (parse_age(text, now, ret))
    return true;
  for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
    time_t when = parse_format(text, formats[i].format, formats[i].open, now);

    if (when < 0 || when > now)
      continue;
    *ret = when;
    return true;
  }
  return false;
}

/* ---- the history ---- */

static int is_state(const struct dirent *entry) {
  uint64_t seconds;

  return store_parse_name(entry->d_name, &seconds);
}

/* False if the file cannot be loaded, or is younger than its name: versions
 * that kept a state for each hour named it by the hour. */
static bool load_state(const char *directory, const char *name, time_t when,
                       struct document *ret) {
  char *path = memory_format("%s/%s", directory, name);
  struct config_error reason;
  struct document d;
  int rc = load_document_file(path, &d, &reason);

  if (rc < 0)
    fprintf(stderr, "smaps-report: %s: %s\n", QUOTED(path), reason.text);
  free(path);
  if (rc < 0)
    return false;
  if (d.time < (double)when + 1) {
    *ret = d;
    return true;
  }
  document_done(&d);
  return false;
}

static int none_before(time_t when, uint64_t oldest,
                       struct config_error *reason) {
  struct text wanted = {0}, first = {0};

  text_add_time(&wanted, (double)when);
  text_add_time(&first, (double)oldest);
  if (oldest == UINT64_MAX)
    config_error_format(reason, "has no state yet: expected a StateHistory");
  else
    config_error_format(reason,
                        "has no state of %s or before; the oldest is of %s",
                        wanted.bytes, first.bytes);
  text_done(&wanted);
  text_done(&first);
  return -ENOENT;
}

int since_load(const char *directory, time_t when, struct document *ret,
               struct config_error *reason) {
  struct dirent **entries;
  uint64_t seconds, oldest = UINT64_MAX;
  bool is_found = false;
  int n = scandir(directory, &entries, is_state, alphasort);

  if (n < 0)
    return config_error_set(reason, "%s", strerror(errno));
  for (int i = n - 1; i >= 0; i--) {
    if (!is_found && store_parse_name(entries[i]->d_name, &seconds)) {
      oldest = seconds;
      is_found = seconds <= (uint64_t)when &&
                 load_state(directory, entries[i]->d_name, when, ret);
    }
    free(entries[i]);
  }
  free(entries);
  return is_found ? 0 : none_before(when, oldest, reason);
}
