/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "proctree.h"
#include "read/reader.h"
#include "read/rollup_reader.h"

/* The reading of rollups is in test_reader.c; here is what its thread alone
 * sees. */

static uint64_t clock_ns(void) { return 1; }

#define TREE_TEST(name)                                                        \
  TEST_WITH(name, proctree_setup, proctree_teardown, struct proctree *tree)

/* Those who watch see that it goes on: the list may be long. */
TREE_TEST(counting_mappings_shows_progress) {
  static const struct fake_range ranges[] = {{PAGE, 2 * PAGE, NULL, NULL},
                                             {3 * PAGE, 5 * PAGE, NULL, NULL}};
  const struct fake fake = fake_process(10, "giant");
  const struct proc_ref ref = {.pid = 10, .starttime_ticks = 110};
  struct read_job job = {.kind = READ_ROLLUP};
  atomic_uint heartbeat = 0;
  struct rollup_reader reader = {
      .pages = {.clock_ns = clock_ns, .heartbeat = &heartbeat},
      .clock_ns = clock_ns};

  proctree_put(tree, &fake);
  fake_pages_map(tree, 10, ranges, LENGTH(ranges));
  assert_int_equal(procfs_new(tree->root, &reader.pages.procfs), 0);
  rollup_reader_run(&reader, &ref, &job);
  assert_int_equal(job.result, 0);
  assert_int_equal(atomic_load(&heartbeat), 0);
  job.mappings_most = 2;
  rollup_reader_run(&reader, &ref, &job);
  assert_int_equal(job.result, 0);
  assert_int_equal(atomic_load(&heartbeat), 1);
  job.mappings_most = 1;
  rollup_reader_run(&reader, &ref, &job);
  assert_int_equal(job.result, READ_TOO_LONG);
  assert_int_equal(atomic_load(&heartbeat), 2);
  procfs_free(reader.pages.procfs);
}

/* maps is read if it is wanted, and if there is enough of shmem. Without a
 * whole maps nothing is known. */
TREE_TEST(mappings_of_shmem_are_read_where_they_are_wanted) {
  static const struct fake_range ranges[] = {
      {PAGE, 3 * PAGE, "rw-s", "/memfd:x (deleted)"}};
  static const struct {
    unsigned shmem_kb;
    bool is_wanted, is_whole, is_known;
  } cases[] = {{256, true, true, true},
               {255, true, true, false},
               {256, false, true, false},
               {256, true, false, false}};
  const struct fake any = fake_process(10, "g");
  const struct proc_ref ref = {.pid = 10, .starttime_ticks = 110};
  atomic_uint heartbeat = 0;
  struct rollup_reader reader = {
      .pages = {.clock_ns = clock_ns, .heartbeat = &heartbeat},
      .clock_ns = clock_ns};

  proctree_put(tree, &any);
  assert_int_equal(procfs_new(tree->root, &reader.pages.procfs), 0);
  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct fake fake = any;
    struct read_job job = {.kind = READ_ROLLUP,
                           .wants_shmem = cases[i].is_wanted};

    fake.shared_kb = 1024;
    fake.shmem_kb = cases[i].shmem_kb;
    proctree_put(tree, &fake);
    fake_pages_map(tree, 10, ranges, LENGTH(ranges));
    if (!cases[i].is_whole)
      proctree_print(tree, 10, "maps", "1000-3000 rw-s x\nnonsense\n");
    rollup_reader_run(&reader, &ref, &job);
    assert_int_equal(job.result, 0);
    assert_int_equal(job.rollup.has_shmem, cases[i].is_known);
    if (cases[i].is_known)
      assert_int_equal(job.rollup.shmem.passed, 2 * PAGE);
  }
  procfs_free(reader.pages.procfs);
}
