/* SPDX-License-Identifier: MIT */
/* The cycle while reads of a process hang, or cannot be made. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collected.h"

static int make(void **state) {
  struct world *w;

  collected_setup(state);
  w = *state;
  w->settings.read_timeout_ns = 100 * NS_PER_MS;
  return 0;
}

#define HANG_TEST(name)                                                        \
  TEST_WITH(name, make, collected_teardown, struct world *w)

static const struct diag *hung(const struct world *w) {
  return world_diag(w, DIAG_HUNG);
}

/* Without a name it is in no group, and may be in that which goes by names that
 * cannot be read; of one that is known before, nothing is lost. */
HANG_TEST(process_that_hangs_at_first_sight_is_in_no_group) {
  static const char *const files[] = {"stat", "cmdline"};

  world_put(w, collected_process(10, "a"));
  world_group(w, "g", "CommandLine", "thing*", NULL, NULL);
  world_group(w, "named", "Comm", "c", NULL, NULL);
  for (uint32_t i = 0; i < 2; i++) {
    char path[32];

    world_put(w, collected_process(20, "b"));
    snprintf(path, sizeof(path), "20/%s", files[i]);
    proctree_hang(&w->tree, path);
    world_expect(w, 1, "g", "ps_count=nan rss=140k pss=120k pss_error=140k");
    world_assert(w, "named", "ps_count=0 pss_error=0");
    assert_int_equal(world_counts(w)->hung, 1);
    assert_int_equal(hung(w)->pid, 20);
    assert_string_equal(hung(w)->comm, "b");
    assert_string_equal(hung(w)->file, files[i]);
    assert_int_equal(world_counts(w)->processes, 2);
    proctree_wake(&w->tree, path);
    world_put(w, collected_process(20, "b"));
    world_run_until_none_hangs(w);
    assert_true(collected_is_whole(w, 2));
    proctree_end(&w->tree, 20);
    world_run(w, 1);
  }
}

/* From now on a file of each of n processes, from 10 on, hangs. */
static void hang(struct world *w, uint32_t n, const char *file) {
  char path[32];

  for (uint32_t pid = 10; pid < 10 + n; pid++) {
    snprintf(path, sizeof(path), "%u/%s", pid, file);
    world_put(w, collected_process(pid, "a"));
    proctree_hang(&w->tree, path);
  }
}

/* And does not any more. */
static void let_go(struct world *w, uint32_t n, const char *file) {
  char path[32];

  for (uint32_t pid = 10; pid < 10 + n; pid++) {
    snprintf(path, sizeof(path), "%u/%s", pid, file);
    proctree_release(&w->tree, path);
    world_put(w, collected_process(pid, "a"));
  }
}

static uint64_t unidentified(const struct world *w) {
  return world_counts(w)->unidentified;
}

/* Whether a group that is named in the configuration is published as one of
 * which nothing is known. */
static bool is_not_known(const struct world *w, const char *group) {
  return isnan(world_value(w, group, "ps_count")) &&
         isnan(world_value(w, group, "pss")) &&
         isnan(world_value(w, group, "resident")) &&
         isnan(world_value(w, group, "unreadable"));
}

/* Its known values may belong to the program before, or to the process that had
 * its pid: it is in the sums of neither group, and neither is known to be empty
 * for sure. */
HANG_TEST(process_that_may_have_called_exec_is_unknown) {
  static const char *const failing[] = {"stat", "cmdline"};

  world_put(w,
            collected_process(1, "init")); /* an empty tree is no proc tree */
  world_group(w, "sh", "Comm", "sh", "CommandLineMatch", ".");
  world_group(w, "g", "Comm", "g", NULL, NULL);
  for (uint32_t i = 0; i < 2; i++) {
    struct fake f = collected_process(10 + i, "sh");

    world_put(w, f);
    world_run(w, 1);
    world_expect(w, 1, "g", "ps_count=0");
    f.comm = "g";
    f.text += 7;
    f.size += 1000;
    f.start_stack += 0x10000;
    world_put(w, f);
    opens_refuse(failing[i], EMFILE);
    for (int n = 0; n < 5; n++) {
      world_run(w, 1);
      assert_int_equal(unidentified(w), 1);
      assert_true(is_not_known(w, "g"));
    }
    opens.failing = NULL;
    world_expect(w, 1, "g", "ps_count=1");
    world_assert(w, "sh", "ps_count=0");
    proctree_end(&w->tree, f.pid);
    world_run(w, 1);
  }
}

/* Its statm is that of a zombie; its threads live on. */
HANG_TEST(dead_main_thread_that_cannot_be_inspected_is_alive) {
  enum { WORKERS = 4 };
  struct fake f = collected_process(90, "g");

  world_group(w, "g", "Comm", "g", NULL, NULL);
  f.threads = 3;
  world_put(w, f);
  world_run(w, 0);
  world_run(w, 1);
  hang(w, WORKERS, "stat");
  world_run_hung(w, 1, WORKERS);
  f.state = 'Z';
  world_put(w, f);
  f.pid = 91; /* is not known either */
  world_put(w, f);
  f.pid = 92;
  f.threads = 1;
  world_put(w, f);
  world_expect(w, 1, "g", "ps_count=nan pss=nan");
  assert_int_equal(unidentified(w), WORKERS + 1);
  let_go(w, WORKERS, "stat");
}

