/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "proc/statm.h"

#include "fixture.h"

FIXTURE_PARSER(statm_parse, struct statm_sample)

TEST(all_zero_is_a_process_without_mm) {
  struct statm_sample s;

  assert_int_equal(parse(TEXT("0 0 0 0 0 0 0\n"), &s), 0);
  assert_int_equal(s.resident_pages, 0);
  assert_false(statm_has_mm(&s));
}

TEST(malformed_text_is_rejected) {
  static const struct text_case cases[] = {
      {"empty", TEXT("")},
      {"no newline", TEXT("765 418 390 5 0 123 0")},
      {"CRLF", TEXT("765 418 390 5 0 123 0\r\n")},
      {"six numbers", TEXT("765 418 390 5 0 123\n")},
      {"eight numbers", TEXT("765 418 390 5 0 123 0 0\n")},
      {"two lines", TEXT("765 418 390 5 0 123 0\n\n")},
      {"tab", TEXT("765\t418 390 5 0 123 0\n")},
      {"letter", TEXT("765 418 390 5 0 l23 0\n")},
      {"size overflows", TEXT("18446744073709551616 418 390 5 0 123 0\n")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}

TEST(counters_that_no_process_can_have_are_set_right) {
  static const struct {
    const char *text;
    size_t len;
    uint64_t resident, shared;
  } rows[] = {
      {TEXT("765 418 419 5 0 123 0\n"), 418, 418},
      {TEXT("765 418 18446744073709551615 5 0 123 0\n"), 418, 0},
      {TEXT("765 18446744073709551615 3 5 0 123 0\n"), 0, 0},
  };

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct statm_sample s;

    assert_int_equal(parse(rows[i].text, rows[i].len, &s), 0);
    assert_int_equal(s.size_pages, 765);
    assert_int_equal(s.resident_pages, rows[i].resident);
    assert_int_equal(s.shared_pages, rows[i].shared);
  }
}
