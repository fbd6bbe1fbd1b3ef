#include "snapshot/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proc/duration.h"

#define AMOUNT_SIZE 24

static const char *format_amount(uint64_t bytes, char ret[AMOUNT_SIZE]) {
  static const char units[] = "KMGTPE";
  double value = (double)bytes / 1024;
  size_t unit = 0;

  for (; value >= 1023.95 && units[unit + 1]; unit++)
    value /= 1024;
  snprintf(ret, AMOUNT_SIZE, "%.1f %ciB", value, units[unit]);
  return ret;
}

/* Appends the part if the line with it has room. */
static bool append(char *line, size_t size, const char *part) {
  size_t len = strlen(line);

  if (len + strlen(part) >= size)
    return false;
  strcpy(line + len, part);
  return true;
}

static const char *describe_pss(const struct summary *s, char *ret,
                                size_t size) {
  char amount[AMOUNT_SIZE], error[AMOUNT_SIZE];
  bool is_small = s->pss_error * 100 <= s->pss_bytes;

  snprintf(ret, size, "PSS %s%s%s",
           s->has_pss ? format_amount(s->pss_bytes, amount) : "unknown",
           is_small ? "" : " +- ",
           is_small ? "" : format_amount(s->pss_error, error));
  return ret;
}

#define TIME_SIZE 32

static const char *format_time(uint64_t ns, char ret[TIME_SIZE]) {
  uint64_t seconds = ns / NS_PER_S;
  bool is_long = seconds >= 120;

  snprintf(ret, TIME_SIZE, "%" PRIu64 " %s", is_long ? seconds / 60 : seconds,
           is_long ? "min" : "s");
  return ret;
}

static const char *describe_end(const struct summary *s, char *ret,
                                size_t size) {
  char time[TIME_SIZE];

  snprintf(ret, size, "before its end, %s ago: ",
           format_time(summary_ended_seconds(s) * NS_PER_S, time));
  return ret;
}

static const char *describe_change(const struct pss_change *c, char *ret,
                                   size_t size) {
  char amount[AMOUNT_SIZE], time[TIME_SIZE];

  format_amount(c->bytes < 0 ? -(uint64_t)c->bytes : (uint64_t)c->bytes,
                amount);
  snprintf(ret, size, ", %c%s in %s", c->bytes < 0 ? '-' : '+', amount,
           format_time(c->age_ns, time));
  return ret;
}

static const char *describe_limit(uint64_t bytes, char *ret, size_t size) {
  char amount[AMOUNT_SIZE];

  snprintf(ret, size, ", limit %s", format_amount(bytes, amount));
  return ret;
}

static const char *describe_process(const struct summary *s, size_t i,
                                    char *ret, size_t size) {
  const struct summary_process *p = &s->largest[i];
  char amount[AMOUNT_SIZE];

  snprintf(ret, size, "%s %" PRIu32 " %s %s%s", i == 0 ? ";" : ",", p->pid,
           p->comm, p->has_pss ? "" : "RSS ", format_amount(p->bytes, amount));
  return ret;
}

uint64_t summary_ended_seconds(const struct summary *s) {
  uint64_t seconds = (s->ended_ns + NS_PER_S / 2) / NS_PER_S;

  return seconds > 0 ? seconds : 1;
}

void summary_format(const struct summary *s, char *ret, size_t size) {
  char part[160];
  bool fits;

  if (size > SUMMARY_MAX + 1)
    size = SUMMARY_MAX + 1;
  *ret = '\0';
  fits = (!s->has_ended ||
          append(ret, size, describe_end(s, part, sizeof(part)))) &&
         append(ret, size, describe_pss(s, part, sizeof(part)));
  if (fits && s->change.age_ns > 0)
    fits = append(ret, size, describe_change(&s->change, part, sizeof(part)));
  if (fits && s->limit_bytes > 0)
    fits =
        append(ret, size, describe_limit(s->limit_bytes, part, sizeof(part)));
  for (size_t i = 0; fits && i < s->n; i++)
    fits = append(ret, size, describe_process(s, i, part, sizeof(part)));
}

void summary_format_process(const struct summary_process *p, char *ret,
                            size_t size) {
  snprintf(ret, size, "%" PRIu32 " %s %s%" PRIu64, p->pid, p->comm,
           p->has_pss ? "" : "RSS ", p->bytes);
}
