/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <smaps/format.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* The values are of bc: 1014.9 * 1024 bytes are 0.9911 MiB, and so on. */
TEST(amounts_have_three_digits) {
  static const struct {
    uint64_t bytes;
    const char *shown, *in_words;
  } cases[] = {
      {0, "0", "0 B"},
      {999, "999", "999 B"},
      {1000, "0.98K", "0.98 KiB"},
      {KIB, "1.00K", "1.00 KiB"},
      {10234, "9.99K", "9.99 KiB"},
      {10235, "10.0K", "10.0 KiB"}, /* 9.9951 */
      {102348, "99.9K", "99.9 KiB"},
      {102349, "100K", "100 KiB"}, /* 99.9502 */
      {1023487, "999K", "999 KiB"},
      {1023488, "0.98M", "0.98 MiB"}, /* 999.5 KiB */
      {1039257, "0.99M", "0.99 MiB"}, /* 1014.9 KiB */
      {MIB - 1, "1.00M", "1.00 MiB"},
      {147534643, "141M", "141 MiB"}, /* 140.7 */
      {3 * GIB / 2, "1.50G", "1.50 GiB"},
      {1010 * GIB, "0.99T", "0.99 TiB"},
      {UINT64_MAX, "16.0E", "16.0 EiB"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    char text[FORMAT_SIZE];

    assert_string_equal(format_bytes(cases[i].bytes, text), cases[i].shown);
    assert_string_equal(format_amount(cases[i].bytes, text), cases[i].in_words);
  }
}

/* Nothing is rounded to 60 s, 60 min or 24 h of the smaller unit. */
TEST(durations_have_two_units) {
  static const struct {
    double seconds;
    const char *shown;
  } cases[] = {
      {0, "0us"},
      {-5, "0us"},
      {0.000011, "11us"},
      {0.0009996, "1.0ms"},
      {0.0123, "12.3ms"},
      {0.9996, "1.0s"},
      {9.94, "9.9s"},
      {9.96, "10s"},
      {59.4, "59s"},
      {59.6, "1m00s"},
      {1301, "21m41s"},
      {3599.4, "59m59s"},
      {3599.6, "1h00m"},
      {3600 + 119, "1h02m"},
      {86369, "23h59m"},
      {86370, "1d00h"},
      {2 * 86400 + 7 * 3600 + 1799, "2d07h"},
      {3 * 86400 - 1800, "3d00h"},
      {1e300, "99999d00h"},
      {(double)INFINITY, "99999d00h"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    char text[FORMAT_SIZE];

    if (strcmp(format_seconds(cases[i].seconds, text), cases[i].shown) != 0)
      fail_msg("%g s: \"%s\"", cases[i].seconds, text);
  }
}

TEST(nanoseconds_are_a_duration_too) {
  char text[FORMAT_SIZE];

  assert_string_equal(format_duration(UINT64_C(1301400000000), text), "21m41s");
  assert_string_equal(format_duration(UINT64_MAX, text), "99999d00h");
}

/* 1795268701 is 2026-11-21 13:45:01 UTC. */
TEST(times_of_another_day_have_their_date) {
  static const struct {
    const char *zone;
    uint64_t when;
    const char *shown;
  } cases[] = {
      {"UTC0", 1795268701, "13:45"},
      {"UTC0", 1795268701 - 49501, "00:00"},
      {"UTC0", 1795268701 - 49502, "11-20 23:59"},
      {"UTC0", 1795268701 + 36899, "11-22 00:00"},
      {"UTC0", 1795268701 + 40 * 86400, "12-31 13:45"},
      {"UTC0", 1795268701 + 41 * 86400, "2027-01-01 13:45"},
      {"CET-1", 1795268701 - 49502, "00:59"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    char text[FORMAT_SIZE];

    setenv("TZ", cases[i].zone, 1);
    tzset();
    assert_string_equal(format_clock(cases[i].when * NS, 1795268701 * NS, text),
                        cases[i].shown);
  }
}
