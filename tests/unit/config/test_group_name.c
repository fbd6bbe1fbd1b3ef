#include "test.h"

#include <smaps/group_name.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A copy that ends where the text does, so that ASan sees a step too far. */
static void add(struct group_name *n, const char *text, size_t len) {
  char *copy = malloc(len);

  assert_non_null(copy);
  memcpy(copy, text, len);
  group_name_add(n, copy, len);
  free(copy);
}

static bool make(const char *text, size_t len, struct group_name *ret) {
  *ret = (struct group_name){.len = 0};
  add(ret, text, len);
  return group_name_finish(ret);
}

/* The name of `len` letters, the last of which is `last`. */
static struct group_name make_long(size_t len, char last) {
  struct group_name n = {.len = 0};
  char text[1024];

  assert_in_range(len, 1, sizeof(text));
  memset(text, 'a', len);
  text[len - 1] = last;
  add(&n, text, len);
  assert_true(group_name_finish(&n));
  return n;
}

TEST(a_name_is_cleaned_byte_by_byte) {
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
  struct group_name n;

  for (size_t i = 0; i < LENGTH(cases); i++)
    if (!make(cases[i].text, cases[i].len, &n) ||
        strcmp(n.text, cases[i].want) != 0 || n.len != strlen(cases[i].want))
      fail_msg("%s: \"%s\"", cases[i].name, n.text);
}

TEST(every_byte_becomes_printable_ascii) {
  struct group_name seen[256];

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

TEST(nothing_makes_no_name) {
  struct group_name n = {.len = 0};

  assert_false(group_name_finish(&n));
  assert_false(make(TEXT(""), &n));
  assert_false(make(TEXT("/"), &n));
}

TEST(the_name_of_the_host_is_none) {
  static const struct {
    const char *text;
    bool is_one;
  } cases[] = {{"host", false},  {"/host", false}, {"Host", true},
               {"hosts", true},  {"hos", true},    {"host.service", true},
               {"//host", true}, {"host/", true}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct group_name n;

    if (make(cases[i].text, strlen(cases[i].text), &n) != cases[i].is_one)
      fail_msg("\"%s\"", cases[i].text);
  }
}

TEST(pieces_make_the_same_name_as_the_whole) {
  static const char whole[] = "/pool-\x01www.service";
  struct group_name one, pieces;

  assert_true(make(TEXT(whole), &one));
  for (size_t cut = 0; cut < sizeof(whole); cut++) {
    pieces = (struct group_name){.len = 0};
    add(&pieces, whole, cut);
    add(&pieces, whole + cut, sizeof(whole) - 1 - cut);
    assert_true(group_name_finish(&pieces));
    assert_string_equal(pieces.text, one.text);
    assert_true(pieces.hash == one.hash);
  }
}

TEST(up_to_127_bytes_are_kept_whole) {
  struct group_name n;

  for (size_t len = 1; len < GROUP_NAME_SIZE; len++) {
    n = make_long(len, 'z');
    assert_int_equal(strlen(n.text), len);
    assert_int_equal(n.text[len - 1], 'z');
    assert_null(strchr(n.text, '~'));
  }
}

static bool is_cut(const struct group_name *n) {
  size_t digits = strspn(n->text + 111, "0123456789abcdef");

  return n->text[110] == '~' && digits == 16 && strlen(n->text) == 127;
}

TEST(a_longer_name_is_cut_visibly) {
  for (size_t len = GROUP_NAME_SIZE; len <= 1024; len++) {
    struct group_name n = make_long(len, 'z');

    if (!is_cut(&n) || n.len != len || strspn(n.text, "a") != 110)
      fail_msg("%zu bytes: \"%s\"", len, n.text);
  }
}

TEST(the_length_that_counts_is_that_of_the_clean_name) {
  char text[32];
  struct group_name n;

  memset(text, '\n', sizeof(text));
  assert_true(make(text, 31, &n));
  assert_int_equal(strlen(n.text), 124);
  assert_true(make(text, 32, &n));
  assert_true(is_cut(&n));
}

/* Graphs are kept under the cut name for years, so it must not move: FNV-1a,
 * with the vectors of its authors. */
TEST(the_hash_is_fnv_1a) {
  struct group_name n;

  assert_true(make(TEXT("a"), &n));
  assert_true(n.hash == UINT64_C(0xaf63dc4c8601ec8c));
  assert_true(make(TEXT("foobar"), &n));
  assert_true(n.hash == UINT64_C(0x85944171f73967e8));
}

TEST(the_cut_name_ends_with_the_hash_of_the_whole) {
  char hash[18];
  struct group_name n = make_long(500, 'z');

  snprintf(hash, sizeof(hash), "~%016jx", (uintmax_t)n.hash);
  assert_string_equal(n.text + 110, hash);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(((const struct group_name *)a)->text,
                ((const struct group_name *)b)->text);
}

TEST(long_names_with_the_same_beginning_stay_apart) {
  enum { NAMES = 10000 };
  struct group_name *names = calloc(NAMES, sizeof(*names));
  char text[200];

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

TEST(names_that_differ_in_length_alone_stay_apart) {
  for (size_t len = GROUP_NAME_SIZE; len < 1024; len++) {
    struct group_name n = make_long(len, 'a'), longer = make_long(len + 1, 'a');

    assert_string_not_equal(n.text, longer.text);
  }
}
