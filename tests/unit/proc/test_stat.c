#include "test.h"

#include "proc/stat.h"

#include "fixture.h"

#include <stdio.h>
#include <string.h>

/* All that the kernel prints behind the name of an idle process. */
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
  assert_int_equal(s.pid, 3870);
  assert_int_equal(s.ppid, 3869);
  assert_int_equal(s.comm.len, 4);
  assert_memory_equal(s.comm.text, "demo", 4);
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

/* A zombie is dead though threads live; addresses may be hidden. */
TEST(captures_are_told_apart) {
  static const struct {
    const char *file;
    bool is_kernel_thread, is_dead, has_addresses;
    uint32_t threads;
  } cases[] = {
      {"stat-4.9", false, false, true, 1},
      {"stat-6.18-kthread", true, false, false, 1},
      {"stat-6.18-zombie", false, true, false, 1},
      {"stat-6.18-zombie-leader", false, true, false, 2},
      {"stat-6.18-denied", false, false, false, 1},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct stat_sample s;

    if (parse_file(cases[i].file, &s) != 0 ||
        stat_is_kernel_thread(&s) != cases[i].is_kernel_thread ||
        stat_is_dead(&s) != cases[i].is_dead ||
        stat_has_addresses(&s) != cases[i].has_addresses ||
        s.threads != cases[i].threads)
      fail_msg("%s comes out otherwise", cases[i].file);
  }
}

TEST(a_name_may_be_any_bytes) {
  static const struct {
    const char *name, *comm;
    size_t len;
  } cases[] = {
      {"empty", TEXT("")},
      {"looks like the fields", TEXT("a) R 1 1 (b")},
      {"fifteen brackets", TEXT(")))))))))))))))")},
      {"begins as a name does", TEXT(" (x")},
      {"kworker, longer than 15", TEXT("kworker/R-kvfree_rcu_reclaim")},
      {"NUL, from no kernel", TEXT("a\0b")},
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
    if (s.comm.len != cases[i].len ||
        memcmp(s.comm.text, cases[i].comm, cases[i].len) != 0 ||
        s.pid != 3519 || s.state != 'S' || s.ppid != 3510 ||
        s.starttime_ticks != 83042)
      fail_msg("%s: wrong value", cases[i].name);
  }
}

/* 53 of them, from a kernel to come; then as many as an older one prints. */
TEST(fields_behind_the_start_time_may_be_missing) {
  static const char whole[] =
      "7 (x) S 1 7 7 0 -1 4194304 5 0 0 0 0 0 -1 -1 20 -5 3 0 99 1 2 3 4096 5 "
      "6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 "
      "-31\n";
  unsigned n = 1;

  for (size_t len = 1; len < sizeof(whole); len++) {
    char text[sizeof(whole)];
    struct stat_sample s;

    if (whole[len] != ' ' && whole[len] != '\n')
      continue;
    memcpy(text, whole, len);
    text[len] = '\n';
    if ((parse(text, len + 1, &s) == 0) != (++n - 1 >= 22))
      fail_msg("%u fields: wrong answer", n - 1);
    if (n - 1 >= 22 && (s.threads != 3 || s.starttime_ticks != 99 ||
                        s.start_code != (n - 1 >= 26 ? 4096 : 0) ||
                        s.start_stack != (n - 1 >= 28 ? 6 : 0) ||
                        s.arg_start != (n - 1 >= 48 ? 26 : 0)))
      fail_msg("%u fields: wrong value", n - 1);
  }
}

/* The fields from the pid on, of which one is another, or several. */
static bool is_taken_with(unsigned first, const char *other) {
  static const char *const fields[] = {
      "7", "(x)", "S", "1",  "7", "7", "0", "-1",  "4194304",
      "5", "0",   "0", "0",  "0", "0", "0", "0",   "20",
      "0", "3",   "0", "99", "1", "2", "3", "4096"};
  char text[256] = "";

  for (unsigned i = 0; i < LENGTH(fields); i++)
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%c",
             i + 1 == first ? other : fields[i],
             i + 1 < LENGTH(fields) ? ' ' : '\n');
  return is_taken(text, strlen(text));
}

TEST(a_malformed_field_is_rejected) {
  static const struct {
    const char *name;
    unsigned field;
    const char *text;
  } cases[] = {
      {"pid is no number", 1, "x"},
      {"pid is negative", 1, "-7"},
      {"pid overflows", 1, "4294967296"},
      {"name not opened", 2, "x)"},
      {"name not closed", 2, "(x"},
      {"state is no letter", 3, "1"},
      {"state is two letters", 3, "SS"},
      {"ppid is negative", 4, "-1"},
      {"ppid overflows", 4, "4294967296"},
      {"letter in a field we skip", 5, "7x"},
      {"two blanks", 5, "7 "},
      {"tab", 4, "1\t7"},
      {"flags overflow", 9, "18446744073709551616"},
      {"flags are negative", 9, "-4194304"},
      {"minflt overflows", 10, "18446744073709551616"},
      {"newline between the fields", 14, "0\n0"},
      {"threads are negative", 20, "-3"},
      {"start time overflows", 22, "18446744073709551616"},
      {"start time is negative", 22, "-99"},
      {"letter behind the start time", 23, "x"},
      {"startcode is no number", 26, "x"},
      {"letter at the end", 26, "4096 5 x"},
  };

  assert_true(is_taken_with(1, "7"));
  for (size_t i = 0; i < LENGTH(cases); i++)
    if (is_taken_with(cases[i].field, cases[i].text))
      fail_msg("%s: taken", cases[i].name);
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

TEST(a_text_cut_short_anywhere_is_rejected) {
  static const char *const names[] = {
      "stat-6.18",        "stat-6.18-kthread",       "stat-6.18-denied",
      "stat-6.18-zombie", "stat-6.18-zombie-leader", "stat-4.9"};

  for (size_t i = 0; i < LENGTH(names); i++) {
    struct span text = fixture_load(names[i]);

    fixture_refuse_cuts(names[i], text.text, text.len, is_taken);
  }
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
