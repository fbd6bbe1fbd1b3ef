/* SPDX-License-Identifier: MIT */
/* The cycle from a proc tree to sums, and what can happen on the way. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collected.h"
#include "parsed.h"

/* --- the life of processes --- */

static struct world *stage;

static void victim_ends(void) { proctree_end(&stage->tree, 20); }

/* Another process, of another group, has the pid. The directory is made aside,
 * because a file system, unlike proc, may use an inode number again at once. */
static void victim_is_replaced(void) {
  struct fake other = collected_process(20, "other");
  char from[80], to[80];

  other.pid = 21;
  other.private_kb = 5000;
  other.starttime = 1000000;
  other.cmdline = "another";
  world_put(stage, other);
  proctree_end(&stage->tree, 20);
  snprintf(from, sizeof(from), "%s/21", stage->tree.root);
  snprintf(to, sizeof(to), "%s/20", stage->tree.root);
  assert_int_equal(rename(from, to), 0);
}

/* Lets it happen before the first call of openat in a cycle, before the second,
 * and so on; the group has to be whole all the time, or in the next cycle if
 * the pid has come to another process while the first one was read. */
static void happen_everywhere(struct world *w, void (*happen)(void)) {
  bool is_through = false;

  stage = w;
  world_group(w, "g", "CommandLine", "thing*", "User", "*");
  world_group(w, "%{unit}%{exe}", "Cgroup", "*", NULL, NULL);
  world_put(w, collected_process(10, "a"));
  world_run(w, 0);
  for (unsigned k = 1; !is_through; k++) {
    struct fake victim = collected_process(20, "victim");

    victim.starttime += k;
    world_put(w, victim);
    opens.happen = happen;
    opens.calls = 0;
    opens.happens_before = k;
    world_run(w, 1);
    is_through = opens.happens_before != 0;
    opens.happens_before = 0;
    assert_true(!is_through || k > 9);
    assert_true(happen == victim_is_replaced || collected_is_whole(w, 1) ||
                collected_is_whole(w, 2));
    proctree_end(&w->tree, 20);
    collected_expect_whole(w, 1, 1);
    for (int t = 0; t < DIAGS; t++)
      assert_int_equal(world_diag(w, (enum diag_kind)t)->count, 0);
  }
}

WORLD_TEST(process_may_end_between_any_two_reads) {
  happen_everywhere(w, victim_ends);
}

WORLD_TEST(pid_may_come_to_another_between_any_two_reads) {
  happen_everywhere(w, victim_is_replaced);
}

/* --- names --- */

/* Each attempt may cost a line in an audit log. */
WORLD_TEST(refused_executable_is_tried_twice_an_exec) {
  struct fake f = collected_process(16, "a");

  f.start_stack = 0;
  world_put(w, f);
  world_group(w, "g", "Executable", "/usr/bin/thing", NULL, NULL);
  opens.refused_link = "exe";
  opens.refused = 0;
  world_run_times(w, 110, 60);
  assert_int_equal(opens.refused, 2);
  opens.refused_link = NULL;
  f.comm = "b";
  f.size = 999;
  world_put(w, f);
  world_run(w, 1);
  assert_int_equal(world_members(w, "g"), 1);
}

/* --- what cannot be read --- */

WORLD_TEST(refused_rollup_leaves_the_other_values_known) {
  world_watch(w, collected_process(10, "a"));
  opens_refuse("smaps_rollup", EACCES);
  world_expect(w, 0, "g",
               "pss=nan uss=nan private_dirty=nan age=nan pss_error=nan "
               "resident=140k ps_count=1 unreadable=1 coverage=0");
  assert_int_equal(world_counts(w)->denied, 1);
  assert_int_equal(world_diag(w, DIAG_ROLLUP_DENIED)->pid, 10);
}

WORLD_TEST(refused_rollup_is_tried_again_after_an_hour_or_an_exec) {
  struct fake f = collected_process(10, "a");

  world_watch(w, f);
  opens.counted = "smaps_rollup";
  opens_refuse("smaps_rollup", EACCES);
  world_run(w, 0);
  world_run(w, 10);
  world_run(w, 3000);
  assert_int_equal(opens.opened, 1);
  assert_int_equal(world_counts(w)->denied, 1);
  world_run(w, 1000);
  assert_int_equal(opens.opened, 2);
  f.comm = "b";
  f.size = 999;
  f.start_stack += 0x1000;
  world_put(w, f);
  opens.failing = NULL;
  world_run(w, 10);
  assert_int_equal(opens.opened, 3);
  assert_true(collected_is_whole(w, 1));
}

