/* Writes JSON (RFC 8259) to a stream, in a form that is safe for a terminal. */
#ifndef REPORT_JSON_LINES_H
#define REPORT_JSON_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 8

struct json_lines {
  FILE *out;
  unsigned depth;
  bool has_any[JSON_DEPTH_MAX]; /* the open object or array has an element */
};

/* Set `out` and zero the other fields before the first call. Each element of
 * the outermost array or object is a line. The key is NULL in arrays and at the
 * top.
 */
void json_lines_begin(struct json_lines *j, const char *key, char brace);
void json_lines_end(struct json_lines *j, char brace);

/* The first four omit unknown values: NULL, UNKNOWN, NaN. Invalid UTF-8 becomes
 * \xNN, as in a snapshot. */
void json_lines_text(struct json_lines *j, const char *key, const char *text);
void json_lines_whole(struct json_lines *j, const char *key, uint64_t value);
void json_lines_real(struct json_lines *j, const char *key, double value);
void json_lines_change(struct json_lines *j, const char *key, bool is_less,
                       uint64_t value);
void json_lines_flag(struct json_lines *j, const char *key, bool value);

#endif
