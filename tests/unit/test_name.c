#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/name.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(literal) literal, sizeof(literal) - 1

/* A copy that ends where the text does, so that ASan sees a step too far. */
static void add(struct name *n, const char *text, size_t len) {
  char *copy = malloc(len);

  assert_non_null(copy);
  memcpy(copy, text, len);
  name_add(n, copy, len);
  free(copy);
}

static bool make(const char *text, size_t len, struct name *ret) {
  *ret = (struct name){.len = 0};
  add(ret, text, len);
  return name_finish(ret);
}

/* The name of `len` letters, the last of which is `last`. */
static struct name make_long(size_t len, char last) {
  struct name n = {.len = 0};
  char text[1024];

  assert_in_range(len, 1, sizeof(text));
  memset(text, 'a', len);
  text[len - 1] = last;
  add(&n, text, len);
  assert_true(name_finish(&n));
  return n;
}

static void a_name_is_cleaned_byte_by_byte(void **state) {
  static const struct {
    const char *name;
    const char *text;
    size_t len;
    const char *want;
  } cases[] = {
      {"one letter", TEXT("a"), "a"},
      {"unit", TEXT("nginx.service"), "nginx.service"},
      {"blanks stay", TEXT(" a b "), " a b "},
      {"path", TEXT("/usr/sbin/nginx"), "usr_sbin_nginx"},
      {"slash inside", TEXT("a/b"), "a_b"},
      {"slash at the end", TEXT("a/"), "a_"},
      {"two slashes inside", TEXT("a//b"), "a__b"},
      {"one slash in front is dropped", TEXT("//a"), "_a"},
      {"two slashes alone", TEXT("//"), "_"},
      {"dots climb nowhere", TEXT("../../etc"), ".._.._etc"},
      {"quotation mark stays", TEXT("a\"b'"), "a\"b'"},
      {"backslash stays", TEXT("a\\b"), "a\\b"},
      {"percent stays", TEXT("%s%n"), "%s%n"},
      {"newline", TEXT("a\nb"), "a\\x0ab"},
      {"tab", TEXT("\t"), "\\x09"},
      {"ESC", TEXT("\x1b[2J"), "\\x1b[2J"},
      {"NUL", TEXT("a\0b"), "a\\x00b"},
      {"first printable one", TEXT("\x1f\x20"), "\\x1f "},
      {"last printable one", TEXT("\x7e\x7f"), "~\\x7f"},
      {"UTF-8", TEXT("\xc3\xa9"), "\\xc3\\xa9"},
      {"no UTF-8", TEXT("\xff\x80"), "\\xff\\x80"},
  };
  struct name n;

  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    if (!make(cases[i].text, cases[i].len, &n) ||
        strcmp(n.text, cases[i].want) != 0 || n.len != strlen(cases[i].want))
      fail_msg("%s: \"%s\"", cases[i].name, n.text);
}

static void every_byte_becomes_printable_ascii(void **state) {
  struct name seen[256];

  (void)state;
  for (int c = 0; c < 256; c++) {
    char text[2] = {'x', (char)c};

    assert_true(make(text, sizeof(text), &seen[c]));
    for (const char *p = seen[c].text; *p; p++)
      if (*p < 0x20 || *p > 0x7e || *p == '/')
        fail_msg("byte %d: \"%s\"", c, seen[c].text);
    for (int other = 0; other < c; other++)
      if (strcmp(seen[c].text, seen[other].text) == 0 &&
          !(other == '/' && c == '_'))
        fail_msg("bytes %d and %d: both \"%s\"", other, c, seen[c].text);
  }
}

static void nothing_makes_no_name(void **state) {
  struct name n = {.len = 0};

  (void)state;
  assert_false(name_finish(&n));
  assert_false(make(TEXT(""), &n));
  assert_false(make(TEXT("/"), &n));
}

static void pieces_make_the_same_name_as_the_whole(void **state) {
  static const char whole[] = "/pool-\x01www.service";
  struct name one, pieces;

  (void)state;
  assert_true(make(TEXT(whole), &one));
  for (size_t cut = 0; cut < sizeof(whole); cut++) {
    pieces = (struct name){.len = 0};
    add(&pieces, whole, cut);
    add(&pieces, whole + cut, sizeof(whole) - 1 - cut);
    assert_true(name_finish(&pieces));
    assert_string_equal(pieces.text, one.text);
    assert_true(pieces.hash == one.hash);
  }
}

