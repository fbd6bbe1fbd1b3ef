#include "test.h"

#include <smaps/group_name.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A copy that ends where the text does, so that ASan sees a step too far. */
static void add(struct group_name *n, const char *text, size_t len) {
  char *copy = malloc(len);

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
    const char *name, *text;
    size_t len;
    const char *want;
  } cases[] = {
      {"path", TEXT("/usr/sbin/nginx"), "usr_sbin_nginx"},
      {"one slash in front is dropped", TEXT("//a"), "_a"},
      {"two slashes alone", TEXT("//"), "_"},
      {"dots climb nowhere", TEXT("../../etc"), ".._.._etc"},
      {"newline", TEXT("a\nb"), "a\\x0ab"},
      {"ESC", TEXT("\x1b[2J"), "\\x1b[2J"},
      {"NUL", TEXT("a\0b"), "a\\x00b"},
      {"first printable one", TEXT("\x1f\x20"), "\\x1f "},
      {"last printable one", TEXT("\x7e\x7f"), "~\\x7f"},
  };
  struct group_name n;

  for (size_t i = 0; i < LENGTH(cases); i++)
    if (!make(cases[i].text, cases[i].len, &n) ||
        strcmp(n.text, cases[i].want) != 0 || n.len != strlen(cases[i].want))
      fail_msg("%s: \"%s\"", cases[i].name, n.text);
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

static bool is_cut(const struct group_name *n) {
  size_t digits = strspn(n->text + 111, "0123456789abcdef");

  return n->text[110] == '~' && digits == 16 && strlen(n->text) == 127;
}

TEST(a_name_of_more_than_127_bytes_is_cut_visibly) {
  char hash[18];

  for (size_t len = 1; len <= 1024; len++) {
    struct group_name n = make_long(len, 'z');

    if (len < GROUP_NAME_SIZE) {
      assert_int_equal(strlen(n.text), len);
      assert_int_equal(n.text[len - 1], 'z');
      continue;
    }
    if (!is_cut(&n) || n.len != len || strspn(n.text, "a") != 110)
      fail_msg("%zu bytes: \"%s\"", len, n.text);
    snprintf(hash, sizeof(hash), "~%016jx", (uintmax_t)n.hash);
    assert_string_equal(n.text + 110, hash);
  }
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
