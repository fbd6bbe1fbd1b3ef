/* SPDX-License-Identifier: MIT */
/* Written JSON is read back unchanged, for any bytes. */
#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "snapshot/json.h"

#define EVENTS_MAX 512
#define DEPTH_MAX 16

enum event_kind { TEXT, INTEGER, DECIMAL, TRUE, KEY, OBJECT, ARRAY, END };

struct event {
  enum event_kind kind;
  char *text;
  size_t len;
  uint64_t integer;
  double decimal;
};

/* The events that were written, and how far the reader has come. */
struct script {
  struct event events[EVENTS_MAX];
  size_t n, at;
};

/* --- the expected text, computed independently of json.c --- */

static const struct {
  unsigned char mask, lead;
  unsigned more;
  uint32_t least;
} forms[] = {{0x80, 0x00, 0, 0},
             {0xe0, 0xc0, 1, 0x80},
             {0xf0, 0xe0, 2, 0x800},
             {0xf8, 0xf0, 3, 0x10000}};

/* Returns the length of the character; 0 if it is invalid. */
static size_t character(const unsigned char *s, size_t left) {
  for (size_t f = 0; f < sizeof(forms) / sizeof(*forms); f++) {
    uint32_t c = s[0] & (unsigned char)~forms[f].mask;

    if ((s[0] & forms[f].mask) != forms[f].lead || forms[f].more >= left)
      continue;
    for (unsigned i = 1; i <= forms[f].more; i++) {
      if (s[i] >> 6 != 2)
        return 0;
      c = c << 6 | (s[i] & 0x3f);
    }
    if (c < forms[f].least || c > 0x10ffff || c >> 11 == 0xd800 >> 11)
      return 0;
    return forms[f].more + 1;
  }
  return 0;
}

static char *expected_text(struct span text, size_t *ret_len) {
  const unsigned char *s = (const unsigned char *)text.text;
  char *ret = malloc(4 * text.len + 1);
  size_t n = 0;

  for (size_t i = 0; i < text.len;) {
    size_t len = character(s + i, text.len - i);

    if (len == 0)
      n += (size_t)sprintf(ret + n, "\\x%02x", s[i]);
    else
      memcpy(ret + n, s + i, len);
    n += len;
    i += len ? len : 1;
  }
  *ret_len = n;
  return ret;
}

/* --- writing --- */

static struct event *add(struct script *s, enum event_kind kind) {
  struct event *e = &s->events[s->n++];

  *e = (struct event){.kind = kind};
  return e;
}

static uint64_t take_number(struct fuzz_bytes *b) {
  uint64_t value = 0;

  for (uint8_t n = fuzz_byte(b) % 9; n > 0; n--)
    value = value << 8 | fuzz_byte(b);
  return value;
}

static void write_text(struct json *j, const char *key, struct fuzz_bytes *b,
                       struct script *s) {
  struct span text = fuzz_text(b, 1);
  struct event *e = add(s, TEXT);

  json_text(j, key, text.text, text.len);
  e->text = expected_text(text, &e->len);
  free((void *)(uintptr_t)text.text);
}

static void write_value(struct json *j, const char *key, struct fuzz_bytes *b,
                        struct script *s) {
  uint64_t number;

  switch (fuzz_byte(b) % 4) {
  case 0:
    number = take_number(b) & INT64_MAX;
    add(s, INTEGER)->integer = number;
    json_integer(j, key, number);
    break;
  case 1:
    number = take_number(b) & ((UINT64_C(1) << 62) - 1);
    add(s, DECIMAL)->decimal = (double)number / (1 << 20);
    json_decimal(j, key, (double)number / (1 << 20));
    break;
  case 2:
    add(s, TRUE);
    json_true(j, key);
    break;
  default:
    write_text(j, key, b, s);
  }
}

/* The open objects and arrays, the innermost last. */
struct nest {
  bool is_object[DEPTH_MAX];
  unsigned depth;
};

