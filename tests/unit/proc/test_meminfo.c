/* SPDX-License-Identifier: MIT */
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

/* Each key has its own value, and none is taken for another that begins or ends
 * like it. */
TEST(every_key_is_read) {
  struct meminfo_sample m;

  assert_int_equal(
      parse(TEXT("MemTotal: 1 kB\nMemFree: 2 kB\nMemAvailable: 3 kB\n"
                 "Buffers: 4 kB\nCached: 5 kB\nSwapCached: 6 kB\n"
                 "Active: 90 kB\nInactive: 91 kB\nActive(anon): 7 kB\n"
                 "Inactive(anon): 8 kB\nActive(file): 92 kB\n"
                 "Inactive(file): 93 kB\nUnevictable: 9 kB\nMlocked: 94 kB\n"
                 "SwapTotal: 30 kB\nSwapFree: 10 kB\nZswap: 11 kB\n"
                 "Zswapped: 95 kB\nAnonPages: 12 kB\nMapped: 13 kB\n"
                 "Shmem: 14 kB\nKReclaimable: 96 kB\nSlab: 97 kB\n"
                 "SReclaimable: 15 kB\nSUnreclaim: 16 kB\n"
                 "KernelStack: 17 kB\nPageTables: 18 kB\n"
                 "SecPageTables: 19 kB\nPercpu: 20 kB\n"
                 "ShmemHugePages: 98 kB\nShmemPmdMapped: 99 kB\n"
                 "HugePages_Total:   21\nHugePages_Free:   22\n"
                 "HugePages_Rsvd:   71\nHugepagesize: 23 kB\n"
                 "Hugetlb: 24 kB\n"),
            &m),
      0);
  assert_int_equal(m.mem_total_bytes, 1 * KIB);
  assert_int_equal(m.mem_free_bytes, 2 * KIB);
  assert_int_equal(m.mem_available_bytes, 3 * KIB);
  assert_int_equal(m.buffers_bytes, 4 * KIB);
  assert_int_equal(m.cached_bytes, 5 * KIB);
  assert_int_equal(m.swap_cached_bytes, 6 * KIB);
  assert_int_equal(m.active_anon_bytes, 7 * KIB);
  assert_int_equal(m.inactive_anon_bytes, 8 * KIB);
  assert_int_equal(m.unevictable_bytes, 9 * KIB);
  assert_int_equal(m.swap_total_bytes, 30 * KIB);
  assert_int_equal(m.swap_used_bytes, 20 * KIB);
  assert_int_equal(m.zswap_bytes, 11 * KIB);
  assert_int_equal(m.anon_pages_bytes, 12 * KIB);
  assert_int_equal(m.mapped_bytes, 13 * KIB);
  assert_int_equal(m.shmem_bytes, 14 * KIB);
  assert_int_equal(m.slab_reclaimable_bytes, 15 * KIB);
  assert_int_equal(m.slab_unreclaimable_bytes, 16 * KIB);
  assert_int_equal(m.kernel_stack_bytes, 17 * KIB);
  assert_int_equal(m.page_tables_bytes, 18 * KIB);
  assert_int_equal(m.sec_page_tables_bytes, 19 * KIB);
  assert_int_equal(m.percpu_bytes, 20 * KIB);
  assert_int_equal(m.huge_pages_total, 21);
  assert_int_equal(m.huge_pages_free, 22);
  assert_int_equal(m.huge_page_size_bytes, 23 * KIB);
  assert_int_equal(m.hugetlb_bytes, 24 * KIB);
}

TEST(missing_keys_are_reported_as_unknown) {
  static const struct {
    const char *file;
    unsigned known;
  } cases[] = {
      {"meminfo-6.18",
       MEMINFO_AVAILABLE | MEMINFO_PERCPU | MEMINFO_HUGE_PAGES | MEMINFO_ZSWAP},
      {"meminfo-5.10-written",
       MEMINFO_AVAILABLE | MEMINFO_PERCPU | MEMINFO_HUGE_PAGES},
      {"meminfo-2.6.32-written", MEMINFO_HUGE_PAGES},
  };
  struct meminfo_sample m;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    assert_int_equal(parse_file(cases[i].file, &m), 0);
    if (m.known != cases[i].known)
      fail_msg("%s: %x", cases[i].file, m.known);
  }
  assert_int_equal(parse(TEXT("MemTotal: 1 kB\nMemAvailable: 0 kB\n"), &m), 0);
  assert_int_equal(m.known, MEMINFO_AVAILABLE);
  assert_int_equal(parse(TEXT("MemTotal: 1 kB\nPercpu: 0 kB\n"), &m), 0);
  assert_int_equal(m.known, MEMINFO_PERCPU);
}

TEST(malformed_text_is_rejected) {
  static const struct text_case cases[] = {
      {"empty", TEXT("")},
      {"total missing", TEXT("MemFree: 3 kB\nMemAvailable: 4 kB\n")},
      {"total zero", TEXT("MemTotal: 0 kB\n")},
      {"total cut short", TEXT("MemTotal: 5 kB")},
      {"unit runs on", TEXT("MemTotal: 5 kBx\n")},
      {"available is no number", TEXT("MemTotal: 5 kB\nMemAvailable: x kB\n")},
      {"number of pages is none", TEXT("MemTotal: 5 kB\nHugePages_Free:\n")},
      {"available on the next line",
       TEXT("MemTotal: 5 kB\nMemAvailable:\n4 kB\n")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}
