/* SPDX-License-Identifier: MIT */
/*
 * Writes a JSON text (RFC 8259) into memory. The caller has to call in the
 * right order, with a key for each value in an object, and NULL in an array.
 *
 * The first error sticks: later calls do nothing, and json_finish() returns it.
 * What a document contains, snapshot.c decides.
 */
#ifndef SMAPS_JSON_H
#define SMAPS_JSON_H

#include <stddef.h>
#include <stdint.h>

/* Zero it, but for max; end with json_finish() or json_done(). */
struct json {
  char *text;
  size_t len, cap;
  size_t max; /* bytes of the text: JSON_MAX */
  int error;  /* a negative errno */
};

#define JSON_MAX ((size_t)256 << 20)

void json_done(struct json *j);

void json_object(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_array(struct json *j, const char *key);
void json_end_array(struct json *j);

/*
 * Adds a string of untrusted bytes. Valid UTF-8 is kept; every other byte
 * becomes the four characters \xNN.
 */
void json_text(struct json *j, const char *key, const char *text, size_t len);
/* Ends in NUL. A NULL is left out with its key. */
void json_string(struct json *j, const char *key, const char *text);
/* At most INT64_MAX, because readers fail on more. */
void json_integer(struct json *j, const char *key, uint64_t value);
/* Adds a number with six decimals, from 0 to INT64_MAX millionths. NaN is left
 * out with its key. */
void json_decimal(struct json *j, const char *key, double value);
/* Begins a string on a line of its own; json_raw() goes on with it, and ends it
 * with a quotation mark. Its text needs no escapes. */
void json_line(struct json *j, const char *text, size_t len);
void json_raw(struct json *j, const char *text, size_t len);
void json_true(struct json *j, const char *key);

/* Returns 0 and the text, which the caller frees, or the first error: -ENOMEM
 * or -EFBIG (JSON_MAX). */
int json_finish(struct json *j, char **ret_text, size_t *ret_len);

#endif
