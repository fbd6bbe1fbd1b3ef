/* SPDX-License-Identifier: MIT */
#include "text.h"
#include "document.h"
#include "memory.h"

#include <smaps/format.h>

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

bool text_is_plain(uint32_t c) {
  static const struct {
    uint32_t first;
    uint32_t last;
  } hidden[] = {
      {0x80, 0x9f},                         /* C1 */
      {0xad, 0xad},                         /* soft hyphen */
      {0x61c, 0x61c},                       /* Arabic letter mark */
      {0x115f, 0x1160},   {0x17b4, 0x17b5}, /* fillers, inherent vowels */
      {0x180b, 0x180f},                     /* Mongolian selectors */
      {0x200b, 0x200f},   {0x2028, 0x202e}, /* zero width; bidi */
      {0x2060, 0x206f},                     /* isolates among them */
      {0x3164, 0x3164},   {0xfe00, 0xfe0f}, /* filler; selectors */
      {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, /* byte order mark; filler */
      {0xfff0, 0xfffb},                     /* annotations */
      {0x1d173, 0x1d17a},                   /* beams and slurs */
      {0xe0000, 0xe0fff},                   /* tags, selectors */
  };

  if (c < 0x80)
    return c >= 0x20 && c != 0x7f;
  for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
    if (c >= hidden[i].first && c <= hidden[i].last)
      return false;
  return true;
}

void text_done(struct text *t) {
  free(t->bytes);
  *t = (struct text){0};
}

void text_clear(struct text *t) {
  t->len = t->width = 0;
  if (t->bytes)
    t->bytes[0] = '\0';
}

static void make_room(struct text *t, size_t len) {
  size_t size = t->size ? t->size : 64;

  while (size - t->len <= len)
    size *= 2;
  if (size == t->size)
    return;
  t->bytes = memory_array(t->bytes, size, 1);
  t->size = size;
}

static void add(struct text *t, const char *bytes, size_t len, size_t width) {
  make_room(t, len);
  memcpy(t->bytes + t->len, bytes, len);
  t->len += len;
  t->bytes[t->len] = '\0';
  t->width += width;
}

void text_add(struct text *t, const char *words) {
  size_t len = strlen(words);

  add(t, words, len, len);
}

void text_addf(struct text *t, const char *format, ...) {
  char words[512];
  va_list args;

  va_start(args, format);
  vsnprintf(words, sizeof(words), format, args);
  va_end(args);
  text_add(t, words);
}

static void add_escaped(struct text *t, const char *bytes, size_t len) {
  for (size_t i = 0; i < len; i++)
    text_addf(t, "\\x%02x", (unsigned char)bytes[i]);
}

/* The width of a character in columns, or -1 if it must be escaped. */
static int width_of(uint32_t c, const struct style *s) {
  if (!text_is_plain(c) || (c >= 0x80 && !s->is_utf8))
    return -1;
  return c < 0x80 ? 1 : wcwidth((wchar_t)c);
}

void text_add_name(struct text *t, const char *name, const struct style *s) {
  size_t left = strlen(name);

  while (left > 0) {
    uint32_t c;
    size_t n = utf8_decode(name, left, &c);
    int width = n > 0 ? width_of(c, s) : -1;

    if (n == 0)
      n = 1;
    if (width < 0)
      add_escaped(t, name, n);
    else
      add(t, name, n, (size_t)width);
    name += n;
    left -= n;
  }
}

static void add_human(struct text *t, uint64_t bytes) {
  char words[FORMAT_SIZE];

  text_add(t, format_bytes(bytes, words));
}

void text_add_bytes(struct text *t, uint64_t bytes, const struct style *s) {
  bool has_total = s->mem_total != MISSING && s->mem_total > 0;

  if (bytes == MISSING || (s->unit == UNIT_PERCENT && !has_total))
    text_add(t, "-");
  else if (s->unit == UNIT_HUMAN)
    add_human(t, bytes);
  else if (s->unit == UNIT_PERCENT)
    text_addf(t, "%.2f%%", 100 * (double)bytes / (double)s->mem_total);
  else
    text_addf(t, "%ju", (uintmax_t)(bytes / 1024 + (bytes % 1024 >= 512)));
}

void text_add_error(struct text *t, uint64_t bytes, const struct style *s) {
  if (bytes == 0)
    return;
  text_add_name(t, s->is_utf8 ? " ± " : " +- ", s);
  text_add_bytes(t, bytes, s);
}

void text_add_change(struct text *t, bool is_less, uint64_t bytes,
                     const struct style *s) {
  if (bytes != MISSING && bytes > 0)
    text_add(t, is_less ? "-" : "+");
  text_add_bytes(t, bytes, s);
}

void text_add_seconds(struct text *t, double seconds) {
  char words[FORMAT_SIZE];

  text_add(t, isnan(seconds) ? "-" : format_seconds(seconds, words));
}

/* 0 if it is unknown, or beyond the year 2500, which nanoseconds of 64 bits
 * cannot count. */
static uint64_t whole_ns(double seconds) {
  return seconds >= 0 && seconds < 16.7e9
             ? (uint64_t)seconds * UINT64_C(1000000000)
             : 0;
}

void text_add_time(struct text *t, double seconds) {
  time_t when = (time_t)(whole_ns(seconds) / 1000000000);
  struct tm tm;
  char words[64];

  if (when <= 0 || !localtime_r(&when, &tm) ||
      !strftime(words, sizeof(words), "%Y-%m-%d %H:%M:%S %Z", &tm))
    text_add(t, "time unknown");
  else
    text_add(t, words);
}

void text_add_clock(struct text *t, double seconds, double beside) {
  uint64_t when = whole_ns(seconds);
  char words[FORMAT_SIZE];

  text_add(t, when == 0 ? "-" : format_clock(when, whole_ns(beside), words));
}

void text_trim(struct text *t) {
  while (t->len > 0 && t->bytes[t->len - 1] == ' ') {
    t->bytes[--t->len] = '\0';
    t->width--;
  }
}

/* The length of the text that fits into the width, whose own is *ret_columns.
 */
static size_t fitting(const struct text *t, size_t width, size_t *ret_columns) {
  size_t at = 0, columns = 0;

  while (at < t->len) {
    uint32_t c;
    size_t n = utf8_decode(t->bytes + at, t->len - at, &c);
    int w = n > 0 && c >= 0x80 ? wcwidth((wchar_t)c) : 1;

    if (columns + (w > 0 ? (size_t)w : 0) > width)
      break;
    columns += w > 0 ? (size_t)w : 0;
    at += n > 0 ? n : 1;
  }
  *ret_columns = columns;
  return at;
}

void text_cut(struct text *t, size_t width) {
  if (t->width <= width)
    return;
  t->len = fitting(t, width, &t->width);
  t->bytes[t->len] = '\0';
}

void text_cut_middle(struct text *t, size_t width, const struct style *s) {
  const char *mark = s->is_utf8 ? "…" : "..";
  size_t mark_width = s->is_utf8 ? 1 : 2, mark_len = strlen(mark);
  size_t begin, end, begin_width, end_width, reach;

  if (t->width <= width || width <= mark_width)
    return;
  begin = fitting(t, (width - mark_width) / 2, &begin_width);
  reach = t->width - (width - mark_width - begin_width);
  do /* it may be in the middle of a wide character */
    end = fitting(t, reach++, &end_width);
  while (t->width - end_width > width - mark_width - begin_width);
  make_room(t, mark_len);
  memmove(t->bytes + begin + mark_len, t->bytes + end, t->len - end + 1);
  memcpy(t->bytes + begin, mark, mark_len);
  t->len = begin + mark_len + t->len - end;
  t->width = begin_width + mark_width + t->width - end_width;
}

void text_pad(struct text *t, size_t n) {
  for (; n > 0; n--)
    add(t, " ", 1, 1);
}

void text_append(struct text *t, const struct text *other) {
  if (other->len > 0)
    add(t, other->bytes, other->len, other->width);
}

/* ---- output ---- */

static void fail(int error) {
  if (error != EPIPE)
    fprintf(stderr, "smaps-report: cannot write: %s\n", strerror(error));
  exit(2);
}

void output_check(FILE *out) {
  if (ferror(out))
    fail(errno);
}

void output_finish(FILE *out) {
  if (fflush(out) != 0 || ferror(out))
    fail(errno);
}

void text_print(struct text *t, enum colour colour, const struct style *s) {
  static const char *const codes[] = {"", "\033[1m", "\033[31m", "\033[32m"};
  bool is_coloured = s->has_colour && colour != COLOUR_NONE;

  if (s->width > 0)
    text_cut(t, s->width);
  if (is_coloured)
    fputs(codes[colour], s->out);
  if (t->bytes)
    fputs(t->bytes, s->out);
  fputs(is_coloured ? "\033[0m\n" : "\n", s->out);
  output_check(s->out);
}
