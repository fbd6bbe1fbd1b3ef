/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "snapshot/json.h"

#include "fixture.h"
#include "parsed.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void json_begin(struct json *j) { *j = (struct json){.max = JSON_MAX}; }

/* The text of what was written, and the end of it. */
static char *finish(struct json *j) {
  char *text = NULL;
  size_t len = 0;

  assert_int_equal(json_finish(j, &text, &len), 0);
  assert_int_equal(strnlen(text, len), len);
  text = realloc(text, len + 1);
  assert_non_null(text);
  text[len] = '\0';
  json_done(j);
  return text;
}

static int error_of(struct json *j) {
  char *text;
  size_t len;
  int r;

  fixture_taint(&text, sizeof(text));
  fixture_taint(&len, sizeof(len));
  r = json_finish(j, &text, &len);
  fixture_assert_untouched(&text, sizeof(text));
  fixture_assert_untouched(&len, sizeof(len));
  json_done(j);
  return r;
}

static void assert_written(struct json *j, const char *expected) {
  char *text = finish(j);

  assert_string_equal(text, expected);
  free(text);
}

TEST(everything_is_written_on_one_line) {
  struct json j;

  json_begin(&j);
  json_object(&j, NULL);
  json_integer(&j, "a", 1);
  json_array(&j, "b");
  json_string(&j, NULL, "x\ny");
  json_decimal(&j, NULL, 0.5);
  json_true(&j, NULL);
  json_integer(&j, NULL, UINT64_C(9007199254740993));
  json_integer(&j, NULL, INT64_MAX);
  json_end_array(&j);
  json_string(&j, "left out", NULL);
  json_decimal(&j, "left out", (double)NAN);
  json_object(&j, "c");
  json_end_object(&j);
  json_end_object(&j);
  assert_written(&j, "{\"a\":1,\"b\":[\"x\\u000Ay\",0.500000,true,"
                     "9007199254740993,9223372036854775807],\"c\":{}}\n");
  json_done(&j); /* twice */
}

/* --- text -----------------------------------------------------------------*/

static char *text_of(const char *text, size_t len) {
  char *copy = fixture_copy(text, len);
  struct json j;

  json_begin(&j);
  json_text(&j, NULL, copy, len);
  free(copy);
  return finish(&j);
}

struct row {
  const char *text;
  size_t len;
  const char *expected; /* without the quotation marks */
};

static void assert_rows(const struct row *rows, size_t n) {
  for (size_t i = 0; i < n; i++) {
    char *text = text_of(rows[i].text, rows[i].len);
    size_t len = strlen(rows[i].expected);

    if (strlen(text) != len + 3 || text[0] != '"' ||
        memcmp(text + 1, rows[i].expected, len) != 0 || text[len + 1] != '"')
      fail_msg("row %zu: %s instead of \"%s\"", i, text, rows[i].expected);
    free(text);
  }
}

TEST(valid_utf_8_stays) {
  static const char *const texts[] = {"",
                                      "plain",
                                      "\x7f",
                                      "\xc2\x80",
                                      "\xdf\xbf",
                                      "\xe0\xa0\x80",
                                      "\xe1\x80\x80",
                                      "\xed\x9f\xbf",
                                      "\xee\x80\x80",
                                      "\xef\xbf\xbf",
                                      "\xf0\x90\x80\x80",
                                      "\xf1\x80\x80\x80",
                                      "\xf4\x8f\xbf\xbf"};

  for (size_t i = 0; i < LENGTH(texts); i++)
    assert_rows(&(struct row){texts[i], strlen(texts[i]), texts[i]}, 1);
}

TEST(hostile_bytes_are_escaped_as_json_has_it) {
  static const struct row rows[] = {
      {TEXT("\"},\n{\"pid\":1"), "\\\"},\\u000A{\\\"pid\\\":1"},
      {TEXT("a\\nb"), "a\\\\nb"},
      {TEXT("\0\1\x1b[2J\t\r"), "\\u0000\\u0001\\u001B[2J\\u0009\\u000D"},
  };

  assert_rows(rows, LENGTH(rows));
}

/* --- numbers ---------------------------------------------------------------*/

TEST(numbers_that_no_reader_can_hold_are_limited) {
  struct json j;

  json_begin(&j);
  json_array(&j, NULL);
  json_integer(&j, NULL, (uint64_t)INT64_MAX + 1);
  json_decimal(&j, NULL, (double)INFINITY);
  json_decimal(&j, NULL, -0.5);
  json_end_array(&j);
  assert_written(&j, "[9223372036854775807,9223372036854.775807,0.000000]\n");
}

/* --- errors ----------------------------------------------------------------*/

/* Writes an array of `n` strings of one byte, which has 4 n + 1 bytes. */
static void write_array(struct json *j, size_t n) {
  json_array(j, NULL);
  for (size_t i = 0; i < n; i++)
    json_string(j, NULL, "x");
  json_end_array(j);
}

TEST(a_text_may_be_so_large_and_no_larger) {
  struct json j;
  char *text;

  json_begin(&j);
  assert_true(j.max == JSON_MAX);
  j.max = 10002;
  write_array(&j, 2500);
  assert_int_equal(j.len, 10001);
  text = finish(&j);
  assert_int_equal(strlen(text), 10002);
  free(text);
  json_begin(&j);
  j.max = 10001;
  write_array(&j, 2500);
  assert_int_equal(j.error, 0);
  assert_int_equal(error_of(&j), -EFBIG); /* for the newline */
  json_begin(&j);
  j.max = 10001;
  write_array(&j, 5000);
  assert_int_equal(j.error, -EFBIG);
  assert_true(j.len <= 10001);
  json_done(&j);
}
