#include "snapshot/json.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLION UINT64_C(1000000)

static void fail(struct json *j, int error) {
  if (!j->error)
    j->error = error;
}

static void put(struct json *j, const char *text, size_t len) {
  size_t cap = j->cap ? j->cap : 4096;

  if (len > j->max - j->len)
    fail(j, -EFBIG);
  if (j->error)
    return;
  while (cap - j->len < len)
    cap *= 2;
  if (cap != j->cap) {
    char *larger = realloc(j->text, cap);

    if (!larger) {
      fail(j, -ENOMEM);
      return;
    }
    j->text = larger;
    j->cap = cap;
  }
  memcpy(j->text + j->len, text, len);
  j->len += len;
}

static void put_word(struct json *j, const char *word) {
  put(j, word, strlen(word));
}

void json_done(struct json *j) {
  free(j->text);
  *j = (struct json){.text = NULL};
}

/* --- text --- */

static bool is_continuation(unsigned char c) { return (c & 0xc0) == 0x80; }

/* The length of a character, from its first byte; 0 if that is invalid. */
static size_t sequence_length(unsigned char c) {
  if (c < 0x80)
    return 1;
  if (c >= 0xc2 && c <= 0xdf)
    return 2;
  if (c >= 0xe0 && c <= 0xef)
    return 3;
  return c >= 0xf0 && c <= 0xf4 ? 4 : 0;
}

/*
 * The length of the character at s, or 0 if it is no UTF-8 (RFC 3629): an
 * overlong form, half of a surrogate pair, above U+10FFFF, cut short.
 */
static size_t character_length(const unsigned char *s, size_t left) {
  size_t n = sequence_length(s[0]);

  if (n == 0 || n > left)
    return 0;
  for (size_t i = 1; i < n; i++)
    if (!is_continuation(s[i]))
      return 0;
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
      (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
    return 0;
  return n;
}

static bool is_special(unsigned char c) {
  return c < 0x20 || c == '"' || c == '\\';
}

/* The bytes until one that cannot stand in a string as it is. */
static size_t plain_length(const unsigned char *s, size_t left) {
  size_t n = 0, length = 1;

  for (; n < left && length > 0; n += length)
    length = is_special(s[n]) ? 0 : character_length(s + n, left - n);
  return n;
}

static void put_escaped(struct json *j, unsigned char c) {
  static const char specials[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
  const char *special = c ? strchr(specials, c) : NULL;
  char text[8];

  if (special)
    snprintf(text, sizeof(text), "\\%c", letters[special - specials]);
  else
    snprintf(text, sizeof(text), c < 0x20 ? "\\u%04X" : "\\\\x%02x", c);
  put_word(j, text);
}

static void put_string(struct json *j, const char *text, size_t len) {
  const unsigned char *s = (const unsigned char *)text;

  put_word(j, "\"");
  for (size_t i = 0; i < len && !j->error;) {
    size_t n = plain_length(s + i, len - i);

    put(j, text + i, n);
    i += n;
    if (i < len)
      put_escaped(j, s[i++]);
  }
  put_word(j, "\"");
}

/* --- values --- */

/* What stands before a value. A string ends in a quotation mark, so that the
 * last character tells what was before. */
static void begin(struct json *j, const char *key) {
  if (j->len > 0 && !memchr("{[", j->text[j->len - 1], 2))
    put_word(j, ",");
  if (!key)
    return;
  put_string(j, key, strlen(key));
  put_word(j, ":");
}

void json_object(struct json *j, const char *key) {
  begin(j, key);
  put_word(j, "{");
}

void json_end_object(struct json *j) { put_word(j, "}"); }

void json_array(struct json *j, const char *key) {
  begin(j, key);
  put_word(j, "[");
}

void json_end_array(struct json *j) { put_word(j, "]"); }

void json_text(struct json *j, const char *key, const char *text, size_t len) {
  begin(j, key);
  put_string(j, text, len);
}

void json_string(struct json *j, const char *key, const char *text) {
  if (text)
    json_text(j, key, text, strlen(text));
}

void json_integer(struct json *j, const char *key, uint64_t value) {
  char text[24];

  if (value > INT64_MAX)
    fail(j, -EINVAL);
  snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
  begin(j, key);
  put_word(j, text);
}

/* Prints whole numbers, because the decimal point depends on the locale. */
void json_decimal(struct json *j, const char *key, double value) {
  uint64_t millionths;
  char text[48];

  if (isnan(value))
    return;
  if (!(value >= 0 && value < 8796093022208.0)) {
    fail(j, -EINVAL);
    return;
  }
  millionths = (uint64_t)(value * (double)MILLION + 0.5);
  snprintf(text, sizeof(text), "%llu.%06llu",
           (unsigned long long)(millionths / MILLION),
           (unsigned long long)(millionths % MILLION));
  begin(j, key);
  put_word(j, text);
}

void json_true(struct json *j, const char *key) {
  begin(j, key);
  put_word(j, "true");
}

int json_finish(struct json *j, char **ret_text, size_t *ret_len) {
  put(j, "\n", 1);
  if (j->error)
    return j->error;
  *ret_text = j->text;
  *ret_len = j->len;
  *j = (struct json){.text = NULL};
  return 0;
}
