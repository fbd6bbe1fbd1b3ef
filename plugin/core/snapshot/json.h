/*
 * Writes a JSON text (RFC 8259) into memory, with libyajl.
 *
 * The first error sticks: later calls do nothing, and json_finish() returns it.
 */
#ifndef SMAPS_JSON_H
#define SMAPS_JSON_H

#include <stddef.h>
#include <stdint.h>

struct yajl_gen_t;

struct json {
  struct yajl_gen_t *gen;
  char *text;
  size_t len, cap;
  char *clean; /* scratch */
  size_t cap_clean;
  size_t max; /* bytes of the text: JSON_MAX */
  int error;  /* a negative errno */
};

#define JSON_MAX ((size_t)256 << 20)

/* End with json_done(), which also accepts a zeroed struct. */
void json_init(struct json *j);
void json_done(struct json *j);

void json_begin_object(struct json *j);
void json_end_object(struct json *j);
void json_begin_array(struct json *j);
void json_end_array(struct json *j);
void json_key(struct json *j, const char *key);

/*
 * Adds a string of untrusted bytes. Valid UTF-8 is kept; every other byte
 * becomes the four characters \xNN.
 */
void json_text(struct json *j, const char *text, size_t len);
void json_string(struct json *j, const char *text); /* ends in NUL */
void json_integer(struct json *j, uint64_t value);
/* Adds a number with six decimals. It must be at least 0 and below 2^43. */
void json_decimal(struct json *j, double value);
void json_true(struct json *j);

/*
 * Returns 0 and the text, which the caller frees, or the first error: -ENOMEM,
 * -EFBIG (JSON_MAX), -EINVAL (a wrong order of calls, or a value out of range).
 */
int json_finish(struct json *j, char **ret_text, size_t *ret_len);

#endif
