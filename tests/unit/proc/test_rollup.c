/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "proc/rollup.h"

#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                   \
  "561d761ad000-7ffe85cca000 ---p 00000000 00:00 0                    "        \
  "[rollup]"                                                                   \
  "\n"
#define FOUR                                                                   \
  "Shared_Clean: 1424 kB\nShared_Dirty: 0 kB\n"                                \
  "Private_Clean: 104 kB\nPrivate_Dirty: 112 kB\n"
#define LEAST HEAD "Rss: 1640 kB\nPss: 531 kB\n" FOUR

FIXTURE_PARSER(rollup_parse, struct rollup)

static uint64_t kb(const struct rollup *r, enum rollup_field f) {
  assert_true(rollup_has(r, f));
  return r->bytes[f] / KIB;
}

TEST(a_capture_is_read_field_by_field) {
  static const uint64_t want[ROLLUP_FIELDS] = {
      [ROLLUP_RSS] = 16664,          [ROLLUP_PSS] = 8096,
      [ROLLUP_PSS_DIRTY] = 7246,     [ROLLUP_PSS_ANON] = 5191,
      [ROLLUP_PSS_FILE] = 174,       [ROLLUP_PSS_SHMEM] = 2730,
      [ROLLUP_SHARED_CLEAN] = 3236,  [ROLLUP_SHARED_DIRTY] = 9272,
      [ROLLUP_PRIVATE_DIRTY] = 4156, [ROLLUP_REFERENCED] = 14616,
      [ROLLUP_ANONYMOUS] = 11368,    [ROLLUP_LAZY_FREE] = 1984,
      [ROLLUP_LOCKED] = 341,
  };
  struct rollup r;

  assert_int_equal(parse_file("rollup-6.18", &r), 0);
  assert_int_equal(r.known, (1u << ROLLUP_FIELDS) - 1);
  for (unsigned f = 0; f < ROLLUP_FIELDS; f++)
    if (r.bytes[f] != want[f] * KIB)
      fail_msg("field %u: %ju bytes", f, (uintmax_t)r.bytes[f]);
}

TEST(every_generation_of_kernel_is_read) {
#define BIT(field) (1u << ROLLUP_##field)
  static const uint32_t all = (1u << ROLLUP_FIELDS) - 1;
  static const uint32_t split = BIT(PSS_ANON) | BIT(PSS_FILE) | BIT(PSS_SHMEM);
  static const struct {
    const char *file;
    uint32_t missing;
    uint64_t pss, private_dirty, swap, swap_pss, locked;
  } cases[] = {
      {"rollup-6.18", 0, 8096, 4156, 0, 0, 341},
      {"rollup-6.1-written", BIT(KSM), 21907, 15732, 12288, 10211, 0},
      {"rollup-5.10", BIT(KSM) | BIT(PSS_DIRTY), 35558, 7376, 0, 0, 0},
      {"rollup-4.14", BIT(KSM) | BIT(PSS_DIRTY) | BIT(FILE_PMD_MAPPED) | split,
       29944, 14396, 1940, 1940, 0},
      {"rollup-4.14-android",
       BIT(KSM) | BIT(PSS_DIRTY) | BIT(FILE_PMD_MAPPED) | split, 7071, 5200,
       35232, 1194, 0},
      {"rollup-4.9-android",
       BIT(KSM) | BIT(PSS_DIRTY) | BIT(FILE_PMD_MAPPED) | split |
           BIT(LAZY_FREE) | BIT(SHMEM_PMD_MAPPED),
       202052, 64016, 5344, 442, 1523537},
  };
  struct rollup r;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    if (parse_file(cases[i].file, &r) != 0)
      fail_msg("%s: rejected", cases[i].file);
    if (r.known != (all & ~cases[i].missing))
      fail_msg("%s: known is %x", cases[i].file, r.known);
    if (kb(&r, ROLLUP_PSS) != cases[i].pss ||
        kb(&r, ROLLUP_PRIVATE_DIRTY) != cases[i].private_dirty ||
        kb(&r, ROLLUP_SWAP) != cases[i].swap ||
        kb(&r, ROLLUP_SWAP_PSS) != cases[i].swap_pss ||
        kb(&r, ROLLUP_LOCKED) != cases[i].locked)
      fail_msg("%s: wrong value", cases[i].file);
  }
}

