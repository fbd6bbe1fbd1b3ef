#include "test.h"

#include "cgroup/mountinfo.h"

#include "fixture.h"

#include <stdlib.h>
#include <string.h>

static int parse_one(const char *text, size_t len, struct mountinfo *ret) {
  return mountinfo_parse_line((struct span){text, len}, ret);
}

FIXTURE_PARSER(parse_one, struct mountinfo)

static void assert_span(const char *name, const char *what, struct span found,
                        const char *want) {
  if (found.len != strlen(want) || memcmp(found.text, want, found.len) != 0)
    fail_msg("%s: %s is \"%.*s\"", name, what, (int)found.len, found.text);
}

TEST(fields_are_found_around_optional_ones) {
  static const struct {
    const char *name, *text, *root, *mount_point, *type, *super_options;
  } cases[] = {
      {"unified",
       "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 "
       "cgroup2 rw,nsdelegate",
       "/", "/sys/fs/cgroup", "cgroup2", "rw,nsdelegate"},
      {"several optional fields",
       "1 2 0:3 /a/b /c rw shared:1 master:2 "
       "propagate_from:3 - t s o",
       "/a/b", "/c", "t", "o"},
      {"encoded", "1 2 0:3 /a\\040b /c\\134d rw - t s o", "/a\\040b",
       "/c\\134d", "t", "o"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct mountinfo m;

    if (parse(cases[i].text, strlen(cases[i].text), &m) != 0)
      fail_msg("%s: refused", cases[i].name);
    assert_span(cases[i].name, "root", m.root, cases[i].root);
    assert_span(cases[i].name, "mount point", m.mount_point,
                cases[i].mount_point);
    assert_span(cases[i].name, "type", m.type, cases[i].type);
    assert_span(cases[i].name, "options", m.super_options,
                cases[i].super_options);
  }
}

TEST(other_lines_are_refused) {
  static const struct text_case cases[] = {
      {"empty", TEXT("")},
      {"mounts", TEXT("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0")},
      {"no hyphen", TEXT("30 23 0:26 / /c rw shared:4 cgroup2 cgroup2 rw")},
      {"no optional end", TEXT("30 23 0:26 / /c rw -cgroup2 cgroup2 rw")},
      {"no options", TEXT("30 23 0:26 / /c rw - cgroup2 cgroup2")},
      {"two blanks", TEXT("30 23 0:26  /c rw - cgroup2 cgroup2 rw")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}

TEST(a_line_cut_short_is_refused_before_its_last_field) {
  static const char text[] = "30 23 0:26 / /c rw shared:4 - cgroup2 cgroup2 r";

  fixture_refuse_cuts("line", text, sizeof(text) - 2, is_taken);
}

static bool decode(const char *text, size_t len, char *ret, size_t size) {
  char *copy = fixture_copy(text, len);
  bool is_decoded = mountinfo_decode((struct span){copy, len}, ret, size);

  free(copy);
  return is_decoded;
}

TEST(paths_are_decoded) {
  static const struct {
    const char *text, *path;
  } cases[] = {
      {"/", "/"},
      {"", ""},
      {"/a\\040b", "/a b"},
      {"/a\\011\\012\\134", "/a\t\n\\"},
      {"\\303\\244", "\303\244"},
      {"/a\\04", "/a\\04"},
      {"/a\\", "/a\\"},
      {"/a\\089", "/a\\089"},
      {"/a\\x20", "/a\\x20"},
  };
  char path[16];

  for (size_t i = 0; i < LENGTH(cases); i++) {
    assert_true(decode(cases[i].text, strlen(cases[i].text), path, 16));
    assert_string_equal(path, cases[i].path);
  }
}

TEST(a_path_has_to_fit) {
  char *room = malloc(4);

  assert_true(decode(TEXT("abc"), room, 4));
  assert_true(decode(TEXT("a\\040c"), room, 4));
  assert_string_equal(room, "a c");
  assert_false(decode(TEXT("abcd"), room, 4));
  assert_false(decode(TEXT("abc\\040"), room, 4));
  assert_false(decode(TEXT("\\000"), room, 4));
  assert_false(decode(TEXT("\0"), room, 4));
  free(room);
}
