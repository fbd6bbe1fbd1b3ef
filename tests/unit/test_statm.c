#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/statm.h>

#include "fixture.h"

static int parse(const char *text, size_t len, struct statm_sample *ret) {
  char *copy = fixture_begin(text, len, ret, sizeof(*ret));

  return fixture_end(statm_parse(copy, len, ret), ret, sizeof(*ret));
}

static bool is_taken(const char *text, size_t len) {
  struct statm_sample ignored;

  return parse(text, len, &ignored) == 0;
}

static int parse_file(const char *name, struct statm_sample *ret) {
  struct span text = fixture_load(name);

  return parse(text.text, text.len, ret);
}

static void a_capture_is_read_field_by_field(void **state) {
  struct statm_sample s;

  (void)state;
  assert_int_equal(parse_file("statm-6.18", &s), 0);
  assert_int_equal(s.size_pages, 4459);
  assert_int_equal(s.resident_pages, 4166);
  assert_int_equal(s.shared_pages, 1324);
  assert_int_equal(s.text_pages, 1);
  assert_int_equal(s.data_pages, 2905);
  assert_true(statm_has_mm(&s));

  assert_int_equal(parse_file("statm-4.9", &s), 0);
  assert_int_equal(s.resident_pages, 1607);
  assert_int_equal(s.data_pages, 4403);
}

static void all_zero_is_a_process_without_mm(void **state) {
  struct statm_sample s;

  (void)state;
  assert_int_equal(parse(TEXT("0 0 0 0 0 0 0\n"), &s), 0);
  assert_int_equal(s.resident_pages, 0);
  assert_false(statm_has_mm(&s));
}

static void a_process_with_nothing_resident_has_an_mm(void **state) {
  struct statm_sample s;

  (void)state;
  assert_int_equal(parse(TEXT("4459 0 0 1 0 2905 0\n"), &s), 0);
  assert_true(statm_has_mm(&s));
}

static void the_largest_numbers_are_read(void **state) {
  struct statm_sample s;

  (void)state;
  assert_int_equal(parse(TEXT("18446744073709551615 18446744073709551615 "
                              "18446744073709551615 1 0 2 0\n"),
                         &s),
                   0);
  assert_true(s.shared_pages == UINT64_MAX);
}

static void malformed_text_is_rejected(void **state) {
  static const struct text_case cases[] = {
      {"empty", TEXT("")},
      {"newline alone", TEXT("\n")},
      {"no newline", TEXT("765 418 390 5 0 123 0")},
      {"CRLF", TEXT("765 418 390 5 0 123 0\r\n")},
      {"six numbers", TEXT("765 418 390 5 0 123\n")},
      {"eight numbers", TEXT("765 418 390 5 0 123 0 0\n")},
      {"two lines", TEXT("765 418 390 5 0 123 0\n\n")},
      {"blank first", TEXT(" 765 418 390 5 0 123 0\n")},
      {"blank at the end", TEXT("765 418 390 5 0 123 0 \n")},
      {"two blanks", TEXT("765  418 390 5 0 123 0\n")},
      {"tab", TEXT("765\t418 390 5 0 123 0\n")},
      {"NUL", TEXT("765 418\0390 5 0 123 0\n")},
      {"NUL at the end", TEXT("765 418 390 5 0 123 0\n\0")},
      {"minus", TEXT("765 -418 390 5 0 123 0\n")},
      {"letter", TEXT("765 418 390 5 0 l23 0\n")},
      {"size overflows", TEXT("18446744073709551616 418 390 5 0 123 0\n")},
      {"dirty overflows", TEXT("765 418 390 5 0 123 18446744073709551616\n")},
      {"shared above resident", TEXT("765 418 419 5 0 123 0\n")},
  };

  (void)state;
  fixture_refuse(cases, sizeof(cases) / sizeof(cases[0]), is_taken);
}

static void a_text_cut_short_anywhere_is_rejected(void **state) {
  static const char text[] = "765 418 390 5 0 123 0\n";

  (void)state;
  fixture_refuse_cuts("a line", TEXT(text), is_taken);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_capture_is_read_field_by_field),
      cmocka_unit_test(all_zero_is_a_process_without_mm),
      cmocka_unit_test(a_process_with_nothing_resident_has_an_mm),
      cmocka_unit_test(the_largest_numbers_are_read),
      cmocka_unit_test(malformed_text_is_rejected),
      cmocka_unit_test(a_text_cut_short_anywhere_is_rejected),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