WORLD_TEST(member_whose_statm_fails_makes_statm_values_unknown) {
  world_start(w, collected_process(10, "a"));
  opens_refuse("statm", EMFILE);
  world_expect(w, 1, "g", "resident=nan pss=nan ps_count=1");
  assert_int_equal(world_diag(w, DIAG_FAILED)->error, EMFILE);
  opens.failing = NULL;
  collected_expect_whole(w, 1, 1);
}

WORLD_TEST(hidden_process_is_counted_as_denied) {
  world_watch(w, collected_process(10, "a"));
  opens_refuse("stat", EPERM);
  world_run(w, 0);
  assert_int_equal(world_counts(w)->denied, 1);
  assert_int_equal(world_members(w, "g"), 0);
}

/* A snapshot can do without it. */
WORLD_TEST(refused_executable_is_reported_if_a_rule_uses_it) {
  world_watch(w, collected_process(10, "a"));
  world_keep_state(w);
  opens.refused_link = "exe";
  world_run(w, 0);
  assert_int_equal(world_diag(w, DIAG_EXECUTABLE_DENIED)->count, 0);
  assert_true(collected_is_whole(w, 1));
  world_stop(w);
  world_group(w, "h", "Executable", "/usr/bin/thing", NULL, NULL);
  world_run(w, 0);
  assert_int_equal(world_diag(w, DIAG_EXECUTABLE_DENIED)->count, 1);
  assert_int_equal(world_diag(w, DIAG_EXECUTABLE_DENIED)->pid, 10);
}

WORLD_TEST(kernel_without_rollups_differs_from_a_process_that_ended) {
  world_make_own(w);
  world_watch(w, collected_process(10, "a"));
  proctree_unlink(&w->tree, "10/smaps_rollup");
  world_run(w, 0);
  assert_int_equal(world_counts(w)->vanished, 0);
  assert_int_equal(world_diag(w, DIAG_NO_ROLLUP)->count, 1);
  world_assert(w, "g", "pss=nan resident=140k");
}

/* Before and after another one was read. */
WORLD_TEST(what_a_captured_tree_lacks_was_unreadable) {
  static const char *const missing[] = {"10", "11"};

  world_group(w, "a", "Comm", "a", NULL, NULL);
  world_group(w, "b", "Comm", "b", NULL, NULL);
  for (size_t i = 0; i < LENGTH(missing); i++) {
    char path[32];

    world_put(w, collected_process(10, "a"));
    world_put(w, collected_process(11, "b"));
    snprintf(path, sizeof(path), "%s/smaps_rollup", missing[i]);
    proctree_unlink(&w->tree, path);
    world_run(w, 0);
    world_run(w, 10);
    assert_int_equal(world_counts(w)->vanished, 0);
    assert_int_equal(world_diag(w, DIAG_NO_ROLLUP)->count, 0);
    assert_int_equal(world_counts(w)->denied, 1);
    assert_true(collector_results(w->collector)->is_captured);
    world_assert(w, i ? "b" : "a", "pss=nan resident=140k unreadable=1");
    world_assert(w, i ? "a" : "b", "pss=120k unreadable=0");
    world_stop(w);
  }
}

WORLD_TEST(an_executable_that_a_captured_tree_lacks_is_reported) {
  struct fake f = collected_process(10, "thing");

  f.exe = NULL;
  world_put(w, f);
  world_group(w, "h", "Executable", "/usr/bin/thing", NULL, NULL);
  world_run(w, 0);
  assert_int_equal(world_diag(w, DIAG_EXECUTABLE_DENIED)->count, 1);
}

WORLD_TEST(a_tree_without_processes_fails_until_it_has_some) {
  world_start(w, collected_process(10, "a"));
  proctree_unlink(&w->tree, "10");
  assert_true(world_cycle(w, 10) < 0);
  assert_true(world_cycle(w, 10) < 0);
  world_put(w, collected_process(20, "a"));
  world_put(w, collected_process(21, "a"));
  collected_expect_whole(w, 10, 2);
  proctree_unlink(&w->tree, "");
  world_put(w,
            collected_process(20, "a")); /* in another directory of that name */
  assert_true(world_cycle(w, 10) < 0);
}

/* --- what it is made of --- */

static void make_settings(struct world *w) {
  struct config_error reason;

  world_group(w, "g", "Comm", "*", NULL, NULL);
  assert_int_equal(settings_set_proc_root(&w->settings, w->tree.root, &reason),
                   0);
  assert_int_equal(settings_finish(&w->settings), 0);
}

WORLD_TEST(without_hooks_the_clock_is_the_systems) {
  static const struct collector_hooks nothing = {.clock_ns = NULL};

  world_put(w, collected_process(10, "a"));
  make_settings(w);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(
        collector_new(&w->settings, i ? &nothing : NULL, &w->collector), 0);
    assert_int_equal(collector_cycle(w->collector), 0);
    assert_true(collected_is_whole(w, 1));
    assert_true(world_counts(w)->cycle_ns > 0);
    world_stop(w);
  }
}

