/* SPDX-License-Identifier: MIT */
#include "json_lines.h"
#include "document.h"
#include "text.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void write_escaped(FILE *out, uint32_t c) {
  if (c <= 0xffff)
    fprintf(out, "\\u%04x", (unsigned)c);
  else
    fprintf(out, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
            (unsigned)(0xdc00 | (c & 0x3ff)));
}

/* The text of an escape, as a value. */
static void write_bytes(FILE *out, const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    fprintf(out, "\\\\x%02x", (unsigned char)text[i]);
}

static bool is_markup(uint32_t c) { return c == '<' || c == '>' || c == '&'; }

/* Writes the first character; returns its length in bytes. */
static size_t write_character(const struct json_lines *j, const char *text,
                              size_t left) {
  uint32_t c;
  size_t n = utf8_decode(text, left, &c);

  if (n == 0) {
    write_bytes(j->out, text, 1);
    return 1;
  }
  if (j->is_in_markup && !text_is_plain(c)) {
    write_bytes(j->out, text, n);
  } else if (!text_is_plain(c) || (j->is_in_markup && is_markup(c))) {
    write_escaped(j->out, c);
  } else {
    if (c == '"' || c == '\\')
      fputc('\\', j->out);
    fwrite(text, 1, n, j->out);
  }
  return n;
}

static void write_string(const struct json_lines *j, const char *text,
                         size_t max) {
  const char *end = text + strlen(text);
  bool is_cut = (size_t)(end - text) > max;
  const char *tail = is_cut ? end - max / 2 : end;

  fputc('"', j->out);
  for (size_t used = 0; text < end && (!is_cut || used < max / 2);) {
    size_t n = write_character(j, text, (size_t)(end - text));

    used += n;
    text += n;
  }
  if (is_cut)
    fputs("…", j->out);
  while (tail < end && (*tail & 0xc0) == 0x80) /* not a first byte */
    tail++;
  while (tail < end)
    tail += write_character(j, tail, (size_t)(end - tail));
  fputc('"', j->out);
}

static void begin_value(struct json_lines *j, const char *key) {
  bool *has_any = &j->has_any[j->depth];

  if (*has_any)
    fputs(j->depth == 1 ? ",\n" : ",", j->out);
  else if (j->depth == 1)
    fputc('\n', j->out);
  *has_any = true;
  if (!key || j->is_row[j->depth])
    return;
  write_string(j, key, SIZE_MAX);
  fputc(':', j->out);
}

/* False if the value is unknown: then nothing is left to write. */
static bool begin_known(struct json_lines *j, const char *key, bool is_known) {
  if (!is_known && !j->is_row[j->depth])
    return false;
  begin_value(j, key);
  if (!is_known)
    fputs("null", j->out);
  return is_known;
}

void json_lines_begin(struct json_lines *j, const char *key, char brace) {
  if (j->depth > 0)
    begin_value(j, key);
  fputc(brace, j->out);
  assert(j->depth + 1 < JSON_DEPTH_MAX);
  j->has_any[++j->depth] = false;
  j->is_row[j->depth] = false;
}

void json_lines_begin_row(struct json_lines *j, const char *key) {
  json_lines_begin(j, key, '[');
  j->is_row[j->depth] = true;
}

void json_lines_end(struct json_lines *j, char brace) {
  j->depth--;
  if (j->depth == 0)
    fputc('\n', j->out);
  fputc(brace, j->out);
  if (j->depth == 0)
    fputc('\n', j->out);
  output_check(j->out);
}

void json_lines_text_cut(struct json_lines *j, const char *key,
                         const char *text, size_t max) {
  if (!begin_known(j, key, text != NULL))
    return;
  write_string(j, text, max);
}

void json_lines_text(struct json_lines *j, const char *key, const char *text) {
  json_lines_text_cut(j, key, text, SIZE_MAX);
}

void json_lines_names(struct json_lines *j, const char *key,
                      const char *const *names, size_t n) {
  json_lines_begin(j, key, '[');
  for (size_t i = 0; i < n; i++)
    json_lines_text(j, NULL, names[i]);
  json_lines_end(j, ']');
}

void json_lines_whole(struct json_lines *j, const char *key, uint64_t value) {
  if (begin_known(j, key, value != MISSING))
    fprintf(j->out, "%ju", (uintmax_t)value);
}

void json_lines_real(struct json_lines *j, const char *key, double value) {
  if (begin_known(j, key, !isnan(value)))
    fprintf(j->out, "%.15g", value);
}

void json_lines_flag(struct json_lines *j, const char *key, bool value) {
  begin_value(j, key);
  fputs(value ? "true" : "false", j->out);
}

void json_lines_change(struct json_lines *j, const char *key, bool is_less,
                       uint64_t value) {
  if (begin_known(j, key, value != MISSING))
    fprintf(j->out, "%s%ju", is_less && value > 0 ? "-" : "", (uintmax_t)value);
}