/* Strides that come by all of the 22 fields; the last one goes backwards. */
TEST(every_key_is_found_in_any_order) {
  static const unsigned strides[] = {1, 3, 5, 7, 9, 13, 21};
  static const char every[] =
      "Rss: 430 kB\nPss: 101 kB\nPss_Dirty: 102 kB\nPss_Anon: 103 kB\n"
      "Pss_File: 104 kB\nPss_Shmem: 105 kB\nShared_Clean: 106 kB\n"
      "Shared_Dirty: 107 kB\nPrivate_Clean: 108 kB\nPrivate_Dirty: 109 kB\n"
      "Referenced: 110 kB\nAnonymous: 111 kB\nKSM: 112 kB\nLazyFree: 113 kB\n"
      "AnonHugePages: 114 kB\nShmemPmdMapped: 115 kB\nFilePmdMapped: 116 kB\n"
      "Shared_Hugetlb: 117 kB\nPrivate_Hugetlb: 118 kB\nSwap: 119 kB\n"
      "SwapPss: 120 kB\nLocked: 121 kB\n";
  struct cursor s = cursor_begin(TEXT(every));
  struct span lines[ROLLUP_FIELDS];
  struct rollup r;

  for (unsigned f = 0; f < ROLLUP_FIELDS; f++)
    assert_true(parse_line(&s, &lines[f]));
  for (size_t i = 0; i < LENGTH(strides); i++) {
    char text[sizeof(HEAD) + sizeof(every)] = HEAD;

    for (unsigned n = 0; n < ROLLUP_FIELDS; n++) {
      struct span line = lines[n * strides[i] % ROLLUP_FIELDS];

      strncat(text, line.text, line.len + 1);
    }
    if (parse(text, strlen(text), &r) != 0)
      fail_msg("stride %u: rejected", strides[i]);
    for (unsigned f = ROLLUP_RSS + 1; f < ROLLUP_FIELDS; f++)
      if (kb(&r, f) != 100 + f)
        fail_msg("stride %u: field %u is wrong", strides[i], f);
  }
}

