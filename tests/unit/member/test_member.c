/* SPDX-License-Identifier: MIT */
/* The size of page tables is estimated between two readings of status. */
#include "test.h"

#include "member/member.h"

static struct page_tables read_at(uint64_t kib, uint64_t resident_pages) {
  const struct status_sample s = {.known = STATUS_VM_PTE,
                                  .vm_pte_bytes = kib * KIB};
  struct page_tables t = {.kib = 0};

  page_tables_take(&t, &s, resident_pages);
  return t;
}

/* Sizes include the top level; a table of 4 KiB has 512 entries. */
TEST(memory_that_comes_has_entries_and_tables_stay_when_it_goes) {
  static const struct {
    uint64_t kib, resident_pages, bytes;
  } rows[] = {{60, 1000, 64 * KIB},
              {60, 1000 + 512, 68 * KIB},
              {60, 1000 + 1024 * 1024, 64 * KIB + 8 * MIB},
              {60, 10, 64 * KIB},
              {0, 512, 8 * KIB}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct page_tables t = read_at(rows[i].kib, 1000);

    assert_int_equal(page_tables_are_known(&t), rows[i].kib > 0);
    assert_int_equal(page_tables_bytes(&t, rows[i].resident_pages, PAGE),
                     rows[i].bytes);
  }
}

TEST(status_without_tables_keeps_the_known_size) {
  const struct status_sample none = {.known = STATUS_THREADS};
  struct page_tables t = read_at(60, 1000), never = {.kib = 0};

  page_tables_take(&t, &none, 0);
  assert_int_equal(page_tables_bytes(&t, 1000, PAGE), 64 * KIB);
  page_tables_take(&never, &none, 512);
  assert_false(page_tables_are_known(&never));
  assert_int_equal(page_tables_bytes(&never, 512, PAGE), 8 * KIB);
  /* Nor is it asked for in each cycle. */
  assert_false(page_tables_are_due(&never, 512));
}

TEST(tables_are_due_when_a_sixteenth_of_the_pages_has_changed) {
  static const struct {
    uint64_t then, now;
    bool is_due;
  } cases[] = {
      {1600, 1600, false},       {1600, 1699, false},        {1600, 1700, true},
      {1600, 1501, false},       {1600, 1500, true},         {100, 163, false},
      {100, 164, true},          {100, 37, false},           {100, 36, true},
      {1 << 24, 17825792, true}, {1 << 24, 17825791, false},
  };
  struct page_tables never = {.kib = 0};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct page_tables t = read_at(60, cases[i].then);

    if (page_tables_are_due(&t, cases[i].now) != cases[i].is_due)
      fail_msg("%zu", i);
  }
  assert_true(page_tables_are_due(&never, 1));
}

TEST(sizes_that_do_not_fit_are_cut_to_the_maximum) {
  struct page_tables t = read_at(UINT64_C(1) << 40, UINT64_C(1) << 40);

  assert_int_equal(t.kib, UINT32_MAX);
  assert_int_equal(t.resident_pages, UINT32_MAX);
}
