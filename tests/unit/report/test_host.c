/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "report/host.h"

#include <stdio.h>
#include <string.h>

#include "draw.h"

#define GIB (1024 * MIB)

static uint64_t sum_of(const struct host_account *a) {
  uint64_t sum = 0;

  for (int i = 0; i < HOST_PARTS; i++)
    assert_false(__builtin_add_overflow(sum, a->bytes[i], &sum));
  return sum;
}

static struct host_account account(const struct meminfo_sample *m,
                                   const struct host_processes *h,
                                   const struct host_devices *d) {
  static const struct host_processes nobody;
  static const struct host_devices none;
  struct host_account a;

  host_account_make(m, h ? h : &nobody, d ? d : &none, &a);
  assert_int_equal(sum_of(&a), m->mem_total_bytes);
  return a;
}

/* 16 GiB: 4 free, 3 anonymous, 1.5 mapped, and so on. */
static struct meminfo_sample plain(void) {
  return (struct meminfo_sample){.known = MEMINFO_PERCPU | MEMINFO_HUGE_PAGES |
                                          MEMINFO_ZSWAP,
                                 .mem_total_bytes = 16 * GIB,
                                 .mem_free_bytes = 4 * GIB,
                                 .anon_pages_bytes = 3 * GIB,
                                 .mapped_bytes = 1536 * MIB,
                                 .cached_bytes = 5 * GIB,
                                 .shmem_bytes = 1 * GIB,
                                 .buffers_bytes = 100 * MIB,
                                 .slab_reclaimable_bytes = 300 * MIB,
                                 .slab_unreclaimable_bytes = 200 * MIB,
                                 .page_tables_bytes = 50 * MIB,
                                 .sec_page_tables_bytes = 6 * MIB,
                                 .kernel_stack_bytes = 20 * MIB,
                                 .percpu_bytes = 10 * MIB};
}

/* Members that hold so much. */
static struct host_processes members(uint64_t pss, uint64_t pss_shmem) {
  return (struct host_processes){.pss = pss, .pss_shmem = pss_shmem};
}

/* Of a host, by the name under which it is published. */
static bool has_value(const struct host_account *a, const char *name,
                      struct host_value *ret) {
  unsigned cursor = 0;

  while (host_next(a, &cursor, ret))
    if (strcmp(ret->name, name) == 0)
      return true;
  return false;
}

/* Numbers in MiB, by name: Asserts values like "tmpfs=512 tmpfs_error=0". */
static void check(const struct meminfo_sample *m,
                  const struct host_processes *h, const char *values) {
  struct host_account a = account(m, h, NULL);
  struct host_value v;
  char name[32];
  unsigned mib;
  int len;

  for (; sscanf(values, " %31[^=]=%u%n", name, &mib, &len) == 2; values += len)
    if (!has_value(&a, name, &v) || v.bytes != mib * MIB)
      fail_msg("%s is %ju", name, (uintmax_t)v.bytes);
  assert_string_equal(values, "");
}

/* --- where each part comes from --- */

TEST(huge_pages_are_divided_into_used_and_free) {
  static const struct {
    const char *name;
    uint64_t total, unused, size, hugetlb, unused_of_others;
    uint64_t used_mib, free_mib;
  } cases[] = {
      {"none", 0, 0, 2 * MIB, 0, 0, 0, 0},
      {"of one size", 100, 30, 2 * MIB, 200 * MIB, 0, 140, 60},
      {"before 4.16", 100, 30, 2 * MIB, 0, 0, 140, 60},
      {"of two sizes", 100, 30, 2 * MIB, 200 * MIB + 3 * GIB, 1 * GIB,
       140 + 2048, 60 + 1024},
      {"more free than there are", 1, 5, 2 * MIB, 2 * MIB, 0, 0, 2},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct meminfo_sample m = plain();
    struct host_devices d = {.hugetlb_free_bytes = cases[i].unused_of_others};
    struct host_account a;

    m.huge_pages_total = cases[i].total;
    m.huge_pages_free = cases[i].unused;
    m.huge_page_size_bytes = cases[i].size;
    m.hugetlb_bytes = cases[i].hugetlb;
    a = account(&m, NULL, &d);
    if (a.bytes[HOST_HUGETLB_USED] != cases[i].used_mib * MIB ||
        a.bytes[HOST_HUGETLB_FREE] != cases[i].free_mib * MIB)
      fail_msg("%s: %ju used, %ju free", cases[i].name,
               (uintmax_t)a.bytes[HOST_HUGETLB_USED],
               (uintmax_t)a.bytes[HOST_HUGETLB_FREE]);
  }
}