/* Lines that are refused by themselves are below. */
TEST(malformed_text_is_rejected) {
  static const struct text_case cases[] = {
      {"empty", TEXT("")},
      {"header alone", TEXT(HEAD)},
      {"no Rss", TEXT(HEAD "Pss: 531 kB\n" FOUR)},
      {"no Pss", TEXT(HEAD "Rss: 1640 kB\n" FOUR)},
      {"Pss_Dirty is no Pss", TEXT("Rss: 1640 kB\nPss_Dirty: 531 kB\n" FOUR)},
      {"no Shared_Clean",
       TEXT("Rss: 216 kB\nPss: 1 kB\nShared_Dirty: 0 kB\n"
            "Private_Clean: 104 kB\nPrivate_Dirty: 112 kB\n")},
      {"no Shared_Dirty",
       TEXT("Rss: 1640 kB\nPss: 531 kB\nShared_Clean: 1424 kB\n"
            "Private_Clean: 104 kB\nPrivate_Dirty: 112 kB\n")},
      {"no Private_Clean",
       TEXT("Rss: 1536 kB\nPss: 531 kB\nShared_Clean: 1424 kB\n"
            "Shared_Dirty: 0 kB\nPrivate_Dirty: 112 kB\n")},
      {"no Private_Dirty",
       TEXT("Rss: 1528 kB\nPss: 531 kB\nShared_Clean: 1424 kB\n"
            "Shared_Dirty: 0 kB\nPrivate_Clean: 104 kB\n")},
      {"a key twice", TEXT(LEAST "Swap: 1 kB\nSwap: 1 kB\n")},
      {"a whole rollup twice", TEXT(LEAST LEAST)},
      {"a malformed line", TEXT(LEAST "Swap: -1 kB\n")},
      {"NUL in the key", TEXT("Rss: 1640 kB\nPs\0s: 531 kB\n" FOUR)},
      {"NUL behind the text", TEXT(LEAST "\0")},
      {"no newline at the end", TEXT(LEAST "Swap: 1 kB")},
      {"unknown line without newline", TEXT(LEAST "SwapPs")},
      {"the four overflow to Rss",
       TEXT("Rss: 4 kB\nPss: 4 kB\nShared_Clean: 18014398509481983 kB\n"
            "Shared_Dirty: 5 kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: 0 kB\n")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}

TEST(pss_and_parts_have_to_agree_with_rss) {
  static const struct {
    const char *name;
    unsigned rss, pss, parts[4];
    bool is_taken;
  } cases[] = {
      {"nothing resident", 0, 0, {0, 0, 0, 0}, true},
      {"all private", 100, 100, {0, 0, 40, 60}, true},
      {"pss one kB above rss", 100, 101, {10, 20, 30, 40}, false},
      {"the four 4 kB short", 100, 50, {10, 20, 30, 36}, true},
      {"the four 5 kB short", 100, 50, {10, 20, 30, 35}, false},
      {"the four 4 kB over", 100, 50, {10, 20, 30, 44}, true},
      {"the four 5 kB over", 100, 50, {10, 20, 30, 45}, false},
      {"shared_clean out by much", 100, 50, {1010, 20, 30, 40}, false},
      {"shared_dirty out by much", 100, 50, {10, 1020, 30, 40}, false},
      {"private_clean out by much", 100, 50, {10, 20, 1030, 40}, false},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    const unsigned *parts = cases[i].parts;
    char text[512];
    size_t len = (size_t)snprintf(
        text, sizeof(text),
        HEAD "Rss: %u kB\nPss: %u kB\nShared_Clean: %u kB\n"
             "Shared_Dirty: %u kB\nPrivate_Clean: %u kB\n"
             "Private_Dirty: %u kB\n",
        cases[i].rss, cases[i].pss, parts[0], parts[1], parts[2], parts[3]);

    if (is_taken(text, len) != cases[i].is_taken)
      fail_msg("%s: wrong answer", cases[i].name);
  }
}

/* --- lines ---------------------------------------------------------------- */

/* The one line of a text; whether it is taken, and to its end. */
static bool take_line(const char *text, size_t len, struct rollup_line *ret) {
  struct cursor s = cursor_begin(text, len);

  *ret = (struct rollup_line){0};
  return rollup_line_next(&s, ret) && cursor_is_done(&s);
}

TEST(a_mapping_is_read_with_range_and_name) {
  static const struct {
    const char *text;
    size_t len;
    uint64_t start, end;
    const char *permissions, *name;
  } rows[] = {
      {TEXT("55eb8216a000-55eb8216b000 r--p 00000000 fe:00 109     /bin/cat\n"),
       0x55eb8216a000, 0x55eb8216b000, "r--p", "/bin/cat"},
      {TEXT("0-ffffffffffffffff rwxs 00000000 00:00 0 \n"), 0, UINT64_MAX,
       "rwxs", ""},
      {TEXT("1-1 ---p 00000000 00:00 0\n"), 1, 1, "---p", ""},
      {TEXT("aaaa-ffff rw-p 0 00:00 0\n"), 0xaaaa, 0xffff, "rw-p", ""},
      {TEXT("1-2 ---p 0 00:00 0  /x\\012Rss: 9 kB (deleted)\n"), 1, 2, "---p",
       "/x\\012Rss: 9 kB (deleted)"},
      {TEXT("1-2 ---p 0 00:00 0 [anon:a: Rss: 1 kB]\n"), 1, 2, "---p",
       "[anon:a: Rss: 1 kB]"},
      {TEXT("1-2 ---p 0 00:00 0  /\xff\r\n"), 1, 2, "---p", "/\xff\r"},
  };

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct rollup_line line;

    if (!take_line(rows[i].text, rows[i].len, &line) ||
        line.kind != ROLLUP_LINE_MAPPING || line.start != rows[i].start ||
        line.end != rows[i].end ||
        !span_is(line.permissions, rows[i].permissions) ||
        !span_is(line.name, rows[i].name))
      fail_msg("row %zu comes out otherwise", i);
  }
}
