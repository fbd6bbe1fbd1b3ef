#include <smaps/format.h>

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/duration.h"

const char *format_amount(uint64_t bytes, char ret[FORMAT_SIZE]) {
  static const char units[] = "KMGTPE";
  double value = (double)bytes / 1024;
  size_t unit = 0;

  for (; value >= 1023.95 && units[unit + 1]; unit++)
    value /= 1024;
  snprintf(ret, FORMAT_SIZE, "%.1f %ciB", value, units[unit]);
  return ret;
}

const char *format_duration(uint64_t ns, char ret[FORMAT_SIZE]) {
  static const struct {
    uint64_t seconds;
    char name;
  } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
  uint64_t s = ns / NS_PER_S;
  size_t i = 0;

  while (i < 3 && s < units[i].seconds)
    i++;
  if (i == 3)
    snprintf(ret, FORMAT_SIZE, "%" PRIu64 "s", s);
  else
    snprintf(ret, FORMAT_SIZE, "%" PRIu64 "%c%" PRIu64 "%c",
             s / units[i].seconds, units[i].name,
             s % units[i].seconds / units[i + 1].seconds, units[i + 1].name);
  return ret;
}

const char *format_clock(uint64_t time_ns, uint64_t now_ns,
                         char ret[FORMAT_SIZE]) {
  time_t seconds[] = {(time_t)(time_ns / NS_PER_S),
                      (time_t)(now_ns / NS_PER_S)};
  struct tm then, now;

  *ret = '\0';
  if (localtime_r(&seconds[0], &then) && localtime_r(&seconds[1], &now))
    strftime(ret, FORMAT_SIZE,
             then.tm_yday == now.tm_yday && then.tm_year == now.tm_year
                 ? "%H:%M"
                 : "%Y-%m-%d %H:%M",
             &then);
  return ret;
}
