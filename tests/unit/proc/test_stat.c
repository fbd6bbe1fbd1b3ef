/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "proc/stat.h"

#include "fixture.h"

#include <stdio.h>
#include <string.h>

/* All that the kernel prints after the name of an idle process. */
#define REST                                                                   \
  " S 3510 3510 2607 0 -1 4194304 103 0 0 0 0 0 0 0 20 0 1 0 83042 3133440 "   \
  "375 18446744073709551615 94557973966848 94557973986729 140720832734336 0 "  \
  "0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 94557974002736 94557974004352 "              \
  "94558056443904 140720832739782 140720832739802 140720832739802 "            \
  "140720832741355 0\n"

FIXTURE_PARSER(stat_parse, struct stat_sample)

TEST(a_capture_is_read_field_by_field) {
  struct stat_sample s;

  assert_int_equal(parse_file("stat-6.18", &s), 0);
  assert_int_equal(s.ppid, 3869);
  assert_string_equal(s.comm, "demo");
  assert_int_equal(s.state, 'S');
  assert_int_equal(s.flags, 4194304);
  assert_int_equal(s.minor_faults, 4476);
  assert_int_equal(s.threads, 1);
  assert_int_equal(s.starttime_ticks, 127938);
  assert_int_equal(s.start_code, 94469988200448);
  assert_int_equal(s.start_stack, 140729109094576);
  assert_int_equal(s.arg_start, 140729109101018);
  assert_false(stat_is_kernel_thread(&s));
  assert_false(stat_is_dead(&s));
  assert_true(stat_has_addresses(&s));
}

TEST(a_name_may_be_any_bytes) {
  static const struct {
    const char *name, *comm;
    size_t len;
    const char *wanted;
  } cases[] = {
      {"empty", TEXT(""), ""},
      {"looks like the fields", TEXT("a) R 1 1 (b"), "a) R 1 1 (b"},
      {"fifteen brackets", TEXT(")))))))))))))))"), ")))))))))))))))"},
      {"begins as a name does", TEXT(" (x"), " (x"},
      {"kworker, longer than 15", TEXT("kworker/R-kvfree_rcu_reclaim"),
       "kworker/R-kvfre"},
      {"NUL, from no kernel", TEXT("a\0b"), "a"},
  };
  struct stat_sample s;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    char text[512] = "3519 (";
    size_t len = strlen(text) + cases[i].len;

    memcpy(text + strlen(text), cases[i].comm, cases[i].len);
    memcpy(text + len, ")" REST, sizeof(REST));
    len += sizeof(REST);
    if (parse(text, len, &s) != 0)
      fail_msg("%s: rejected", cases[i].name);
    if (strcmp(s.comm, cases[i].wanted) != 0 || s.state != 'S' ||
        s.ppid != 3510 || s.starttime_ticks != 83042)
      fail_msg("%s: wrong value", cases[i].name);
  }
}

TEST(malformed_text_is_rejected) {
#define FIELDS " S 1 7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 99"
  static const struct text_case cases[] = {
      {"empty", TEXT("")},
      {"newline alone", TEXT("\n")},
      {"no newline", TEXT("7 (x)" FIELDS)},
      {"CRLF", TEXT("7 (x)" FIELDS "\r\n")},
      {"two newlines", TEXT("7 (x)" FIELDS "\n\n")},
      {"NUL at the end", TEXT("7 (x)" FIELDS "\0")},
      {"blank at the end", TEXT("7 (x)" FIELDS " \n")},
      {"minus at the end", TEXT("7 (x)" FIELDS " -\n")},
      {"no pid", TEXT("(x)" FIELDS "\n")},
      {"no name", TEXT("7" FIELDS "\n")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}

TEST(a_state_is_any_letter_and_z_x_and_small_x_are_dead) {
  for (int c = 1; c < 256; c++) {
    bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    char text[] = "7 (x)" FIELDS "\n";
    struct stat_sample s;

    text[6] = (char)c;
    if ((parse(text, sizeof(text) - 1, &s) == 0) != is_letter)
      fail_msg("%#x: wrong answer", (unsigned)c);
    if (!is_letter)
      continue;
    assert_int_equal(s.state, c);
    assert_int_equal(stat_is_dead(&s), strchr("ZXx", c) != NULL);
  }
}
