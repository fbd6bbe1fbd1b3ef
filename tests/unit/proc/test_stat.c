#include "test.h"

#include "proc/stat.h"

#include "fixture.h"

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

TEST(an_old_capture_is_read_alike) {
  struct stat_sample s;

  assert_int_equal(parse_file("stat-4.9", &s), 0);
  assert_int_equal(s.pid, 1);
  assert_int_equal(s.ppid, 0);
  assert_int_equal(s.minor_faults, 2837);
  assert_int_equal(s.starttime_ticks, 5);
  assert_int_equal(s.start_code, 94086444371968);
  assert_int_equal(s.start_stack, 140721902830496);
  assert_int_equal(s.arg_start, 140721902833623);
}

TEST(a_kernel_thread_is_told_by_its_flag) {
  struct stat_sample s;

  assert_int_equal(parse_file("stat-6.18-kthread", &s), 0);
  assert_true(stat_is_kernel_thread(&s));
  assert_false(stat_is_dead(&s));
  assert_false(stat_has_addresses(&s));
}

TEST(a_zombie_is_dead_though_threads_live) {
  struct stat_sample s;

  assert_int_equal(parse_file("stat-6.18-zombie", &s), 0);
  assert_true(stat_is_dead(&s));
  assert_int_equal(s.threads, 1);
  assert_false(stat_has_addresses(&s));

  assert_int_equal(parse_file("stat-6.18-zombie-leader", &s), 0);
  assert_true(stat_is_dead(&s));
  assert_int_equal(s.threads, 2);
  assert_false(stat_is_kernel_thread(&s));
}

TEST(hidden_addresses_are_zero) {
  struct stat_sample s;

  assert_int_equal(parse_file("stat-6.18-denied", &s), 0);
  assert_int_equal(s.start_code, 1);
  assert_int_equal(s.start_stack, 0);
  assert_int_equal(s.arg_start, 0);
  assert_false(stat_has_addresses(&s));
  assert_int_equal(s.starttime_ticks, 171237);
}

TEST(states_z_x_and_small_x_are_dead) {
  static const char dead[] = "ZXx";

  for (int c = 'A'; c <= 'z'; c++) {
    struct stat_sample s = {.state = (char)c};

    if (stat_is_dead(&s) != (strchr(dead, c) != NULL))
      fail_msg("%c: wrong answer", c);
  }
}

TEST(a_name_may_be_any_bytes) {
  static const struct {
    const char *name;
    const char *comm;
    size_t len;
  } cases[] = {
      {"empty", TEXT("")},
      {"blank", TEXT(" ")},
      {"looks like the fields", TEXT("a) R 1 1 (b")},
      {"looks like a line", TEXT("a) S 1 1 1 1\n")},
      {"one bracket", TEXT(")")},
      {"fifteen brackets", TEXT(")))))))))))))))")},
      {"opening brackets", TEXT("((((")},
      {"begins as a name does", TEXT(" (x")},
      {"newline", TEXT("a\nb")},
      {"bytes with the high bit", TEXT("\xff\xfe\x80\xff")},
      {"control bytes", TEXT("\x01\x1b[31m\x7f\r")},
      {"kworker, longer than 15", TEXT("kworker/R-kvfree_rcu_reclaim")},
      {"NUL, from no kernel", TEXT("a\0b")},
  };
  struct stat_sample s;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    char text[512];
    size_t len = 0;

    memcpy(text, "3519 (", 6);
    len += 6;
    memcpy(text + len, cases[i].comm, cases[i].len);
    len += cases[i].len;
    text[len++] = ')';
    memcpy(text + len, REST, sizeof(REST) - 1);
    len += sizeof(REST) - 1;
    if (parse(text, len, &s) != 0)
      fail_msg("%s: rejected", cases[i].name);
    if (s.comm.len != cases[i].len ||
        memcmp(s.comm.text, cases[i].comm, cases[i].len) != 0 ||
        s.pid != 3519 || s.state != 'S' || s.ppid != 3510 ||
        s.starttime_ticks != 83042)
      fail_msg("%s: wrong value", cases[i].name);
  }
}