static void begin(struct json *j, const char *key, struct nest *nest,
                  bool is_object, struct script *s) {
  nest->is_object[nest->depth++] = is_object;
  add(s, is_object ? OBJECT : ARRAY);
  if (is_object)
    json_object(j, key);
  else
    json_array(j, key);
}

static void end(struct json *j, struct nest *nest, struct script *s) {
  add(s, END);
  if (nest->is_object[--nest->depth])
    json_end_object(j);
  else
    json_end_array(j);
}

static void write_all(struct json *j, struct fuzz_bytes *b, struct script *s) {
  struct nest nest = {.depth = 0};

  begin(j, NULL, &nest, false, s);
  while (b->left > 0 && s->n < EVENTS_MAX - DEPTH_MAX - 2) {
    uint8_t what = fuzz_byte(b) % 8;
    const char *key = NULL;

    if (what == 0 && nest.depth > 1) {
      end(j, &nest, s);
      continue;
    }
    if (nest.is_object[nest.depth - 1]) {
      add(s, KEY);
      key = "key";
    }
    if (what < 3 && nest.depth < DEPTH_MAX)
      begin(j, key, &nest, what == 1, s);
    else
      write_value(j, key, b, s);
  }
  while (nest.depth > 0)
    end(j, &nest, s);
}

/* --- reading --- */

static const struct event *next(void *ctx, enum event_kind kind) {
  struct script *s = ctx;

  require(s->at < s->n);
  require(s->events[s->at].kind == kind);
  return &s->events[s->at++];
}

static int on_true(void *ctx, int value) {
  next(ctx, TRUE);
  return value;
}

static int on_number(void *ctx, const char *text, size_t len) {
  const struct script *s = ctx;
  bool is_integer = !memchr(text, '.', len);
  const struct event *e = next(ctx, is_integer ? INTEGER : DECIMAL);
  char copy[64];

  require(s->at <= s->n && len < sizeof(copy));
  snprintf(copy, sizeof(copy), "%.*s", (int)len, text);
  if (is_integer)
    require(strtoull(copy, NULL, 10) == e->integer);
  else
    require(fabs(strtod(copy, NULL) - e->decimal) <= 1e-6 + e->decimal * 1e-15);
  return 1;
}

static int on_text(void *ctx, const unsigned char *text, size_t len) {
  const struct event *e = next(ctx, TEXT);

  require(len == e->len && memcmp(text, e->text, len) == 0);
  return 1;
}

static int on_key(void *ctx, const unsigned char *text, size_t len) {
  next(ctx, KEY);
  require(len == 3 && memcmp(text, "key", 3) == 0);
  return 1;
}

static int on_object(void *ctx) { return next(ctx, OBJECT) != NULL; }
static int on_array(void *ctx) { return next(ctx, ARRAY) != NULL; }
static int on_end(void *ctx) { return next(ctx, END) != NULL; }

static const yajl_callbacks callbacks = {.yajl_boolean = on_true,
                                         .yajl_number = on_number,
                                         .yajl_string = on_text,
                                         .yajl_start_map = on_object,
                                         .yajl_map_key = on_key,
                                         .yajl_end_map = on_end,
                                         .yajl_start_array = on_array,
                                         .yajl_end_array = on_end};

static void read_all(const char *text, size_t len, struct script *s) {
  yajl_handle parser = yajl_alloc(&callbacks, NULL, s);

  require(yajl_parse(parser, (const unsigned char *)text, len) ==
          yajl_status_ok);
  require(yajl_complete_parse(parser) == yajl_status_ok);
  require(s->at == s->n);
  yajl_free(parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct script script;
  struct fuzz_bytes b = {data, size};
  char *text;
  size_t len;
  struct json j = {.max = JSON_MAX};

  script.n = script.at = 0;
  write_all(&j, &b, &script);
  require(json_finish(&j, &text, &len) == 0);
  json_done(&j);
  require(len > 0 && !memchr(text, '\0', len));
  require((const char *)memchr(text, '\n', len) == text + len - 1);
  read_all(text, len, &script);
  free(text);
  for (size_t i = 0; i < script.n; i++)
    free(script.events[i].text);
  return 0;
}
