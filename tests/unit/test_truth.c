/* What is published beside what is true, where statm does not tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

static int make(void **state) {
  static struct world w;

  world_make(&w);
  w.settings.policy.refresh = REFRESH_ADAPTIVE;
  *state = &w;
  return 0;
}

static int unmake(void **state) {
  world_remove(*state);
  return 0;
}

static struct fake process(uint32_t pid) {
  return (struct fake){.pid = pid,
                       .ppid = 1,
                       .comm = "g",
                       .starttime = 100 + pid,
                       .start_stack = 0x7ff000000000 + pid * 0x100000UL,
                       .size = 100000,
                       .private_kb = 8192};
}

static struct fake child_of(const struct fake *parent, uint32_t pid) {
  struct fake f = *parent;

  f.pid = pid;
  f.ppid = parent->pid;
  f.starttime = 100 + pid;
  return f;
}

static void put(struct world *w, struct fake f) { proctree_put(&w->tree, &f); }

static void put_text(struct world *w, uint32_t pid, const char *file,
                     const char *text) {
  char path[64];

  snprintf(path, sizeof(path), "%u/%s", pid, file);
  proctree_write(&w->tree, path, text, strlen(text));
}

static double kb(const struct world *w, const char *metric) {
  return world_value(w, "g", metric) / 1024;
}

static void cycle(struct world *w) { assert_int_equal(world_cycle(w, 1), 0); }

static void expect_within_error(const struct world *w, double truth_kb) {
  double pss = kb(w, "pss"), error = kb(w, "pss_error");
  double apart = pss > truth_kb ? pss - truth_kb : truth_kb - pss;

  if (apart > error)
    fail_msg("PSS is published as %.0f kB and is %.0f kB; pss_error is %.0f kB",
             pss, truth_kb, error);
}

static void group(struct world *w) {
  world_group(w, "g", "Comm", "g", NULL, NULL);
}

/* --- fork ------------------------------------------------------------------
 */

/* A child that has ended and is not waited for shares nothing any more. */
static void zombies_share_nothing(void **state) {
  struct world *w = *state;
  struct fake parent = process(10), child;

  w->settings.read_budget_ns = 1; /* one reading an interval */
  parent.private_kb = 1024;
  parent.shared_kb = parent.cow_kb = 65536;
  child = child_of(&parent, 11);
  put(w, parent);
  put(w, child);
  group(w);
  for (int i = 0; i < 3; i++)
    cycle(w);
  assert_true(kb(w, "pss") == 2 * (1024 + 32768));
  child.state = 'Z';
  child.size = 0;
  put(w, child);
  parent.private_kb += parent.cow_kb;
  parent.shared_kb = parent.cow_kb = 0;
  put(w, parent);
  for (int i = 0; i < 40; i++) {
    cycle(w);
    assert_int_equal(world_members(w, "g"), 1);
    expect_within_error(w, 1024 + 65536);
    assert_true(kb(w, "pss") > 60000);
  }
}

/* The child ends while its parent is read: the reading is without sharing, and
 * was made with a relative. The next child looks like that one. */
static void another_child_than_at_the_reading_is_doubted(void **state) {
  struct world *w = *state;
  struct fake parent = process(10), child;

  w->settings.read_budget_ns = 0;
  w->settings.policy.max_age_ns = 3600 * NS_PER_S;
  parent.private_kb = 65536;
  child = child_of(&parent, 11);
  child.private_kb = 100;
  put(w, parent);
  put(w, child);
  world_group(w, "once", "Comm", "none", NULL, NULL);
  group(w);
  w->settings.rules[1].policy.refresh = REFRESH_ALWAYS;
  world_keep_state(w);
  cycle(w);
  cycle(w);
  proctree_end(&w->tree, 11);
  /* It cannot be read any more. */
  proctree_unlink(&w->tree, "10/smaps_rollup");
  proctree_hang(&w->tree, "10/smaps_rollup");
  cycle(w);
  child = child_of(&parent, 12);
  child.private_kb = 100;
  put(w, child);
  cycle(w);
  cycle(w);
  /* All of the parent may be shared with the new one. */
  expect_within_error(w, 32768 + 100);
  proctree_wake(&w->tree, "10/smaps_rollup");
}

/* --- statm that is not exact -----------------------------------------------
 */

#define PROCESSES 40
#define CPU_BATCH_KB 128

/* Each has so much at the n-th look. */
static unsigned anon_kb(int i, int n) {
  return 8192 + 4 * (unsigned)((i * 37 + n * (i % 5) * 11) % 200);
}

/* As a per-CPU counter does, statm lags behind by less than a batch. */
static void put_lagging(struct world *w, int i, int n) {
  struct fake f = process(100 + (uint32_t)i);
  unsigned shown_kb;
  char text[128];

  f.private_kb = anon_kb(i, n);
  f.shared_kb = 2048;
  put(w, f);
  shown_kb = f.private_kb / CPU_BATCH_KB * CPU_BATCH_KB + f.shared_kb;
  snprintf(text, sizeof(text), "100000 %u 512 0 0 0 0\n", shown_kb / 4);
  put_text(w, f.pid, "statm", text);
}