TEST(fields_behind_the_start_time_may_be_missing) {
  static const struct {
    const char *name;
    const char *text;
    size_t len;
    uint64_t start_code, start_stack, arg_start;
  } cases[] = {
#define UP_TO_22 "7 (x) S 1 7 7 0 -1 4194304 5 0 0 0 0 0 -1 -1 20 -5 3 0 99"
      {"22 fields", TEXT(UP_TO_22 "\n"), 0, 0, 0},
      {"25 fields", TEXT(UP_TO_22 " 1 2 3\n"), 0, 0, 0},
      {"26 fields", TEXT(UP_TO_22 " 1 2 3 4096\n"), 4096, 0, 0},
      {"27 fields", TEXT(UP_TO_22 " 1 2 3 4096 5\n"), 4096, 0, 0},
      {"28 fields", TEXT(UP_TO_22 " 1 2 3 4096 5 6\n"), 4096, 6, 0},
      {"47 fields",
       TEXT(UP_TO_22 " 1 2 3 4096 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "
                     "19 20 21 22 23 24 25\n"),
       4096, 6, 0},
      {"48 fields",
       TEXT(UP_TO_22 " 1 2 3 4096 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "
                     "19 20 21 22 23 24 25 26\n"),
       4096, 6, 26},
      {"53 fields, from a kernel to come",
       TEXT(UP_TO_22 " 1 2 3 4096 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "
                     "19 20 21 22 23 24 25 26 27 28 29 30 -31\n"),
       4096, 6, 26},
  };
  struct stat_sample s;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    if (parse(cases[i].text, cases[i].len, &s) != 0)
      fail_msg("%s: rejected", cases[i].name);
    if (s.threads != 3 || s.starttime_ticks != 99 ||
        s.start_code != cases[i].start_code ||
        s.start_stack != cases[i].start_stack ||
        s.arg_start != cases[i].arg_start)
      fail_msg("%s: wrong value", cases[i].name);
  }
}

TEST(malformed_text_is_rejected) {
#define FIELDS " S 1 7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 99"
#define BIG "18446744073709551616"
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
      {"pid is no number", TEXT("x (x)" FIELDS "\n")},
      {"pid is negative", TEXT("-7 (x)" FIELDS "\n")},
      {"pid overflows", TEXT("4294967296 (x)" FIELDS "\n")},
      {"no name", TEXT("7" FIELDS "\n")},
      {"name not opened", TEXT("7 x)" FIELDS "\n")},
      {"name not closed", TEXT("7 (x" FIELDS "\n")},
      {"nothing behind the name", TEXT("7 (x)\n")},
      {"state is no letter",
       TEXT("7 (x) 1 1 7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 99\n")},
      {"state is two letters",
       TEXT("7 (x) SS 1 7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 99\n")},
      {"state is missing",
       TEXT("7 (x) 1 7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 99\n")},
      {"ppid is negative",
       TEXT("7 (x) S -1 7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 99\n")},
      {"ppid overflows",
       TEXT("7 (x) S 4294967296 7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 "
            "99\n")},
      {"flags overflow",
       TEXT("7 (x) S 1 7 7 0 -1 " BIG " 5 0 0 0 0 0 0 0 20 0 3 0 99\n")},
      {"flags are negative",
       TEXT("7 (x) S 1 7 7 0 -1 -4194304 5 0 0 0 0 0 0 0 20 0 3 0 99\n")},
      {"minflt overflows",
       TEXT("7 (x) S 1 7 7 0 -1 4194304 " BIG " 0 0 0 0 0 0 0 20 0 3 0 99\n")},
      {"threads are negative",
       TEXT("7 (x) S 1 7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 -3 0 99\n")},
      {"start time overflows",
       TEXT("7 (x) S 1 7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 " BIG "\n")},
      {"start time is missing",
       TEXT("7 (x) S 1 7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0\n")},
      {"start time is negative",
       TEXT("7 (x) S 1 7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 -99\n")},
      {"letter in a field we skip",
       TEXT("7 (x) S 1 7x 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 99\n")},
      {"two blanks",
       TEXT("7 (x) S 1 7  7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 99\n")},
      {"tab", TEXT("7 (x) S 1\t7 7 0 -1 4194304 5 0 0 0 0 0 0 0 20 0 3 0 99"
                   "\n")},
      {"newline between the fields",
       TEXT("7 (x) S 1 7 7 0 -1 4194304 5 0 0 0 0\n0 0 0 20 0 3 0 99\n")},
      {"startcode is negative", TEXT("7 (x)" FIELDS " 1 2 3 -4096\n")},
      {"startcode is no number", TEXT("7 (x)" FIELDS " 1 2 3 x\n")},
      {"startcode overflows", TEXT("7 (x)" FIELDS " 1 2 3 " BIG "\n")},
      {"letter behind the start time", TEXT("7 (x)" FIELDS " 1 x\n")},
      {"letter at the end",
       TEXT("7 (x)" FIELDS " 1 2 3 4096 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "
            "19 20 21 22 23 24 25 26 27 x\n")},
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

TEST(a_state_is_any_letter_and_nothing_else) {
  for (int c = 1; c < 256; c++) {
    bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    char text[] = "7 (x)" FIELDS "\n";
    struct stat_sample s;

    text[6] = (char)c;
    if ((parse(text, sizeof(text) - 1, &s) == 0) != is_letter)
      fail_msg("%#x: wrong answer", (unsigned)c);
    if (is_letter)
      assert_int_equal(s.state, c);
  }
}
