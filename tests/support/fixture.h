/* SPDX-License-Identifier: MIT */
/* Reads texts for the tests of parsers, and checks what every parser has to
 * keep to. */
#ifndef SMAPS_TESTS_FIXTURE_H
#define SMAPS_TESTS_FIXTURE_H

#include <smaps/text.h>

#include <stdbool.h>
#include <stddef.h>

/* Tables of texts have such rows. */
struct text_case {
  const char *name;
  const char *text;
  size_t len;
};

/* Reads a whole file of tests/fixtures/text. The text stays until the next
 * call. */
struct span fixture_load(const char *name);

/* Returns a copy that ends where the text does: ASan reports a read beyond it.
 * The caller frees it. */
char *fixture_copy(const char *text, size_t len);

/* The first fills *ret with a pattern. The second fails the test if a call that
 * failed has changed it. */
void fixture_taint(void *ret, size_t size);
void fixture_assert_untouched(const void *ret, size_t size);

/* Around a call of a parser, as below. The first taints *ret and copies the
 * text as fixture_copy() does; the copy stays until the next call, for what is
 * parsed may point into it. The second passes the outcome on: 0, or -EBADMSG
 * with *ret left alone. Any other fails the test. */
char *fixture_begin(const char *text, size_t len, void *ret, size_t size);
int fixture_end(int outcome, const void *ret, size_t size);

/* Defines a parser's parse() as above, is_taken() of a text, and parse_file()
 * of a fixture. */
#define FIXTURE_PARSER(parser, type)                                           \
  static int parse(const char *text, size_t len, type *ret) {                  \
    char *copy = fixture_begin(text, len, ret, sizeof(*ret));                  \
                                                                               \
    return fixture_end(parser(copy, len, ret), ret, sizeof(*ret));             \
  }                                                                            \
                                                                               \
  static bool is_taken(const char *text, size_t len) {                         \
    type ignored;                                                              \
                                                                               \
    return parse(text, len, &ignored) == 0;                                    \
  }                                                                            \
                                                                               \
  __attribute__((unused)) static int parse_file(const char *name, type *ret) { \
    struct span text = fixture_load(name);                                     \
                                                                               \
    return parse(text.text, text.len, ret);                                    \
  }

typedef bool (*is_taken_function)(const char *text, size_t len);

/* Fails the test unless each of the texts is refused. */
void fixture_refuse(const struct text_case *cases, size_t n,
                    is_taken_function is_taken);

/* Fails the test unless the text is refused wherever it is cut short. */
void fixture_refuse_cuts(const char *name, const char *text, size_t len,
                         is_taken_function is_taken);

#endif
