/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not zero, so that a parser that clears what it returns is seen as well. */
#define TAINT 0xaa

struct span fixture_load(const char *name) {
  static char text[32768]; /* the longest, smaps-6.18, has 21131 bytes */
  char path[128];
  size_t len;
  FILE *file;

  snprintf(path, sizeof(path), "tests/fixtures/text/%s", name);
  file = fopen(path, "r");
  if (!file)
    fail_msg("%s: %s", path, strerror(errno));
  len = fread(text, 1, sizeof(text), file);
  fclose(file);
  /* An empty file would make the loops over its cuts pass unseen, a full
   * buffer is a file that was not read to its end. */
  assert_in_range(len, 1, sizeof(text) - 1);
  return (struct span){text, len};
}

char *fixture_copy(const char *text, size_t len) {
  char *copy = malloc(len);

  assert_non_null(copy);
  memcpy(copy, text, len);
  return copy;
}

void fixture_taint(void *ret, size_t size) { memset(ret, TAINT, size); }

void fixture_assert_untouched(const void *ret, size_t size) {
  const unsigned char *bytes = ret;

  for (size_t i = 0; i < size; i++)
    if (bytes[i] != TAINT)
      fail_msg("byte %zu of what is returned was written", i);
}

char *fixture_begin(const char *text, size_t len, void *ret, size_t size) {
  static char *copy;

  free(copy);
  copy = NULL; /* what follows may end the test, and the next frees again */
  copy = fixture_copy(text, len);
  fixture_taint(ret, size);
  return copy;
}

int fixture_end(int outcome, const void *ret, size_t size) {
  if (outcome != 0) {
    assert_int_equal(outcome, -EBADMSG);
    fixture_assert_untouched(ret, size);
  }
  return outcome;
}

void fixture_refuse(const struct text_case *cases, size_t n,
                    is_taken_function is_taken) {
  for (size_t i = 0; i < n; i++)
    if (is_taken(cases[i].text, cases[i].len))
      fail_msg("%s: taken", cases[i].name);
}

void fixture_refuse_cuts(const char *name, const char *text, size_t len,
                         is_taken_function is_taken) {
  for (size_t cut = 0; cut < len; cut++)
    if (is_taken(text, cut))
      fail_msg("%s, %zu bytes: taken", name, cut);
}
