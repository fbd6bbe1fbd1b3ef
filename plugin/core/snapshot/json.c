#include "snapshot/json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#define MILLION UINT64_C(1000000)

static void fail(struct json *j, int error) {
  if (!j->error)
    j->error = error;
}

static bool make_room(struct json *j, size_t more) {
  size_t cap = j->cap ? j->cap : 4096;
  char *text;

  if (more > j->max - j->len) {
    fail(j, -EFBIG);
    return false;
  }
  while (cap - j->len < more)
    cap *= 2;
  if (cap == j->cap)
    return true;
  text = realloc(j->text, cap);
  if (!text) {
    fail(j, -ENOMEM);
    return false;
  }
  j->text = text;
  j->cap = cap;
  return true;
}

/* yajl's own buffer does not check its allocations. */
static void print(void *ctx, const char *text, size_t len) {
  struct json *j = ctx;

  if (j->error || !make_room(j, len))
    return;
  memcpy(j->text + j->len, text, len);
  j->len += len;
}

void json_init(struct json *j) {
  *j = (struct json){.gen = yajl_gen_alloc(NULL), .max = JSON_MAX};
  if (!j->gen || !yajl_gen_config(j->gen, yajl_gen_print_callback, print, j))
    fail(j, -ENOMEM);
}

void json_done(struct json *j) {
  if (j->gen)
    yajl_gen_free(j->gen);
  free(j->text);
  free(j->clean);
  *j = (struct json){.gen = NULL};
}

static void check(struct json *j, yajl_gen_status status) {
  if (status != yajl_gen_status_ok)
    fail(j, -EINVAL);
}

void json_begin_object(struct json *j) {
  if (!j->error)
    check(j, yajl_gen_map_open(j->gen));
}

void json_end_object(struct json *j) {
  if (!j->error)
    check(j, yajl_gen_map_close(j->gen));
}

void json_begin_array(struct json *j) {
  if (!j->error)
    check(j, yajl_gen_array_open(j->gen));
}

void json_end_array(struct json *j) {
  if (!j->error)
    check(j, yajl_gen_array_close(j->gen));
}

static void add_string(struct json *j, const char *text, size_t len) {
  if (!j->error)
    check(j, yajl_gen_string(j->gen, (const unsigned char *)text, len));
}

void json_key(struct json *j, const char *key) {
  add_string(j, key, strlen(key));
}

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

/* In the worst case every byte becomes \xNN. */
static bool make_clean_room(struct json *j, size_t len) {
  size_t cap = len * 4 + 1;
  char *clean;

  if (cap <= j->cap_clean)
    return true;
  clean = realloc(j->clean, cap);
  if (!clean) {
    fail(j, -ENOMEM);
    return false;
  }
  j->clean = clean;
  j->cap_clean = cap;
  return true;
}

void json_text(struct json *j, const char *text, size_t len) {
  const unsigned char *s = (const unsigned char *)text;
  size_t n = 0;

  if (j->error || !make_clean_room(j, len))
    return;
  for (size_t i = 0; i < len;) {
    size_t taken = character_length(s + i, len - i);

    if (taken > 0)
      memcpy(j->clean + n, s + i, taken);
    else
      snprintf(j->clean + n, 5, "\\x%02x", s[i]);
    n += taken ? taken : 4;
    i += taken ? taken : 1;
  }
  add_string(j, j->clean, n);
}

void json_string(struct json *j, const char *text) {
  json_text(j, text, strlen(text));
}

void json_integer(struct json *j, uint64_t value) {
  if (j->error)
    return;
  if (value > INT64_MAX)
    fail(j, -EINVAL);
  else
    check(j, yajl_gen_integer(j->gen, (long long)value));
}

/* Prints whole numbers, because the decimal point depends on the locale. */
void json_decimal(struct json *j, double value) {
  char text[48];
  uint64_t millionths;
  int n;

  if (j->error)
    return;
  if (!(value >= 0 && value < 8796093022208.0)) {
    fail(j, -EINVAL);
    return;
  }
  millionths = (uint64_t)(value * (double)MILLION + 0.5);
  n = snprintf(text, sizeof(text), "%llu.%06llu",
               (unsigned long long)(millionths / MILLION),
               (unsigned long long)(millionths % MILLION));
  check(j, yajl_gen_number(j->gen, text, (size_t)n));
}

void json_true(struct json *j) {
  if (!j->error)
    check(j, yajl_gen_bool(j->gen, 1));
}

int json_finish(struct json *j, char **ret_text, size_t *ret_len) {
  print(j, "\n", 1);
  if (j->error)
    return j->error;
  *ret_text = j->text;
  *ret_len = j->len;
  j->text = NULL;
  j->len = j->cap = 0;
  return 0;
}