TEST(compressed_memory_is_a_part_where_there_is_any) {
  struct meminfo_sample m = plain();
  struct host_devices d = {.zram_bytes = 70 * MIB};
  struct host_account a;

  m.zswap_bytes = 30 * MIB;
  a = account(&m, NULL, NULL);
  assert_false(a.known & (1U << HOST_ZSWAP | 1U << HOST_ZRAM));
  assert_int_equal(a.bytes[HOST_ZSWAP], 0);
  m.swap_total_bytes = 1 * GIB;
  a = account(&m, NULL, &d);
  assert_true(a.known & 1U << HOST_ZSWAP);
  assert_true(a.known & 1U << HOST_ZRAM);
  assert_int_equal(a.bytes[HOST_ZSWAP], 30 * MIB);
  assert_int_equal(a.bytes[HOST_ZRAM], 70 * MIB);
}

/* Anonymous memory that is in swap as well counts as the processes', and what
 * nobody maps any more as swap_cache. */
TEST(mapped_swap_cache_counts_once) {
  struct meminfo_sample m = plain();

  m.swap_total_bytes = 8 * GIB;
  m.swap_cached_bytes = 600 * MIB;
  m.active_anon_bytes = 1 * GIB;
  m.inactive_anon_bytes = 3 * GIB; /* AnonPages and Shmem */
  check(&m, NULL, "swap_cache=0");
  m.inactive_anon_bytes += 250 * MIB;
  check(&m, NULL, "swap_cache=250 swap_cache_error=0");
  /* Locked pages may be anonymous: then this much more is unmapped. */
  m.unevictable_bytes = 100 * MIB;
  check(&m, NULL, "swap_cache=350 swap_cache_error=100");
  m.inactive_anon_bytes += 1 * GIB;
  check(&m, NULL, "swap_cache=600");
}

/* --- processes --- */

TEST(members_count_with_their_shmem_and_doubt) {
  struct rollup r = {.known = 1U << ROLLUP_PSS | 1U << ROLLUP_PSS_SHMEM};
  struct host_processes h = {.pss = 0};

  r.bytes[ROLLUP_PSS] = 7 * MIB;
  r.bytes[ROLLUP_PSS_SHMEM] = 2 * MIB;
  host_add_member(&h, &r, (struct error){.common = 3});
  host_add_member(&h, &r, (struct error){.common = 4});
  assert_int_equal(h.pss, 14 * MIB);
  assert_int_equal(h.pss_shmem, 4 * MIB);
  assert_int_equal(error_of_sum(&h.pss_error), 7);
  assert_false(h.lacks_shmem);
  r.known = 1U << ROLLUP_PSS;
  host_add_member(&h, &r, (struct error){.common = 0});
  assert_true(h.lacks_shmem);
}

TEST(outside_is_as_sure_as_the_groups) {
  struct meminfo_sample m = plain();
  struct host_processes h = members(4000 * MIB, 0);
  uint64_t moves = (uint64_t)((double)(4608 * MIB) * HOST_MOVES);
  struct host_account a;

  h.outside_resident = 2000 * MIB;
  a = account(&m, &h, NULL);
  assert_int_equal(a.error[HOST_OUTSIDE], moves);
  error_add(&h.pss_error, (struct error){.common = (double)(50 * MIB)});
  a = account(&m, &h, NULL);
  assert_int_equal(a.error[HOST_OUTSIDE], moves + 50 * MIB);
  /* It cannot be off by more than there is room for. */
  h.outside_resident = 610 * MIB;
  error_add(&h.pss_error, (struct error){.common = (double)(4 * GIB)});
  a = account(&m, &h, NULL);
  assert_int_equal(a.error[HOST_OUTSIDE], 608 * MIB);
  h.outside_resident = 0;
  a = account(&m, &h, NULL);
  assert_int_equal(a.error[HOST_OUTSIDE], 0);
}

/* --- files and shmem --- */

TEST(mapped_shmem_is_at_least_the_part_that_cannot_be_files) {
  struct meminfo_sample m = plain();
  struct host_processes h = members(4608 * MIB, 0);

  m.cached_bytes = 2 * GIB; /* 1 GiB of files, so 512 MiB mapped are shmem */
  check(&m, &h, "tmpfs=512 page_cache=0");
  /* Pages of drivers are mapped, too: nothing of the cache is left. */
  m.mapped_bytes = 3 * GIB;
  check(&m, &h, "tmpfs=0 page_cache=0");
  /* Without Pss_Shmem all of it is in doubt. */
  m = plain();
  h.lacks_shmem = true;
  check(&m, &h, "tmpfs=1024 tmpfs_error=1024");
}

/* --- the sum --- */

