#include "test.h"

#include "proc/meminfo.h"

#include "fixture.h"

FIXTURE_PARSER(meminfo_parse, struct meminfo_sample)

TEST(a_capture_is_read_in_bytes) {
  struct meminfo_sample m;

  assert_int_equal(parse_file("meminfo-6.18", &m), 0);
  assert_int_equal(m.mem_total_bytes, 24684092 * KIB);
  assert_in_range(m.mem_available_bytes, 1, m.mem_total_bytes);
}

TEST(mapped_memory_is_told_by_kind) {
  struct meminfo_sample m;

  assert_int_equal(parse(TEXT("MemTotal: 9 kB\nAnonPages:  5 kB\n"
                              "AnonHugePages: 7 kB\nMapped: 3 kB\n"
                              "DirectMap4k: 8 kB\n"),
                         &m),
                   0);
  assert_int_equal(m.anon_pages_bytes, 5 * KIB);
  assert_int_equal(m.mapped_bytes, 3 * KIB);
  assert_int_equal(parse(TEXT("MemTotal: 9 kB\n"), &m), 0);
  assert_int_equal(m.anon_pages_bytes, 0);
  assert_int_equal(m.mapped_bytes, 0);
}

TEST(an_old_kernel_prints_no_available) {
  struct meminfo_sample m;

  assert_int_equal(parse_file("meminfo-2.6.32-written", &m), 0);
  assert_int_equal(m.mem_total_bytes, 8060408 * KIB);
  assert_int_equal(m.mem_available_bytes, 0);
}

TEST(keys_are_found_anywhere) {
  static const struct {
    const char *name;
    const char *text;
    size_t len;
    uint64_t total_kb, available_kb;
  } cases[] = {
      {"alone", TEXT("MemTotal: 5 kB\n"), 5, 0},
      {"other order", TEXT("MemAvailable: 3 kB\nMemTotal: 5 kB\n"), 5, 3},
      {"tab", TEXT("MemTotal:\t5 kB\n"), 5, 0},
      {"no blank", TEXT("MemTotal:5 kB\n"), 5, 0},
      {"unknown without number", TEXT("Foo: bar\nMemTotal: 5 kB\n"), 5, 0},
      {"unknown overflows",
       TEXT("Foo: 99999999999999999999 kB\nMemTotal: 5 kB\n"), 5, 0},
      {"empty line", TEXT("\nMemTotal: 5 kB\n"), 5, 0},
      {"near-miss keys",
       TEXT("MemTotalx: 1 kB\nMemTotal : 2 kB\nmemtotal: 3 kB\n"
            " MemTotal: 4 kB\nxMemAvailable: 6 kB\nMemTotal: 5 kB\n"),
       5, 0},
      {"unknown last line cut short", TEXT("MemTotal: 5 kB\nMemFr"), 5, 0},
      {"the largest", TEXT("MemTotal: 18014398509481983 kB\n"),
       18014398509481983, 0},
  };
  struct meminfo_sample m;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    if (parse(cases[i].text, cases[i].len, &m) != 0)
      fail_msg("%s: rejected", cases[i].name);
    if (m.mem_total_bytes != cases[i].total_kb * KIB ||
        m.mem_available_bytes != cases[i].available_kb * KIB)
      fail_msg("%s: wrong value", cases[i].name);
  }
}

TEST(malformed_text_is_rejected) {
  static const struct text_case cases[] = {
      {"empty", TEXT("")},
      {"total missing", TEXT("MemFree: 3 kB\nMemAvailable: 4 kB\n")},
      {"total zero", TEXT("MemTotal: 0 kB\n")},
      {"total without number", TEXT("MemTotal: kB\n")},
      {"total without unit", TEXT("MemTotal: 5\n")},
      {"total in another unit", TEXT("MemTotal: 5 MB\n")},
      {"total cut behind the unit", TEXT("MemTotal: 5 kB")},
      {"unit runs on", TEXT("MemTotal: 5 kBx\n")},
      {"CRLF", TEXT("MemTotal: 5 kB\r\n")},
      {"NUL", TEXT("MemTotal: \0005 kB\n")},
      {"minus", TEXT("MemTotal: -5 kB\n")},
      {"number overflows", TEXT("MemTotal: 18446744073709551616 kB\n")},
      {"bytes overflow", TEXT("MemTotal: 18014398509481984 kB\n")},
      {"bytes overflow to a small one",
       TEXT("MemTotal: 18014398509481985 kB\n")},
      {"available is no number", TEXT("MemTotal: 5 kB\nMemAvailable: x kB\n")},
      {"available on the next line",
       TEXT("MemTotal: 5 kB\nMemAvailable:\n4 kB\n")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}

TEST(a_text_cut_short_gives_no_other_value) {
  struct meminfo_sample whole, m;
  struct span text = fixture_load("meminfo-6.18");

  assert_int_equal(parse(text.text, text.len, &whole), 0);
  for (size_t cut = 0; cut < text.len; cut++) {
    if (parse(text.text, cut, &m) != 0)
      continue;
    if (m.mem_total_bytes != whole.mem_total_bytes ||
        (m.mem_available_bytes != 0 &&
         m.mem_available_bytes != whole.mem_available_bytes))
      fail_msg("%zu bytes: other values", cut);
  }
}
