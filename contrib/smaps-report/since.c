/* SPDX-License-Identifier: MIT */
#include "since.h"

#include "memory.h"
#include "text.h"

#include <smaps/store.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the time ---- */

static bool parse_age(const char *text, time_t now, time_t *ret) {
  static const char units[] = "smhd";
  static const uint64_t sizes[] = {1, 60, 3600, 86400};
  struct cursor s = cursor_begin(text, strlen(text));
  const char *unit;
  uint64_t n, age = 0;

  do {
    if (!parse_u64(&s, &n) || cursor_is_done(&s) ||
        !(unit = strchr(units, *s.at++)) ||
        __builtin_mul_overflow(n, sizes[unit - units], &n) ||
        __builtin_add_overflow(age, n, &age) || age > (uint64_t)now)
      return false;
  } while (!cursor_is_done(&s));
  *ret = now - (time_t)age;
  return true;
}

static bool parse_clock(const char *text, const char *format, time_t now,
                        time_t *ret) {
  struct tm tm, yesterday;
  const char *end;

  if (!localtime_r(&now, &tm))
    return false;
  tm.tm_sec = 0;
  tm.tm_isdst = -1;
  end = strptime(text, format, &tm);
  if (!end || *end)
    return false;
  yesterday = tm;
  yesterday.tm_mday--;
  *ret = mktime(&tm);
  if (*ret > now)
    *ret = mktime(&yesterday);
  return true;
}

bool since_parse(const char *text, time_t now, time_t *ret) {
  return parse_age(text, now, ret) || parse_clock(text, "%H:%M", now, ret) ||
         parse_clock(text, "%H:%M:%S", now, ret);
}

/* ---- the history ---- */

static char *none_before(uint64_t oldest, struct config_error *reason) {
  struct text t = {0};

  if (oldest == UINT64_MAX) {
    config_error_format(reason, "has no state yet: expected a StateHistory");
    return NULL;
  }
  text_add_time(&t, (double)oldest);
  config_error_format(reason, "has no state that old; the oldest is of %s",
                      t.bytes);
  text_done(&t);
  return NULL;
}

char *since_find(const char *directory, time_t when,
                 struct config_error *reason) {
  uint64_t seconds, youngest = 0, oldest = UINT64_MAX;
  DIR *dir = opendir(directory);
  const struct dirent *entry;
  char *path = NULL;

  if (!dir) {
    config_error_format(reason, "%s", strerror(errno));
    return NULL;
  }
  while ((entry = readdir(dir))) {
    if (!store_parse_name(entry->d_name, &seconds))
      continue;
    oldest = seconds < oldest ? seconds : oldest;
    if (seconds > (uint64_t)when || seconds < youngest)
      continue;
    free(path);
    path = memory_format("%s/%s", directory, entry->d_name);
    youngest = seconds;
  }
  closedir(dir);
  return path ? path : none_before(oldest, reason);
}
