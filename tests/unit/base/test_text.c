/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <smaps/text.h>

#include "fixture.h"

#include <stdlib.h>

struct number_case {
  const char *name;
  const char *text;
  size_t len;
  bool is_taken;
  uint64_t value;
  size_t taken;
};

static const struct number_case u64_cases[] = {
    {"one digit", TEXT("7"), true, 7, 1},
    {"zero", TEXT("0"), true, 0, 1},
    {"leading zeros", TEXT("0007 "), true, 7, 4},
    {"up to a blank", TEXT("12 34"), true, 12, 2},
    {"up to a letter", TEXT("12kB"), true, 12, 2},
    {"up to a NUL", TEXT("12\0003"), true, 12, 2},
    {"up to the end", TEXT("123456"), true, 123456, 6},
    {"the largest", TEXT("18446744073709551615"), true, UINT64_MAX, 20},
    {"one too many", TEXT("18446744073709551616"), false, 0, 0},
    {"overflow that wraps to a small one", TEXT("36893488147419103233"), false,
     0, 0},
    {"empty", TEXT(""), false, 0, 0},
    {"a blank first", TEXT(" 1"), false, 0, 0},
    {"a minus", TEXT("-1"), false, 0, 0},
    {"below the digits", TEXT("/"), false, 0, 0},
    {"above the digits", TEXT(":"), false, 0, 0},
    {"a byte with the high bit", TEXT("\xb1"), false, 0, 0},
};

static const struct number_case u32_cases[] = {
    {"the largest", TEXT("4294967295 "), true, UINT32_MAX, 10},
    {"one too many", TEXT("4294967296"), false, 0, 0},
    {"wraps to a small one in 32 bits", TEXT("4294967297"), false, 0, 0},
    {"empty", TEXT(""), false, 0, 0},
};

static bool take_u32(struct cursor *s, uint64_t *ret) {
  uint32_t value = (uint32_t)*ret;
  bool is_taken = parse_u32(s, &value);

  if (!is_taken)
    assert_int_equal(value, (uint32_t)*ret);
  else
    *ret = value;
  return is_taken;
}

static void check_number(const struct number_case *c,
                         bool (*take)(struct cursor *, uint64_t *)) {
  const uint64_t untouched = UINT64_C(0xaaaaaaaaaaaaaaaa);
  char *text = fixture_copy(c->text, c->len);
  struct cursor s = cursor_begin(text, c->len);
  uint64_t value = untouched;

  if (take(&s, &value) != c->is_taken)
    fail_msg("%s: %s", c->name, c->is_taken ? "refused" : "taken");
  if (value != (c->is_taken ? c->value : untouched))
    fail_msg("%s: value is %ju", c->name, (uintmax_t)value);
  if (s.at != text + c->taken)
    fail_msg("%s: cursor is at %td", c->name, s.at - text);
  free(text);
}

TEST(a_number_is_digits_that_fit) {
  for (size_t i = 0; i < LENGTH(u64_cases); i++)
    check_number(&u64_cases[i], parse_u64);
}

TEST(a_short_number_fits_in_32_bits) {
  for (size_t i = 0; i < LENGTH(u32_cases); i++)
    check_number(&u32_cases[i], take_u32);
}

/* What the kernel prints of an amount of memory, in proc files of all kinds. */
TEST(an_amount_is_in_kb_and_comes_out_in_bytes) {
  static const uint64_t most = UINT64_MAX - 1023;
  static const struct number_case cases[] = {
      {"as printed", TEXT("     660 kB\n"), true, 660 * 1024, 11},
      {"close", TEXT("5 kB"), true, 5 * 1024, 4},
      {"blanks and tabs", TEXT(" \t 4 kB"), true, 4 * 1024, 7},
      {"runs on, which the caller sees", TEXT("1 kBs"), true, 1024, 4},
      {"the largest", TEXT("18014398509481983 kB"), true, most, 20},
      {"bytes overflow", TEXT("18014398509481984 kB"), false, 0, 0},
      {"bytes overflow to a small one", TEXT("18014398509481985 kB"), false, 0,
       0},
      {"number overflows", TEXT("18446744073709551616 kB"), false, 0, 0},
      {"no number", TEXT(" kB"), false, 0, 0},
      {"a word", TEXT(" none"), false, 0, 0},
      {"a sign", TEXT(" -1 kB"), false, 0, 0},
      {"a fraction", TEXT("1.5 kB"), false, 0, 0},
      {"NUL in the number", TEXT("1\0002 kB"), false, 0, 0},
      {"no unit", TEXT("1\n"), false, 0, 0},
      {"another unit", TEXT("1 MB"), false, 0, 0},
      {"another case of the unit", TEXT("1 KB"), false, 0, 0},
      {"unit without blank", TEXT("1kB"), false, 0, 0},
      {"unit behind two blanks", TEXT("1  kB"), false, 0, 0},
      {"cut short", TEXT("1 k"), false, 0, 0},
      {"on the next line", TEXT("\n1 kB"), false, 0, 0},
  };

  for (size_t i = 0; i < LENGTH(cases); i++)
    check_number(&cases[i], parse_kb);
}
