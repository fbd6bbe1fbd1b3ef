#include "test.h"

#include "proc/host_files.h"

#include "fixture.h"

FIXTURE_PARSER(uptime_parse, uint64_t)

TEST(the_first_number_is_the_time_since_boot) {
  static const struct {
    const char *text;
    size_t len;
    uint64_t cs;
  } cases[] = {{TEXT("350735.47 234388.90\n"), 35073547},
               {TEXT("0.00 0.00\n"), 0},
               {TEXT("7.05 12345678901.99\n"), 705},
               {TEXT("10000000000.99 1.00\n"), UINT64_C(1000000000099)}};
  uint64_t ns;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    assert_int_equal(parse(cases[i].text, cases[i].len, &ns), 0);
    assert_true(ns == cases[i].cs * 10000000);
  }
}

TEST(malformed_text_is_rejected) {
  static const struct text_case cases[] = {
      {"empty", TEXT("")},
      {"one number", TEXT("5.00\n")},
      {"cut", TEXT("5.00 7.0")},
      {"no decimals", TEXT("5 7\n")},
      {"three decimals", TEXT("5.123 7.00\n")},
      {"negative", TEXT("-5.00 7.00\n")},
      {"comma", TEXT("5,00 7,00\n")},
      {"further line", TEXT("5.00 7.00\n5.00 7.00\n")},
      {"too long for nanoseconds", TEXT("18446744074.00 7.00\n")},
      {"overflow", TEXT("99999999999999999999.00 7.00\n")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}
