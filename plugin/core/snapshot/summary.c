#include "snapshot/summary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proc/arith.h"
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

#define TIME_SIZE 32

static const char *format_time(uint64_t ns, char ret[TIME_SIZE]) {
  uint64_t seconds = ns / NS_PER_S;
  bool is_long = seconds >= 120;

  snprintf(ret, TIME_SIZE, "%" PRIu64 " %s", is_long ? seconds / 60 : seconds,
           is_long ? "min" : "s");
  return ret;
}

struct line {
  char *text;
  size_t size;
  bool is_full; /* a part did not fit: no other is added */
};

__attribute__((format(printf, 2, 3))) static void
append(struct line *l, const char *format, ...) {
  size_t len = strlen(l->text);
  char part[160];
  va_list args;

  va_start(args, format);
  vsnprintf(part, sizeof(part), format, args);
  va_end(args);
  l->is_full |= len + strlen(part) >= l->size;
  if (!l->is_full)
    strcpy(l->text + len, part);
}

static void append_pss(struct line *l, const struct summary *s) {
  char amount[AMOUNT_SIZE], error[AMOUNT_SIZE];
  bool is_small = s->pss_error * 100 <= s->pss_bytes;

  append(l, "PSS %s%s%s",
         s->has_pss ? format_amount(s->pss_bytes, amount) : "unknown",
         is_small ? "" : " +- ",
         is_small ? "" : format_amount(s->pss_error, error));
}

uint64_t summary_ended_seconds(const struct summary *s) {
  uint64_t seconds = (s->ended_ns + NS_PER_S / 2) / NS_PER_S;

  return seconds > 0 ? seconds : 1;
}

void summary_format(const struct summary *s, char *ret, size_t size) {
  struct line l = {.text = ret,
                   .size = size < SUMMARY_MAX ? size : SUMMARY_MAX + 1};
  int64_t change = s->change.bytes;
  char amount[AMOUNT_SIZE], time[TIME_SIZE];

  *ret = '\0';
  if (s->has_ended)
    append(&l, "before its end, %s ago: ",
           format_time(summary_ended_seconds(s) * NS_PER_S, time));
  append_pss(&l, s);
  if (s->change.age_ns > 0)
    append(&l, ", %c%s in %s", change < 0 ? '-' : '+',
           format_amount(change < 0 ? -(uint64_t)change : (uint64_t)change,
                         amount),
           format_time(s->change.age_ns, time));
  if (s->limit_bytes > 0)
    append(&l, ", limit %s", format_amount(s->limit_bytes, amount));
  for (size_t i = 0; i < s->n; i++)
    append(&l, "%s %" PRIu32 " %s %s%s", i == 0 ? ";" : ",", s->largest[i].pid,
           s->largest[i].comm, s->largest[i].has_pss ? "" : "RSS ",
           format_amount(s->largest[i].bytes, amount));
}

void summary_format_process(const struct summary_process *p, char *ret,
                            size_t size) {
  snprintf(ret, size, "%" PRIu32 " %s %s%" PRIu64, p->pid, p->comm,
           p->has_pss ? "" : "RSS ", p->bytes);
}
