/* SPDX-License-Identifier: MIT */
#include "snapshot/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include <smaps/text.h>

#define MILLION UINT64_C(1000000)

static void put(struct json *j, const char *text, size_t len) {
  size_t cap = j->cap ? j->cap : 4096;

  if (!j->error && len > j->max - j->len)
    j->error = -EFBIG;
  if (j->error)
    return;
  while (cap - j->len < len)
    cap *= 2;
  if (cap != j->cap) {
    char *larger = realloc(j->text, cap);

    if (!larger) {
      j->error = -ENOMEM;
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

static void put_escaped(struct json *j, unsigned char c) {
  char text[8];

  if (c == '"' || c == '\\')
    snprintf(text, sizeof(text), "\\%c", c);
  else
    snprintf(text, sizeof(text), c < 0x20 ? "\\u%04X" : "\\\\x%02x", c);
  put_word(j, text);
}

/* Writes the comma and the key before a value. The last character shows whether
 * a comma is needed: even a string ends in a quotation mark. */
static void begin(struct json *j, const char *key) {
  if (j->len > 0 && !strchr("{[", j->text[j->len - 1]))
    put_word(j, ",");
  if (!key)
    return;
  put_word(j, "\"");
  put_word(j, key);
  put_word(j, "\":");
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
  size_t n;
  uint32_t c;

  begin(j, key);
  put_word(j, "\"");
  for (size_t i = 0; i < len && !j->error; i += n) {
    n = utf8_decode(text + i, len - i, &c);
    if (n > 1 || (n == 1 && c >= 0x20 && c != '"' && c != '\\')) {
      put(j, text + i, n);
      continue;
    }
    put_escaped(j, (unsigned char)text[i]);
    n = 1;
  }
  put_word(j, "\"");
}

void json_string(struct json *j, const char *key, const char *text) {
  if (text)
    json_text(j, key, text, strlen(text));
}

void json_integer(struct json *j, const char *key, uint64_t value) {
  char text[24];

  snprintf(text, sizeof(text), "%llu",
           (unsigned long long)min(value, AMOUNT_MOST));
  begin(j, key);
  put_word(j, text);
}

/* Prints whole numbers, because the decimal point depends on the locale. */
void json_decimal(struct json *j, const char *key, double value) {
  uint64_t millionths;
  char text[48];

  if (isnan(value))
    return;
  millionths = amount_from(value * (double)MILLION + 0.5);
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

void json_line(struct json *j, const char *text, size_t len) {
  begin(j, NULL);
  put_word(j, "\n\"");
  put(j, text, len);
}

void json_raw(struct json *j, const char *text, size_t len) {
  put(j, text, len);
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
