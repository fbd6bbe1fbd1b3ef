/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "proc/cmdline.h"

#include "fixture.h"

#include <stdlib.h>
#include <string.h>

struct cmdline_case {
  const char *name;
  const char *text;
  size_t len;
  size_t size;
  const char *joined;
};

static const struct cmdline_case cases[] = {
    {"empty", TEXT(""), 8, ""},
    {"three arguments", TEXT("a\0-D\0/srv/x\0"), 32, "a -D /srv/x"},
    {"no NUL at the end", TEXT("a\0b"), 8, "a b"},
    {"empty argument between", TEXT("a\0\0b\0"), 8, "a  b"},
    {"empty first argument", TEXT("\0b\0"), 8, " b"},
    {"NULs alone", TEXT("\0\0\0"), 8, ""},
    {"blanks alone", TEXT("   "), 8, ""},
    {"title padded with NULs", TEXT("sshd: x\0\0\0\0\0\0"), 32, "sshd: x"},
    {"title padded with blanks", TEXT("pg: idle      "), 32, "pg: idle"},
    {"padded with both", TEXT("x \0 \0\0 "), 32, "x"},
    {"blank in an argument", TEXT("sh\0-c\0a  b\0"), 32, "sh -c a  b"},
    {"tab at the end stays", TEXT("x\t\0"), 8, "x\t"},
    {"just fits", TEXT("abc"), 4, "abc"},
    {"fits without the padding", TEXT("abc\0"), 4, "abc"},
    {"one byte too long", TEXT("abcd"), 4, "abc"},
    {"cut behind a blank", TEXT("ab\0cd\0"), 4, "ab"},
    {"room for NUL alone, nothing to join", TEXT(""), 1, ""},
};

TEST(arguments_are_joined_with_blanks) {
  for (size_t i = 0; i < LENGTH(cases); i++) {
    const struct cmdline_case *c = &cases[i];
    char *text = fixture_copy(c->text, c->len);
    char *joined = malloc(c->size);
    size_t len;

    memset(joined, 0xaa, c->size);
    len = cmdline_join(text, c->len, joined, c->size);
    if (len != strlen(c->joined) || strlen(joined) != len ||
        strcmp(joined, c->joined) != 0)
      fail_msg("%s: \"%.*s\"", c->name, (int)c->size, joined);
    free(text);
    free(joined);
  }
}
