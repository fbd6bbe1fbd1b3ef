/* SPDX-License-Identifier: MIT */
/* Compares published values with the truth where statm does not show a change.
 */
#include "test.h"

#include "measured.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, measured_setup, world_teardown, struct world *w)

static struct fake process(uint32_t pid) {
  struct fake f = fake_process(pid, "g");

  f.size = 100000;
  f.private_kb = 8192;
  return f;
}

static void expect_within_error(const struct world *w, double truth_kb) {
  double pss = world_kb(w, "g", "pss"), error = world_kb(w, "g", "pss_error");
  double apart = pss > truth_kb ? pss - truth_kb : truth_kb - pss;

  if (apart > error)
    fail_msg("PSS is published as %.0f kB and is %.0f kB; pss_error is %.0f kB",
             pss, truth_kb, error);
}

/* --- fork --- */

/* A child that has ended and is not waited for shares nothing any more. */
WORLD_TEST(zombies_share_nothing) {
  struct fake parent = process(10), child;

  world_budget_for_one(w);
  parent.private_kb = 1024;
  parent.shared_kb = parent.cow_kb = 65536;
  child = fake_child(&parent, 11);
  world_put(w, parent);
  world_put(w, child);
  measured_group(w, "g");
  for (int i = 0; i < 3; i++)
    world_run(w, 1);
  assert_true(world_kb(w, "g", "pss") == 2 * (1024 + 32768));
  child.state = 'Z';
  child.size = 0;
  world_put(w, child);
  parent.private_kb += parent.cow_kb;
  parent.shared_kb = parent.cow_kb = 0;
  world_put(w, parent);
  for (int i = 0; i < 40; i++) {
    world_run(w, 1);
    assert_int_equal(world_members(w, "g"), 1);
    expect_within_error(w, 1024 + 65536);
    assert_true(world_kb(w, "g", "pss") > 60000);
  }
}

/* The child ends while its parent is read: the reading is without sharing, and
 * was made with a relative. The next child looks like that one. */
WORLD_TEST(another_child_than_at_the_reading_is_doubted) {
  struct fake parent = process(10), child;

  world_budget(w, 0);
  w->settings.policy.max_age_ns = 3600 * NS_PER_S;
  parent.private_kb = 65536;
  child = fake_child(&parent, 11);
  child.private_kb = 100;
  world_put(w, parent);
  world_put(w, child);
  world_group(w, "once", "Comm", "none", NULL, NULL);
  measured_group(w, "g");
  w->settings.rules[1].policy.refresh = REFRESH_ALWAYS;
  world_keep_state(w);
  world_run(w, 1);
  world_run(w, 1);
  proctree_end(&w->tree, 11);
  /* It cannot be read any more. */
  proctree_unlink(&w->tree, "10/smaps_rollup");
  proctree_hang(&w->tree, "10/smaps_rollup");
  world_run(w, 1);
  child = fake_child(&parent, 12);
  child.private_kb = 100;
  world_put(w, child);
  world_run(w, 1);
  world_run(w, 1);
  /* All of the parent may be shared with the new one. */
  expect_within_error(w, 32768 + 100);
  proctree_wake(&w->tree, "10/smaps_rollup");
}

/* --- statm that is not exact --- */

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

  f.private_kb = anon_kb(i, n);
  f.shared_kb = 2048;
  world_put(w, f);
  shown_kb = f.private_kb / CPU_BATCH_KB * CPU_BATCH_KB + f.shared_kb;
  proctree_print(&w->tree, f.pid, "statm", "100000 %u 512 0 0 0 0\n",
                 shown_kb / 4);
}

WORLD_TEST(lag_of_statm_is_in_the_error_and_causes_no_reading) {
  uint64_t reads = 0;

  measured_group(w, "g");
  for (int n = 0; n < 200; n++) {
    double truth = 0;

    for (int i = 0; i < PROCESSES; i++) {
      put_lagging(w, i, n);
      truth += anon_kb(i, n) + 1024;
    }
    world_run(w, 1);
    expect_within_error(w, truth);
    reads += n > 0 ? world_counts(w)->rollup_reads : 0;
  }
  /* Each is read for its age, three or four times. */
  assert_in_range(reads, PROCESSES, 6 * PROCESSES);
}

/* --- swap --- */

static void put_swap(struct world *w, unsigned used_kb) {
  proctree_print(&w->tree, 0, "meminfo",
                 "MemTotal: 1048576 kB\nSwapTotal: %u kB\nSwapFree: %u kB\n",
                 used_kb ? 1000000 : 0, used_kb ? 1000000 - used_kb : 0);
}

static void put_vm_swap(struct world *w, uint32_t pid, unsigned swap_kb) {
  proctree_print(&w->tree, pid, "status", "Uid:\t0\t0\t0\t0\nVmSwap:\t%8u kB\n",
                 swap_kb);
}

WORLD_TEST(nothing_is_swapped_out_after_swapoff) {
  struct fake f = process(10);

  put_swap(w, 500000);
  f.swap_kb = 4096;
  world_put(w, f);
  put_vm_swap(w, 10, 3072); /* the rest is shmem */
  measured_group(w, "g");
  world_run(w, 1);
  assert_true(world_kb(w, "g", "swap") == 4096);
  put_swap(w, 0);
  put_vm_swap(w, 10, 0);
  world_run(w, 1);
  assert_int_equal(world_counts(w)->rollup_reads, 0);
  assert_true(world_kb(w, "g", "swap") == 0);
}

/* Two relatives had it in swap together: SwapPss was half of VmSwap. Then it
 * comes back, and the rollup cannot be read any more. */
static void come_back_from_swap(struct world *w, unsigned truth_kb) {
  struct fake f = process(10);

  put_swap(w, 500000);
  f.private_kb = 1024;
  f.swap_kb = 4096;
  world_put(w, f);
  put_vm_swap(w, 10, 8192);
  w->settings.policy.max_age_ns = NS_PER_S;
  measured_group(w, "g");
  world_run(w, 1);
  world_run(w, 1);
  put_vm_swap(w, 10, 0);
  proctree_print(&w->tree, 10, "statm", "100000 %d 0 0 0 0 0\n",
                 (1024 + 8192) / 4);
  proctree_unlink(&w->tree, "10/smaps_rollup");
  proctree_hang(&w->tree, "10/smaps_rollup");
  world_run(w, 1);
  assert_int_equal(world_counts(w)->rollup_reads, 0);
  expect_within_error(w, truth_kb);
  assert_true(world_kb(w, "g", "swap") == 0);
  proctree_wake(&w->tree, "10/smaps_rollup");
}

WORLD_TEST(memory_from_swap_may_be_shared) {
  come_back_from_swap(w, 1024 + 4096);
}

WORLD_TEST(memory_from_swap_may_be_private) {
  come_back_from_swap(w, 1024 + 8192);
}