/* 12800 and 102 MiB are there, 614 more than memory. */
TEST(too_much_is_cut_where_it_is_least_certain) {
  struct meminfo_sample m = plain();
  struct host_processes h = members(4608 * MIB, 512 * MIB);

  m.mem_total_bytes = 12 * GIB;
  check(&m, &h,
        "unaccounted=0 unaccounted_error=686 page_cache=2386 "
        "page_cache_error=686 free=4096 tmpfs=512");
}

/* What a kernel without some key has of it is unaccounted. */
TEST(missing_keys_make_unknown_parts) {
  struct meminfo_sample m = plain();
  uint64_t rest = account(&m, NULL, NULL).bytes[HOST_UNACCOUNTED];
  struct host_account a;

  m.known = 0;
  m.cached_bytes -= 200 * MIB;
  a = account(&m, NULL, NULL);
  assert_false(a.known & (1U << HOST_PERCPU | 1U << HOST_HUGETLB_USED |
                          1U << HOST_HUGETLB_FREE | 1U << HOST_ZSWAP |
                          1U << HOST_ZRAM | 1U << HOST_SWAP_CACHE));
  assert_true(a.known & 1U << HOST_SLAB_RECLAIMABLE);
  assert_int_equal(a.bytes[HOST_UNACCOUNTED],
                   rest + m.percpu_bytes + 200 * MIB);
}

/* A host whose every page is in one place: the account finds them all. */
TEST(a_host_that_is_known_page_by_page_is_found) {
  draw_begin(5);
  for (int i = 0; i < 20000; i++) {
    uint64_t anon = draw(1 << 20) * PAGE, files = draw(1 << 20) * PAGE;
    uint64_t shmem = draw(1 << 20) * PAGE, cache = draw(1 << 20) * PAGE;
    uint64_t tmpfs = draw(1 << 20) * PAGE, rest = draw(1 << 20) * PAGE;
    uint64_t outside = draw(2) ? draw(anon / PAGE + 1) * PAGE : 0;
    uint64_t unmapped = draw(1 << 16) * PAGE, unused = draw(1 << 20) * PAGE;
    struct meminfo_sample m = {
        .known = plain().known,
        .mem_free_bytes = unused,
        .anon_pages_bytes = anon,
        .mapped_bytes = files + shmem,
        .cached_bytes = files + shmem + cache + tmpfs,
        .shmem_bytes = shmem + tmpfs,
        .swap_total_bytes = GIB,
        .swap_cached_bytes = unmapped + anon / 7,
        .inactive_anon_bytes = anon + shmem + tmpfs + unmapped,
        .mem_total_bytes = unused + anon + files + shmem + cache + tmpfs +
                           unmapped + rest + PAGE};
    struct host_processes h = members(anon + files + shmem - outside, shmem);
    struct host_account a;

    h.outside_resident = 2 * outside;
    a = account(&m, &h, NULL);
    assert_int_equal(a.bytes[HOST_GROUPS], anon + files + shmem);
    assert_int_equal(a.bytes[HOST_PAGE_CACHE], cache);
    assert_int_equal(a.bytes[HOST_TMPFS], tmpfs);
    assert_int_equal(a.bytes[HOST_SWAP_CACHE], unmapped);
    assert_int_equal(a.bytes[HOST_UNACCOUNTED], rest + PAGE);
    assert_int_equal(a.bytes[HOST_OUTSIDE], outside);
    assert_int_equal(a.error[HOST_GROUPS], 0);
    assert_true(a.error[HOST_TMPFS] <= outside);
  }
}

/* --- the numbers that are published --- */

TEST(parts_errors_and_outside_are_published) {
  struct meminfo_sample m = plain();
  struct host_processes h = members(4000 * MIB, 512 * MIB);
  struct host_account a;
  struct host_value v;
  unsigned cursor = 0;
  uint64_t sum = 0;

  h.outside_resident = 100 * MIB;
  a = account(&m, &h, NULL);
  while (host_next(&a, &cursor, &v))
    sum += v.is_part ? v.bytes : 0;
  assert_int_equal(sum, m.mem_total_bytes);
  assert_false(host_next(&a, &cursor, &v));
  check(&m, &h, "groups_error=508 outside=100");
  assert_false(has_value(&a, "zram", &v));
  assert_true(has_value(&a, "groups", &v) && v.is_part);
  assert_true(has_value(&a, "outside", &v) && !v.is_part);
  assert_true(has_value(&a, "outside_error", &v) && !v.is_part);
  assert_false(has_value(&a, "free_error", &v));
  assert_false(has_value(&a, "swap_cache_error", &v));
  m.swap_total_bytes = 1;
  a = account(&m, &h, NULL);
  assert_true(has_value(&a, "swap_cache_error", &v));
}