static void up_to_127_bytes_are_kept_whole(void **state) {
  struct name n;

  (void)state;
  for (size_t len = 1; len < NAME_SIZE; len++) {
    n = make_long(len, 'z');
    assert_int_equal(strlen(n.text), len);
    assert_int_equal(n.text[len - 1], 'z');
    assert_null(strchr(n.text, '~'));
  }
}

static bool is_cut(const struct name *n) {
  size_t digits = strspn(n->text + 111, "0123456789abcdef");

  return n->text[110] == '~' && digits == 16 && strlen(n->text) == 127;
}

static void a_longer_name_is_cut_visibly(void **state) {
  (void)state;
  for (size_t len = NAME_SIZE; len <= 1024; len++) {
    struct name n = make_long(len, 'z');

    if (!is_cut(&n) || n.len != len || strspn(n.text, "a") != 110)
      fail_msg("%zu bytes: \"%s\"", len, n.text);
  }
}

static void the_length_that_counts_is_that_of_the_clean_name(void **state) {
  char text[32];
  struct name n;

  (void)state;
  memset(text, '\n', sizeof(text));
  assert_true(make(text, 31, &n));
  assert_int_equal(strlen(n.text), 124);
  assert_true(make(text, 32, &n));
  assert_true(is_cut(&n));
}

/* Graphs are kept under the cut name for years, so it must not move: FNV-1a,
 * with the vectors of its authors. */
static void the_hash_is_fnv_1a(void **state) {
  struct name n;

  (void)state;
  assert_true(make(TEXT("a"), &n));
  assert_true(n.hash == UINT64_C(0xaf63dc4c8601ec8c));
  assert_true(make(TEXT("foobar"), &n));
  assert_true(n.hash == UINT64_C(0x85944171f73967e8));
}