static void
what_statm_lags_behind_is_in_the_error_and_no_reading(void **state) {
  struct world *w = *state;
  uint64_t reads = 0;

  group(w);
  for (int n = 0; n < 200; n++) {
    double truth = 0;

    for (int i = 0; i < PROCESSES; i++) {
      put_lagging(w, i, n);
      truth += anon_kb(i, n) + 1024;
    }
    cycle(w);
    expect_within_error(w, truth);
    reads += n > 0 ? collector_counts(w->collector)->rollup_reads : 0;
  }
  /* Each is read for its age, three or four times. */
  assert_in_range(reads, PROCESSES, 6 * PROCESSES);
}

static void where_statm_is_exact_the_error_is_what_it_was(void **state) {
  struct world *w = *state;

  group(w);
  for (uint32_t i = 0; i < PROCESSES; i++)
    put(w, process(100 + i));
  cycle(w);
  cycle(w);
  assert_true(kb(w, "pss_error") == 0);
}

/* --- swap ------------------------------------------------------------------
 */

static void put_swap(struct world *w, unsigned used_kb) {
  char text[128];

  snprintf(text, sizeof(text),
           "MemTotal: 1048576 kB\nSwapTotal: %u kB\nSwapFree: %u kB\n",
           used_kb ? 1000000 : 0, used_kb ? 1000000 - used_kb : 0);
  proctree_write(&w->tree, "meminfo", text, strlen(text));
}

static void put_vm_swap(struct world *w, uint32_t pid, unsigned swap_kb) {
  char text[128];

  snprintf(text, sizeof(text), "Uid:\t0\t0\t0\t0\nVmSwap:\t%8u kB\n", swap_kb);
  put_text(w, pid, "status", text);
}

static void nothing_is_swapped_out_after_swapoff(void **state) {
  struct world *w = *state;
  struct fake f = process(10);

  put_swap(w, 500000);
  f.swap_kb = 4096;
  put(w, f);
  put_vm_swap(w, 10, 3072); /* the rest is shmem */
  group(w);
  cycle(w);
  assert_true(kb(w, "swap") == 4096);
  put_swap(w, 0);
  put_vm_swap(w, 10, 0);
  cycle(w);
  assert_int_equal(collector_counts(w->collector)->rollup_reads, 0);
  assert_true(kb(w, "swap") == 0);
  assert_true(world_value(w, "g", "swap_total") == 0);
}

/* Two relatives had it in swap together: SwapPss was half of VmSwap. Then it
 * comes back, and the rollup cannot be read any more. */
static void come_back_from_swap(struct world *w, unsigned truth_kb) {
  struct fake f = process(10);
  char statm[64];

  put_swap(w, 500000);
  f.private_kb = 1024;
  f.swap_kb = 4096;
  put(w, f);
  put_vm_swap(w, 10, 8192);
  w->settings.policy.max_age_ns = NS_PER_S;
  group(w);
  cycle(w);
  cycle(w);
  put_vm_swap(w, 10, 0);
  snprintf(statm, sizeof(statm), "100000 %u 0 0 0 0 0\n", (1024 + 8192) / 4);
  put_text(w, 10, "statm", statm);
  proctree_unlink(&w->tree, "10/smaps_rollup");
  proctree_hang(&w->tree, "10/smaps_rollup");
  cycle(w);
  assert_int_equal(collector_counts(w->collector)->rollup_reads, 0);
  expect_within_error(w, truth_kb);
  assert_true(kb(w, "swap") == 0);
  proctree_wake(&w->tree, "10/smaps_rollup");
}

static void what_comes_back_from_swap_may_be_shared(void **state) {
  come_back_from_swap(*state, 1024 + 4096);
}

static void what_comes_back_from_swap_may_be_its_own(void **state) {
  come_back_from_swap(*state, 1024 + 8192);
}

/* --- refresh "always" ------------------------------------------------------
 */

/* The last reading stands in for one that hangs: as an estimate. */
static void a_reading_that_hangs_has_an_error_where_all_are_read(void **state) {
  struct world *w = *state;
  struct fake f = process(10);
  double error = 0;

  f.private_kb = 1024;
  f.shared_kb = 65536;
  w->settings.policy.refresh = REFRESH_ALWAYS;
  w->settings.stall_timeout_ns = NS_PER_S / 10;
  world_keep_state(w);
  put(w, f);
  group(w);
  cycle(w);
  assert_true(kb(w, "pss_error") == 0);
  proctree_unlink(&w->tree, "10/smaps_rollup");
  proctree_hang(&w->tree, "10/smaps_rollup");
  for (int i = 0; i < 3; i++) {
    cycle(w);
    assert_true(world_value(w, "g", "coverage") == 0);
    assert_true(kb(w, "pss_error") > error);
    error = kb(w, "pss_error");
  }
  proctree_wake(&w->tree, "10/smaps_rollup");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(zombies_share_nothing),
      TEST(another_child_than_at_the_reading_is_doubted),
      TEST(what_statm_lags_behind_is_in_the_error_and_no_reading),
      TEST(where_statm_is_exact_the_error_is_what_it_was),
      TEST(nothing_is_swapped_out_after_swapoff),
      TEST(what_comes_back_from_swap_may_be_shared),
      TEST(what_comes_back_from_swap_may_be_its_own),
      TEST(a_reading_that_hangs_has_an_error_where_all_are_read),
  };

  alarm(300); /* what waits in vain fails */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