WORLD_TEST(collector_is_not_made_without_a_tree) {
  struct collector *c = NULL;

  world_put(w, collected_process(10, "a"));
  make_settings(w);
  proctree_end(&w->tree, 10);
  assert_int_equal(collector_new(&w->settings, NULL, &c), -ENOTTY);
  assert_null(c);
}

WORLD_TEST(a_snapshot_of_the_last_cycle_is_made_in_memory) {
  char *text;
  size_t len;

  w->settings.has_snapshots = true;
  world_watch(w, collected_process(10, "a"));
  world_run(w, 10);
  world_put(w, collected_process(11, "late"));
  world_run(w, 10);
  assert_int_equal(collector_snapshot(w->collector, &text, &len), 0);
  assert_null(memchr(text, '\0', len));
  assert_non_null(memmem(text, len, TEXT("\"late\"")));
  assert_non_null(memmem(text, len, TEXT("\"processes\":2")));
  free(text);
  world_stop(w);
  assert_int_equal(world_n_written(), 0);
}

/* --- documents --- */

WORLD_TEST(the_time_of_day_stamps_documents_and_decides_nothing) {
  static const int64_t steps_s[] = {0, 5 * 3600, -9 * 3600, 1};

  for (size_t i = 0; i < LENGTH(steps_s); i++) {
    int64_t time = (int64_t)(WORLD_WALL_NS / NS);
    size_t n = 0;

    world_remove(w);
    world_make(w);
    w->settings.interval_ns = 10 * NS;
    world_keep_state(w);
    world_keep_captures(w);
    world_put_mapped(w, collected_process(10, "a"), NULL);
    world_group(w, "g", "Comm", "*", NULL, NULL);
    for (unsigned seconds = 0; seconds <= 310; seconds += 10) {
      parsed d;

      if (seconds > 0)
        world_raise(w, "g");
      world_step(steps_s[i]);
      time += steps_s[i];
      world_run(w, 10);
      /* A state is written each minute; a group that is captured cools down for
       * five. */
      if (seconds % 60 != 0 && seconds % 300 != 10)
        continue;
      d = parsed_file(world_written(n)->path);
      assert_int_equal(world_written(n++)->error, 0);
      assert_int_equal((int64_t)parsed_decimal(d, "time"), time + seconds);
      parsed_free(d);
    }
    world_stop(w);
    assert_int_equal(world_n_written(), n + 1); /* with the state of the end */
  }
}

/* --- the mappings of one process, read on demand between cycles --- */

static int look_at(struct world *w, uint32_t pid, parsed *ret) {
  char *text;
  size_t len;
  int rc = collector_close_up(w->collector, pid, &text, &len);

  if (rc == 0) {
    *ret = parsed_text(text, len);
    free(text);
  }
  return rc;
}

WORLD_TEST(a_close_up_has_the_mappings_of_one_process_or_the_reason) {
  parsed d = NULL;

  w->settings.read_timeout_ns = 100 * NS_PER_MS;
  w->settings.has_snapshots = true;
  world_put_mapped(w, collected_process(10, "a"), "/data");
  world_put_mapped(w, collected_process(11, "a"), "/data");
  world_group(w, "g", "Comm", "*", NULL, NULL);
  world_run(w, 0);
  assert_int_equal(look_at(w, 11, &d), 0);
  assert_int_equal(parsed_count(d, "processes"), 1);
  parsed_assert(d, "processes.0.pid=11 processes.0.mappings_from=smaps "
                   "processes.0.mappings.0.name=/data "
                   "processes.0.mappings.0.pss=100k");
  parsed_free(d);
  /* It does not count as a cycle, and the next cycle is as ever. */
  collected_expect_whole(w, 1, 2);
  assert_int_equal(look_at(w, 99, &d), -ESRCH);
  opens_refuse("smaps", EACCES);
  assert_int_equal(look_at(w, 10, &d), -EACCES);
  opens_refuse("smaps", ESRCH);
  assert_int_equal(look_at(w, 10, &d), -ESRCH);
  opens.failing = NULL;
  proctree_hang(&w->tree, "10/smaps");
  assert_int_equal(look_at(w, 10, &d), -ETIMEDOUT);
  opens_count("smaps");
  assert_int_equal(look_at(w, 10, &d), -ETIMEDOUT);
  assert_int_equal(opens_counted(), 0);
  assert_int_equal(look_at(w, 11, &d), 0);
  parsed_free(d);
  proctree_wake(&w->tree, "10/smaps");
}
