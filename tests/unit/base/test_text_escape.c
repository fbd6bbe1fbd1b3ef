/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <smaps/text.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  const char *text;
  size_t len;
  const char *escaped;
} escapes[] = {
    {"empty", TEXT(""), ""},
    {"quotation mark", TEXT("say \"x\""), "say \\x22x\\x22"},
    {"backslash", TEXT("a\\x41"), "a\\x5cx41"},
    {"newline", TEXT("a\nFAKE LOG LINE"), "a\\x0aFAKE LOG LINE"},
    {"ESC", TEXT("\x1b]0;title\a"), "\\x1b]0;title\\x07"},
    {"0xff", TEXT("\xff\xff\xff"), "\\xff\\xff\\xff"},
    {"UTF-8", TEXT("\xe2\x80\xae!"), "\\xe2\\x80\\xae!"},
    {"NUL", TEXT("a\0b"), "a\\x00b"},
    {"printable to the edges", TEXT("\x1f ~\x7f"), "\\x1f ~\\x7f"},
    {"escape at the end", TEXT("abcdefghij\n"), "abcdefghij\\x0a"},
};
#define ESCAPES LENGTH(escapes)

/* Escapes row i into exactly `size` bytes. Free what it returns. */
static char *escape(size_t i, size_t size) {
  char *text = malloc(escapes[i].len), *ret = malloc(size);

  memcpy(text, escapes[i].text, escapes[i].len);
  memset(ret, 'Z', size);
  assert_ptr_equal(escape_text(text, escapes[i].len, ret, size), ret);
  free(text);
  return ret;
}

TEST(untrusted_bytes_are_escaped) {
  for (size_t i = 0; i < ESCAPES; i++) {
    size_t fits = strlen(escapes[i].escaped) + 1;
    char *ret = escape(i, fits > 8 ? fits : 8);

    if (strcmp(ret, escapes[i].escaped) != 0)
      fail_msg("%s: \"%s\"", escapes[i].name, ret);
    free(ret);
  }
}

/* A name of systemd is printed as it is written in collectd.conf. */
TEST(quoted_text_is_that_of_collectd_conf) {
  static const struct {
    const char *text, *quoted;
  } cases[] = {{"my\\x2dweb.service", "my\\\\x2dweb.service"},
               {"say \"x\"\n", "say \\\"x\\\"\\x0a"},
               {"\\x5c", "\\\\x5c"},
               {"plain", "plain"},
               {"", ""}};
  char ret[64];

  for (size_t i = 0; i < LENGTH(cases); i++)
    assert_string_equal(quote_text(cases[i].text, ret, sizeof(ret)),
                        cases[i].quoted);
}

/* As much of row i as fits with "...", never half an escape. */
static void cut_slowly(size_t i, size_t size, char *ret) {
  const char *escaped = escapes[i].escaped;
  size_t at = 0;

  for (;;) {
    size_t unit = escaped[at] == '\\' ? 4 : 1;

    if (at + unit + sizeof("...") > size)
      break;
    at += unit;
  }
  sprintf(ret, "%.*s...", (int)at, escaped);
}

TEST(escaped_text_is_cut_between_bytes_at_every_size) {
  char want[256];

  for (size_t i = 0; i < ESCAPES; i++)
    for (size_t size = 8; size <= strlen(escapes[i].escaped); size++) {
      char *ret = escape(i, size);

      cut_slowly(i, size, want);
      if (strcmp(ret, want) != 0)
        fail_msg("%s, in %zu bytes: \"%s\"", escapes[i].name, size, ret);
      free(ret);
    }
}
