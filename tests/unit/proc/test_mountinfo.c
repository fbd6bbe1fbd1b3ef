/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "proc/mountinfo.h"

static bool next(const char *text, struct mount *ret) {
  struct cursor s = cursor_begin(text, strlen(text));
  bool is_mount = mountinfo_next(&s, ret);

  assert_true(cursor_is_done(&s) || s.at[-1] == '\n');
  return is_mount;
}

TEST(mounts_have_a_device_and_a_type) {
  static const struct {
    const char *text;
    uint32_t major, minor;
    const char *type;
  } cases[] = {
      {"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n", 98,
       0, "ext3"},
      {"71 29 0:42 / /mnt/huge rw,relatime - hugetlbfs none rw,pagesize=2M\n",
       0, 42, "hugetlbfs"},
      {"71 29 0:42 / /mnt/a\\040-\\040b rw shared:1 master:2 - tmpfs - rw\n", 0,
       42, "tmpfs"},
      {"1 0 259:1048575 / / rw - fuse.sshfs a rw\n", 259, 1048575,
       "fuse.sshfs"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct mount m;

    assert_true(next(cases[i].text, &m));
    assert_int_equal(m.major, cases[i].major);
    assert_int_equal(m.minor, cases[i].minor);
    assert_true(span_is(m.type, cases[i].type));
  }
}

TEST(malformed_lines_are_refused) {
  static const char *const texts[] = {
      "",
      "\n",
      "nonsense\n",
      "36 35 98:0 /mnt1 /mnt2 rw,noatime\n",
      "36 35 98:0 /mnt1 /mnt2 rw,noatime -\n",
      "36 35 98 /mnt1 /mnt2 rw - ext3 /dev/root rw\n",
      "36 35 98:x /mnt1 /mnt2 rw - ext3 /dev/root rw\n",
      "36 35 4294967296:0 /mnt1 /mnt2 rw - ext3 /dev/root rw\n",
      "36 x 98:0 /mnt1 /mnt2 rw - ext3 /dev/root rw\n",
  };

  for (size_t i = 0; i < LENGTH(texts); i++) {
    struct mount m = {.major = 7};
    struct cursor s = cursor_begin(texts[i], strlen(texts[i]));

    assert_false(mountinfo_next(&s, &m));
    assert_int_equal(m.major, 7);
    assert_true(cursor_is_done(&s));
  }
}

/* A line that is none is passed over. */
TEST(lines_are_taken_one_by_one) {
  const char *text = "1 0 8:1 / / rw - ext4 a rw\nnonsense\n"
                     "2 1 0:5 / /x rw - hugetlbfs b rw\n";
  struct cursor s = cursor_begin(text, strlen(text));
  struct mount m;

  assert_true(mountinfo_next(&s, &m));
  assert_false(mountinfo_next(&s, &m));
  assert_true(mountinfo_next(&s, &m));
  assert_int_equal(m.minor, 5);
  assert_true(cursor_is_done(&s));
}
