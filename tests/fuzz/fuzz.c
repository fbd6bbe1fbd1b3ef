/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAINT 0xaa

void fuzz_fail(const char *condition, const char *file, int line) {
  fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
  abort();
}

uint8_t fuzz_byte(struct fuzz_bytes *b) {
  if (b->left == 0)
    return 0;
  b->left--;
  return *b->at++;
}

static char *copy(const uint8_t *data, size_t size, size_t more) {
  char *text = malloc(size + more);

  if (size + more > 0 && !text)
    abort();
  if (size > 0)
    memcpy(text, data, size);
  return text;
}

char *fuzz_copy(const uint8_t *data, size_t size) {
  /* Never NULL: a text that was read always has an address. */
  return size ? copy(data, size, 0) : copy(data, 0, 1);
}

struct span fuzz_text(struct fuzz_bytes *b, size_t unit) {
  size_t len = fuzz_byte(b) * unit;
  struct span text;

  if (len > b->left)
    len = b->left;
  text = (struct span){.text = fuzz_copy(b->at, len), .len = len};
  b->at += len;
  b->left -= len;
  return text;
}

char *fuzz_string(struct fuzz_bytes *b) {
  size_t len = fuzz_byte(b);
  char *text;

  if (len > b->left)
    len = b->left;
  text = copy(b->at, len, 1);
  text[len] = '\0';
  b->at += len;
  b->left -= len;
  return text;
}

void fuzz_taint(void *ret, size_t size) { memset(ret, TAINT, size); }

void fuzz_require_untouched(const void *ret, size_t size) {
  const unsigned char *bytes = ret;

  for (size_t i = 0; i < size; i++)
    require(bytes[i] == TAINT);
}

bool fuzz_is_within(struct span inner, struct span outer) {
  return inner.text >= outer.text &&
         inner.text + inner.len <= outer.text + outer.len;
}

bool fuzz_is_printable(const char *text) {
  for (; *text; text++)
    if (*text < 0x20 || *text > 0x7e)
      return false;
  return true;
}
