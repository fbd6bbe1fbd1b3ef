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
      {"shared above resident", TEXT("765 418 419 5 0 123 0\n")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}
