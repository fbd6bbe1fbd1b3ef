/*
 * Writes a JSON text (RFC 8259) into memory, by libyajl.
 *
 * Nothing here fails at once: the first error sticks, what follows does
 * nothing, and json_finish() tells.
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
  size_t max; /* how large the text may become: JSON_MAX */
  int error;  /* a negative errno */
};

#define JSON_MAX ((size_t)256 << 20)

/* End with json_done(), which may be called for a zeroed one too. */
void json_init(struct json *j);
void json_done(struct json *j);

void json_begin_object(struct json *j);
void json_end_object(struct json *j);
void json_begin_array(struct json *j);
void json_end_array(struct json *j);
void json_key(struct json *j, const char *key);

/*
 * Bytes that anybody may have chosen. Valid UTF-8 stays, each other byte
 * becomes the four characters \xNN.
 */
void json_text(struct json *j, const char *text, size_t len);
void json_string(struct json *j, const char *text); /* ends in NUL */
void json_integer(struct json *j, uint64_t value);
/* Six digits behind the point; neither NaN nor negative nor beyond 2^43. */
void json_decimal(struct json *j, double value);
void json_true(struct json *j);

/*
 * Hands the text over, to be freed by the caller. A negative errno where
 * something failed: -ENOMEM, -EFBIG for JSON_MAX, -EINVAL for calls in an
 * impossible order.
 */
int json_finish(struct json *j, char **ret_text, size_t *ret_len);

#endif