HANG_TEST(known_process_whose_stat_hangs_stays_a_member) {
  struct fake f = collected_process(10, "a");

  world_start(w, f);
  world_run(w, 1);
  f.private_kb += 400; /* which changes the size, so that stat is asked */
  world_put(w, f);
  proctree_hang(&w->tree, "10/stat");
  for (int i = 0; i < 3; i++) {
    world_run_hung(w, 1, 1);
    world_assert(w, "g", "resident=540k ps_count=1 unreadable=0");
  }
  /* It ends all the same, for what cannot hang. */
  proctree_write(&w->tree, "10/statm", "0 0 0 0 0 0 0\n", 14);
  world_run_hung(w, 1, 0);
  assert_int_equal(world_members(w, "g"), 0);
  proctree_wake(&w->tree, "10/stat");
  world_put(w, f);
  do
    world_run(w, 1);
  while (world_members(w, "g") == 0);
}

/* Its groups are not known until it may be read again. Its size is the same. */
HANG_TEST(hung_process_is_unidentified_after_an_exec) {
  struct fake f = collected_process(10, "a");

  world_put(w, f);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_run(w, 0);
  world_run(w, 1);
  proctree_hang(&w->tree, "10/smaps_rollup");
  world_run_hung(w, 1, 1);
  assert_int_equal(unidentified(w), 0);
  proctree_rename(&w->tree, "10/smaps_rollup", "fifo");
  f.comm = "g";
  f.start_stack += 0x1000;
  world_put(w, f);
  for (int i = 0; i < 2; i++) {
    world_run_hung(w, 0, 1);
    assert_int_equal(unidentified(w), 1);
  }
  proctree_wake(&w->tree, "fifo");
  world_run_until_none_hangs(w);
  assert_true(collected_is_whole(w, 1));
}

HANG_TEST(another_process_with_the_pid_of_a_hung_one_is_read_at_once) {
  struct fake f = collected_process(10, "a");

  world_put(w, collected_process(1, "init"));
  world_put(w, f);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_run(w, 1);
  proctree_hang(&w->tree, "10/smaps_rollup");
  world_run_hung(w, 1, 1);
  proctree_rename(&w->tree, "10/smaps_rollup", "fifo");
  proctree_end(&w->tree, 10);
  f.comm = "b";
  f.starttime++;
  world_put(w, f);
  world_run(w, 0);
  world_assert(w, "b", "ps_count=1 pss=120k coverage=100");
  assert_int_equal(world_counts(w)->hung, 0);
  proctree_wake(&w->tree, "fifo");
  world_run_until_none_hangs(w);
}

/* Six files hang, and four may. The other two are not tried, and neither is a
 * process that is well. */
HANG_TEST(when_all_readers_hang_statm_alone_is_read) {
  enum { HANGING = 6, WORKERS = 4 };

  for (uint32_t i = 0; i < HANGING; i++)
    world_put(w, collected_process(10 + i, "a"));
  world_put(w, collected_process(90, "g"));
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_run(w, 0);
  world_run(w, 1);
  hang(w, HANGING, "smaps_rollup");
  for (int i = 0; i < 2; i++) {
    world_run_hung(w, 1, WORKERS);
    assert_int_equal(hung(w)->count, i == 0 ? WORKERS : 0);
    assert_int_equal(world_diag(w, DIAG_READERS_HUNG)->count, 4);
    assert_int_equal(world_counts(w)->deferred, HANGING - WORKERS + 1);
    assert_true(world_kb(w, "a", "resident") == 140 * HANGING);
    world_assert(w, "g", "resident=140k coverage=0");
    assert_true(world_kb(w, "g", "pss") > 0);
  }
  let_go(w, HANGING, "smaps_rollup");
  world_run_until_none_hangs(w);
  assert_true(world_kb(w, "a", "pss") == 120 * HANGING);
  assert_true(collected_is_whole(w, 1));
  assert_int_equal(world_diag(w, DIAG_READERS_HUNG)->count, 0);
}

HANG_TEST(last_reader_is_for_processes_that_are_well) {
  enum { HANGING = 6 };
  static const char blocked[] = "State:\tD (disk sleep)\nThreads:\t1\n";

  world_put(w, collected_process(90, "g"));
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  w->settings.policy.refresh = REFRESH_ALWAYS;
  hang(w, HANGING, "smaps_rollup");
  for (uint32_t i = 0; i < HANGING; i++)
    proctree_print(&w->tree, 10 + i, "status", "%s", blocked);
  world_run_hung(w, 0, HANGING);
  assert_int_equal(world_diag(w, DIAG_READERS_HUNG)->count, 0);
  world_assert(w, "g", "pss=120k coverage=100");
  let_go(w, HANGING, "smaps_rollup");
  world_run_until_none_hangs(w);
  assert_true(world_kb(w, "a", "pss") == 120 * HANGING);
}
