/* SPDX-License-Identifier: MIT */
#include <smaps/format.h>

#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "base/duration.h"

static const char units[] = "BKMGTPE";

/* Prints three digits of the amount; returns the index of its unit. */
static size_t print_digits(uint64_t bytes, char ret[FORMAT_SIZE]) {
  double value = (double)bytes;
  size_t unit = 0;

  /* 999.5 would be rounded to 1000. */
  while (value >= 999.5 && units[unit + 1]) {
    value /= 1024;
    unit++;
  }
  snprintf(ret, FORMAT_SIZE, "%.*f",
           unit == 0 || value >= 99.95 ? 0
           : value >= 9.995            ? 1
                                       : 2,
           value);
  return unit;
}

const char *format_bytes(uint64_t bytes, char ret[FORMAT_SIZE]) {
  char digits[FORMAT_SIZE];
  size_t unit = print_digits(bytes, digits);

  if (unit > 0)
    snprintf(ret, FORMAT_SIZE, "%.8s%c", digits, units[unit]);
  else
    snprintf(ret, FORMAT_SIZE, "%.8s", digits);
  return ret;
}

const char *format_amount(uint64_t bytes, char ret[FORMAT_SIZE]) {
  char digits[FORMAT_SIZE];
  size_t unit = print_digits(bytes, digits);

  snprintf(ret, FORMAT_SIZE, unit > 0 ? "%.8s %ciB" : "%.8s %c", digits,
           units[unit]);
  return ret;
}

#define MINUTE 60U
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define DAYS_MOST 99999U

struct unit {
  unsigned seconds;
  char name;
};

static const struct unit days = {DAY, 'd'}, hours = {HOUR, 'h'},
                         minutes = {MINUTE, 'm'}, whole_seconds = {1, 's'};

/* Rounds to a multiple of the smaller unit, which is what is shown. */
static const char *print_pair(double seconds, struct unit larger,
                              struct unit smaller, char ret[FORMAT_SIZE]) {
  uint64_t n = (uint64_t)(seconds / smaller.seconds + 0.5);
  unsigned times = larger.seconds / smaller.seconds;

  snprintf(ret, FORMAT_SIZE, "%u%c%02u%c", (unsigned)(n / times), larger.name,
           (unsigned)(n % times), smaller.name);
  return ret;
}

const char *format_seconds(double seconds, char ret[FORMAT_SIZE]) {
  const double most = (double)DAYS_MOST * DAY;

  if (!(seconds > 0))
    seconds = 0;
  if (seconds >= DAY - MINUTE / 2.0)
    return print_pair(seconds < most ? seconds : most, days, hours, ret);
  if (seconds >= HOUR - 0.5)
    return print_pair(seconds, hours, minutes, ret);
  if (seconds >= MINUTE - 0.5)
    return print_pair(seconds, minutes, whole_seconds, ret);
  if (seconds >= 9.95)
    snprintf(ret, FORMAT_SIZE, "%.0fs", seconds);
  else if (seconds >= 0.9995)
    snprintf(ret, FORMAT_SIZE, "%.1fs", seconds);
  else if (seconds >= 0.0009995)
    snprintf(ret, FORMAT_SIZE, "%.1fms", seconds * 1e3);
  else
    snprintf(ret, FORMAT_SIZE, "%.0fus", seconds * 1e6);
  return ret;
}

const char *format_duration(uint64_t ns, char ret[FORMAT_SIZE]) {
  return format_seconds((double)ns / NS_PER_S, ret);
}

const char *format_clock(uint64_t time_ns, uint64_t now_ns,
                         char ret[FORMAT_SIZE]) {
  time_t seconds[] = {(time_t)(time_ns / NS_PER_S),
                      (time_t)(now_ns / NS_PER_S)};
  struct tm then, now;

  *ret = '\0';
  if (!localtime_r(&seconds[0], &then) || !localtime_r(&seconds[1], &now))
    return ret;
  if (then.tm_year != now.tm_year)
    strftime(ret, FORMAT_SIZE, "%Y-%m-%d %H:%M", &then);
  else if (then.tm_yday != now.tm_yday)
    strftime(ret, FORMAT_SIZE, "%m-%d %H:%M", &then);
  else
    strftime(ret, FORMAT_SIZE, "%H:%M", &then);
  return ret;
}