static void the_cut_name_ends_with_the_hash_of_the_whole(void **state) {
  char hash[18];
  struct name n = make_long(500, 'z');

  (void)state;
  snprintf(hash, sizeof(hash), "~%016jx", (uintmax_t)n.hash);
  assert_string_equal(n.text + 110, hash);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static void long_names_with_the_same_beginning_stay_apart(void **state) {
  enum { NAMES = 10000 };
  struct name *names = calloc(NAMES, sizeof(*names));
  char text[200];

  (void)state;
  assert_non_null(names);
  memset(text, 'a', sizeof(text));
  for (int i = 0; i < NAMES; i++) {
    int len = snprintf(text + 150, sizeof(text) - 150, "%d", i);

    assert_true(make(text, 150 + (size_t)len, &names[i]));
    assert_true(is_cut(&names[i]));
  }
  qsort(names, NAMES, sizeof(*names), compare_names);
  for (int i = 1; i < NAMES; i++)
    assert_string_not_equal(names[i - 1].text, names[i].text);
  free(names);
}

static void names_that_differ_in_length_alone_stay_apart(void **state) {
  (void)state;
  for (size_t len = NAME_SIZE; len < 1024; len++) {
    struct name n = make_long(len, 'a'), longer = make_long(len + 1, 'a');

    assert_string_not_equal(n.text, longer.text);
  }
}

static const struct {
  const char *name;
  const char *text;
  size_t len;
  const char *escaped;
} escapes[] = {
    {"empty", TEXT(""), ""},
    {"plain", TEXT("nginx: worker /x"), "nginx: worker /x"},
    {"quotation mark", TEXT("say \"x\""), "say \\x22x\\x22"},
    {"apostrophe", TEXT("it's"), "it's"},
    {"backslash", TEXT("a\\x41"), "a\\x5cx41"},
    {"newline", TEXT("a\nFAKE LOG LINE"), "a\\x0aFAKE LOG LINE"},
    {"return", TEXT("\r"), "\\x0d"},
    {"ESC", TEXT("\x1b]0;title\a"), "\\x1b]0;title\\x07"},
    {"0xff", TEXT("\xff\xff\xff"), "\\xff\\xff\\xff"},
    {"UTF-8", TEXT("\xe2\x80\xae!"), "\\xe2\\x80\\xae!"},
    {"NUL", TEXT("a\0b"), "a\\x00b"},
    {"printable to the edges", TEXT("\x1f ~\x7f"), "\\x1f ~\\x7f"},
    {"escape at the end", TEXT("abcdefghij\n"), "abcdefghij\\x0a"},
    {"escape in front", TEXT("\nabcdefghij"), "\\x0aabcdefghij"},
    {"dots", TEXT("....."), "....."},
};
#define ESCAPES (sizeof(escapes) / sizeof(escapes[0]))

/* Escapes row i into exactly `size` bytes. Free what it returns. */
static char *escape(size_t i, size_t size) {
  char *text = malloc(escapes[i].len), *ret = malloc(size);

  assert_non_null(text);
  assert_non_null(ret);
  memcpy(text, escapes[i].text, escapes[i].len);
  memset(ret, 'Z', size);
  assert_ptr_equal(name_escape(text, escapes[i].len, ret, size), ret);
  free(text);
  return ret;
}

static void untrusted_bytes_are_escaped(void **state) {
  (void)state;
  for (size_t i = 0; i < ESCAPES; i++) {
    char *ret = escape(i, 256);

    if (strcmp(ret, escapes[i].escaped) != 0)
      fail_msg("%s: \"%s\"", escapes[i].name, ret);
    free(ret);
  }
}

static void escaped_text_that_just_fits_is_not_cut(void **state) {
  (void)state;
  for (size_t i = 0; i < ESCAPES; i++) {
    size_t size = strlen(escapes[i].escaped) + 1;
    char *ret;

    if (size < 8)
      continue;
    ret = escape(i, size);
    if (strcmp(ret, escapes[i].escaped) != 0)
      fail_msg("%s, in %zu bytes: \"%s\"", escapes[i].name, size, ret);
    free(ret);
  }
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

static void escaped_text_is_cut_between_bytes_at_every_size(void **state) {
  char want[256];

  (void)state;
  for (size_t i = 0; i < ESCAPES; i++)
    for (size_t size = 8; size <= strlen(escapes[i].escaped); size++) {
      char *ret = escape(i, size);

      cut_slowly(i, size, want);
      if (strcmp(ret, want) != 0)
        fail_msg("%s, in %zu bytes: \"%s\"", escapes[i].name, size, ret);
      free(ret);
    }
}

static void escaped_bytes_are_all_printable(void **state) {
  (void)state;
  for (int c = 0; c < 256; c++) {
    char text = (char)c, ret[8];

    name_escape(&text, 1, ret, sizeof(ret));
    if (strlen(ret) != (isprint(c) && !strchr("\"\\", c) ? 1 : 4))
      fail_msg("byte %d: \"%s\"", c, ret);
    for (const char *p = ret; *p; p++)
      assert_in_range(*p, 0x20, 0x7e);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_name_is_cleaned_byte_by_byte),
      cmocka_unit_test(every_byte_becomes_printable_ascii),
      cmocka_unit_test(nothing_makes_no_name),
      cmocka_unit_test(pieces_make_the_same_name_as_the_whole),
      cmocka_unit_test(up_to_127_bytes_are_kept_whole),
      cmocka_unit_test(a_longer_name_is_cut_visibly),
      cmocka_unit_test(the_length_that_counts_is_that_of_the_clean_name),
      cmocka_unit_test(the_hash_is_fnv_1a),
      cmocka_unit_test(the_cut_name_ends_with_the_hash_of_the_whole),
      cmocka_unit_test(long_names_with_the_same_beginning_stay_apart),
      cmocka_unit_test(names_that_differ_in_length_alone_stay_apart),
      cmocka_unit_test(untrusted_bytes_are_escaped),
      cmocka_unit_test(escaped_text_that_just_fits_is_not_cut),
      cmocka_unit_test(escaped_text_is_cut_between_bytes_at_every_size),
      cmocka_unit_test(escaped_bytes_are_all_printable),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
