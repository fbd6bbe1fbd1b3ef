/* SPDX-License-Identifier: MIT */
/* Writes JSON (RFC 8259) to a stream, in a form that is safe for a terminal. */
#ifndef REPORT_JSON_LINES_H
#define REPORT_JSON_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 8

struct json_lines {
  FILE *out;
  bool is_in_markup; /* see json_lines_text() */
  unsigned depth;
  bool has_any[JSON_DEPTH_MAX]; /* the open object or array has an element */
  bool is_row[JSON_DEPTH_MAX];  /* unknown values keep their place */
};

/* Set `out` and zero the other fields before the first call. Each element of
 * the outermost array or object is a line. The key is NULL in arrays and at the
 * top.
 */
void json_lines_begin(struct json_lines *j, const char *key, char brace);
void json_lines_end(struct json_lines *j, char brace);

/* Begins an array in which each value has its place; keys are left out. */
void json_lines_begin_row(struct json_lines *j, const char *key);

/*
 * The first four omit unknown values, NULL, MISSING and NaN, from objects; in
 * the rows of a table (json_lines_begin_row()) they are null. Invalid UTF-8
 * becomes \xNN, as in a snapshot. Within markup so does what text_is_plain()
 * does not know, and no byte can end an element: < > & are escaped.
 */
void json_lines_text(struct json_lines *j, const char *key, const char *text);
/* Cuts the text to about that many bytes: an ellipsis stands for its middle,
 * because the ends of command lines differ most. */
void json_lines_text_cut(struct json_lines *j, const char *key,
                         const char *text, size_t max);
/* Writes an array of texts. */
void json_lines_names(struct json_lines *j, const char *key,
                      const char *const *names, size_t n);
void json_lines_whole(struct json_lines *j, const char *key, uint64_t value);
void json_lines_real(struct json_lines *j, const char *key, double value);
void json_lines_change(struct json_lines *j, const char *key, bool is_less,
                       uint64_t value);
void json_lines_flag(struct json_lines *j, const char *key, bool value);

#endif
