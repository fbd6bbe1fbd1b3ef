#include "json_lines.h"
#include "document.h"
#include "output.h"
#include "utf8.h"

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

static void write_string(FILE *out, const char *text) {
  size_t left = strlen(text);

  fputc('"', out);
  while (left > 0) {
    uint32_t c;
    size_t n = utf8_decode(text, left, &c);

    if (n == 0) {
      fprintf(out, "\\\\x%02x", (unsigned char)*text);
      n = 1;
    } else if (!utf8_is_plain(c)) {
      write_escaped(out, c);
    } else {
      if (c == '"' || c == '\\')
        fputc('\\', out);
      fwrite(text, 1, n, out);
    }
    text += n;
    left -= n;
  }
  fputc('"', out);
}

static void begin_value(struct json_lines *j, const char *key) {
  bool *has_any = &j->has_any[j->depth];

  if (*has_any)
    fputs(j->depth == 1 ? ",\n" : ",", j->out);
  else if (j->depth == 1)
    fputc('\n', j->out);
  *has_any = true;
  if (!key)
    return;
  write_string(j->out, key);
  fputc(':', j->out);
}

void json_lines_begin(struct json_lines *j, const char *key, char brace) {
  if (j->depth > 0)
    begin_value(j, key);
  fputc(brace, j->out);
  assert(j->depth + 1 < JSON_DEPTH_MAX);
  j->has_any[++j->depth] = false;
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

void json_lines_text(struct json_lines *j, const char *key, const char *text) {
  if (!text)
    return;
  begin_value(j, key);
  write_string(j->out, text);
}

void json_lines_whole(struct json_lines *j, const char *key, uint64_t value) {
  if (value == UNKNOWN)
    return;
  begin_value(j, key);
  fprintf(j->out, "%ju", (uintmax_t)value);
}

void json_lines_real(struct json_lines *j, const char *key, double value) {
  if (isnan(value))
    return;
  begin_value(j, key);
  fprintf(j->out, "%.15g", value);
}

void json_lines_flag(struct json_lines *j, const char *key, bool value) {
  begin_value(j, key);
  fputs(value ? "true" : "false", j->out);
}

void json_lines_change(struct json_lines *j, const char *key, bool is_less,
                       uint64_t value) {
  if (value == UNKNOWN)
    return;
  begin_value(j, key);
  fprintf(j->out, "%s%ju", is_less && value > 0 ? "-" : "", (uintmax_t)value);
}
