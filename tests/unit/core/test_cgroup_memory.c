/* Groups that are whole control groups, and what is read of these, in a tree
 * of our own. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "cgroup_world.h"

/* --- which group is whole --- */

WORLD_TEST(rule_that_goes_by_no_control_group_has_none) {
  start_web(w);
  w->settings.rules[0].is_view = true;
  world_group(w, "comm", "Comm", "web", NULL, NULL);
  world_group(w, "empty", "Unit", "no.service", NULL, NULL);
  expect_path(w, "web.service", WEB);
  assert_absent(w, "comm", CGROUP_NOT_ASKED);
  assert_absent(w, "empty", CGROUP_EMPTY);
}

/* Process 10 and its child, by a PID file that names process 10. */
WORLD_TEST(family_of_a_pid_file_has_the_memory_of_its_control_group) {
  struct fake child = process(11, "worker");
  char path[256];

  cgroup_make(w, WEB, "1000\n");
  cgroup_join(w, 10, "web", WEB);
  child.ppid = 10;
  child.cgroup = WEB;
  world_put(w, child);
  proctree_write(&w->tree, "web.pid", "10\n", 3);
  snprintf(path, sizeof(path), "%s/web.pid", w->tree.root);
  world_group(w, "web", "PidFile", path, NULL, NULL)->takes_children = true;
  world_expect(w, 10, "web", "cgroup=1000");
  assert_path(w, "web", WEB);
  cgroup_join(w, 12, "cron", WEB);
  expect_absent(w, "web", CGROUP_SHARED);
}

WORLD_TEST(shared_control_group_is_of_no_group) {
  cgroup_make(w, WEB, "1000\n");
  cgroup_join(w, 10, "web", WEB);
  world_group(w, "workers", "Unit", "web.service", "Comm", "web");
  world_other(w, "rest");
  expect_path(w, "workers", WEB);
  cgroup_join(w, 11, "cron", WEB);
  expect_absent(w, "workers", CGROUP_SHARED);
  proctree_end(&w->tree, 11);
  world_expect(w, 10, "workers", "cgroup=1000");
  /* Below it counts as in it. */
  cgroup_join(w, 12, "cron", WEB "/below");
  expect_absent(w, "workers", CGROUP_SHARED);
}

WORLD_TEST(member_elsewhere_makes_no_whole) {
  cgroup_make(w, WEB, "1000\n");
  cgroup_join(w, 10, "a", WEB);
  cgroup_join(w, 11, "a", "/other.slice/b.service");
  cgroup_join(w, 12, "b", "/other.slice/b.service");
  world_group(w, "g", "Comm", "a", "Cgroup", "*");
  world_group(w, "all", "Cgroup", "*", NULL, NULL);
  expect_absent(w, "g", CGROUP_ROOT);
}

WORLD_TEST(unit_and_slice_are_themselves_though_all_is_below_one) {
  cgroup_make(w, WEB, "1000\n");
  cgroup_make(w, WEB "/worker", "10\n");
  cgroup_join(w, 10, "web", WEB "/worker");
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  world_group(w, "%{container}", "Container", "*", NULL, NULL);
  world_group(w, "%{slice}", "Slice", "*", NULL, NULL)->is_view = true;
  cgroup_make(w, "/system.slice", "3000\n");
  w->settings.rules[0].is_view = true;
  world_expect(w, 10, "system.slice", "cgroup=3000");
  assert_path(w, "web.service", WEB);
  world_assert(w, "web.service", "cgroup=1000");
}

WORLD_TEST(group_of_paths_moves_up_and_stays) {
  cgroup_make(w, "/pods", "3000\n");
  cgroup_make(w, "/pods/a", "1000\n");
  cgroup_join(w, 10, "a", "/pods/a");
  world_group(w, "pods", "Cgroup", "/pods/*", NULL, NULL);
  expect_path(w, "pods", "/pods/a");
  cgroup_join(w, 11, "b", "/pods/b");
  expect_path(w, "pods", "/pods");
  proctree_end(&w->tree, 11);
  expect_path(w, "pods", "/pods");
}

/* --- where it is --- */

/* The paths of the process that start_web() starts. */
static void put_paths(const struct world *w, const char *text) {
  proctree_write(&w->tree, "10/cgroup", text, strlen(text));
}

static void start_web_of_version_1(struct world *w) {
  start_web(w);
  put_paths(w, "4:memory:" WEB "\n1:name=systemd:" WEB "\n0::" WEB "\n");
}

WORLD_TEST(version_1_has_files_of_its_own) {
  start_web_of_version_1(w);
  cgroup_put(w, "/memory" WEB "/memory.usage_in_bytes", "1234\n");
  cgroup_put(w, "/memory" WEB "/memory.limit_in_bytes",
             "9223372036854771712\n");
  cgroup_put(w, "/memory/system.slice/memory.limit_in_bytes", "5000\n");
  cgroup_put(w, "/memory" WEB "/memory.oom_control",
             "under_oom 0\noom_kill 3\n");
  cgroup_put(w, "/memory" WEB "/memory.stat",
             "cache 1\ntotal_cache 600\ntotal_inactive_file 9\n");
  cgroup_put(w, "/memory" WEB "/memory.kmem.usage_in_bytes", "200\n");
  world_expect(w, 10, "web.service",
               "cgroup=1234 cgroup_limit=5000 cgroup_file=600 "
               "cgroup_kernel=200 oom_kill=0");
}

/* That is of all groups above, be they mounted or not. */
WORLD_TEST(version_1_tells_the_least_limit) {
  start_web_of_version_1(w);
  cgroup_put(w, "/memory" WEB "/memory.usage_in_bytes", "1234\n");
  cgroup_put(w, "/memory" WEB "/memory.limit_in_bytes", "5000\n");
  cgroup_put(w, "/memory" WEB "/memory.stat",
             "total_cache 1\nhierarchical_memory_limit 4000\n");
  world_expect(w, 10, "web.service", "cgroup_limit=4000");
  cgroup_put(w, "/memory" WEB "/memory.stat",
             "total_cache 1\nhierarchical_memory_limit 9223372036854771712\n");
  world_run_times(w, 6, 10);
  assert_true(group_of(w, "web.service")->cgroup->limit == CGROUP_LIMIT_NONE);
}

WORLD_TEST(controller_that_has_the_processes_elsewhere_says_nothing) {
  start_web(w);
  put_paths(w, "4:memory:/\n1:name=systemd:" WEB "\n");
  cgroup_put(w, "/memory/memory.usage_in_bytes", "1234\n");
  expect_absent(w, "web.service", CGROUP_ELSEWHERE);
}

WORLD_TEST(control_group_that_is_not_mounted_is_out_of_sight) {
  cgroup_join(w, 10, "web", WEB);
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  expect_absent(w, "web.service", CGROUP_OUT_OF_SIGHT);
  /* It is looked for again. */
  cgroup_make(w, WEB, "1000\n");
  world_run(w, 50);
  assert_absent(w, "web.service", CGROUP_OUT_OF_SIGHT);
  world_expect(w, 10, "web.service", "cgroup=1000");
}

WORLD_TEST(control_group_with_other_processes_is_looked_for_at_once) {
  cgroup_join(w, 10, "web", WEB);
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  expect_absent(w, "web.service", CGROUP_OUT_OF_SIGHT);
  cgroup_make(w, WEB, "1000\n");
  proctree_end(&w->tree, 10);
  cgroup_join(w, 11, "web", WEB);
  expect_path(w, "web.service", WEB);
}

WORLD_TEST(control_group_without_the_controller_has_no_memory) {
  start_web(w);
  proctree_unlink(&w->tree, CGROUPS WEB "/memory.current");
  expect_absent(w, "web.service", CGROUP_NO_MEMORY);
}

WORLD_TEST(removed_control_group_is_followed) {
  start_web(w);
  world_run(w, 10);
  cgroup_remove(w, WEB);
  expect_absent(w, "web.service", CGROUP_UNKNOWN);
  cgroup_make(w, WEB, "2000\n");
  world_expect(w, 10, "web.service", "cgroup=2000");
  /* Between two cycles: another process, and another limit. */
  proctree_end(&w->tree, 10);
  cgroup_join(w, 11, "web", WEB);
  cgroup_make(w, WEB, "3000\n");
  cgroup_put(w, WEB "/memory.max", "4000\n");
  world_expect(w, 10, "web.service", "cgroup=3000 cgroup_limit=4000");
}

/* --- what is read when --- */

WORLD_TEST(limit_is_read_again_in_a_minute) {
  start_web(w);
  cgroup_put(w, WEB "/memory.stat", "file 600\n");
  world_run(w, 10);
  cgroup_put(w, WEB "/memory.stat", "file 700\n");
  cgroup_put(w, WEB "/memory.max", "9000\n");
  cgroup_put(w, WEB "/memory.current", "1001\n");
  world_expect(w, 10, "web.service",
               "cgroup=1001 cgroup_file=600 cgroup_kernel=nan cgroup_limit=%d",
               1 << 30); /* MemTotal */
  world_run_times(w, 5, 10);
  world_assert(w, "web.service", "cgroup_limit=9000 cgroup_file=700");
  /* Usage above the limit shows that it was raised. */
  cgroup_put(w, WEB "/memory.max", "20000\n");
  cgroup_put(w, WEB "/memory.current", "10000\n");
  world_run(w, 10);
  world_expect(w, 10, "web.service", "cgroup_limit=20000");
  /* In an interval of a minute it is read each time. */
  cgroup_put(w, WEB "/memory.max", "30000\n");
  world_expect(w, 60, "web.service", "cgroup_limit=30000");
  cgroup_put(w, WEB "/memory.max", "40000\n");
  world_expect(w, 60, "web.service", "cgroup_limit=40000");
}

static double limit_percent(const struct world *w, const char *name) {
  const struct cgroup_memory *m = group_of(w, name)->cgroup;

  return 100 * (double)cgroup_memory_working_set(m) / (double)m->limit;
}

/* Else a file that is read would look like a full control group. */
WORLD_TEST(page_cache_that_comes_fast_is_known_before_the_minute_is_over) {
  start_web(w);
  cgroup_put(w, WEB "/memory.stat", "file 0\ninactive_file 0\n");
  cgroup_put(w, WEB "/memory.max", "1600\n");
  world_run(w, 10);
  cgroup_put(w, WEB "/memory.stat", "file 100\ninactive_file 100\n");
  cgroup_put(w, WEB "/memory.current", "1100\n");
  world_run(w, 10);
  world_expect(w, 10, "web.service", "cgroup_file=0");
  cgroup_put(w, WEB "/memory.stat", "file 600\ninactive_file 600\n");
  cgroup_put(w, WEB "/memory.current", "1600\n");
  world_run(w, 10);
  world_expect(w, 10, "web.service", "cgroup=1600 cgroup_file=600");
  assert_true(limit_percent(w, "web.service") == 62.5);
}

/* That of `name` tells the cycle of its reading. */
static unsigned count_stats(const struct world *w, const char *name,
                            unsigned cycle) {
  return world_value(w, name, "cgroup_file") == cycle;
}

WORLD_TEST(limits_are_read_in_one_of_six_cycles_each_in_turn) {
  unsigned web = 0, b = 0;

  start_web(w);
  cgroup_make(w, "/b.service", "70\n");
  cgroup_join(w, 11, "b", "/b.service");
  world_run(w, 10);
  for (unsigned i = 1; i <= 60; i++) {
    char text[32];
    unsigned web_before = web, b_before = b;

    snprintf(text, sizeof(text), "file %u\n", i);
    cgroup_put(w, WEB "/memory.stat", text);
    cgroup_put(w, "/b.service/memory.stat", text);
    world_run(w, 10);
    web += count_stats(w, "web.service", i);
    b += count_stats(w, "b.service", i);
    assert_true(web == web_before || b == b_before);
  }
  assert_int_equal(web, 10);
  assert_int_equal(b, 10);
}

WORLD_TEST(kernels_without_a_sum_have_its_parts) {
  start_web(w);
  cgroup_put(
      w, WEB "/memory.stat",
      "file 600\nkernel_stack 1\nslab 20\nslab_reclaimable 7\nsock 300\n");
  world_expect(w, 10, "web.service", "cgroup_kernel=321");
}

/* --- hangs --- */

WORLD_TEST(control_group_that_hangs_costs_its_own_values) {
  start_web(w);
  cgroup_make(w, "/b.service", "70\n");
  cgroup_join(w, 11, "b", "/b.service");
  world_run(w, 10);
  proctree_hang(&w->tree, CGROUPS WEB "/memory.current");
  world_expect(w, 10, "web.service", "cgroup=nan cgroup_limit=nan ps_count=1");
  assert_int_equal(group_of(w, "web.service")->cgroup_absence, CGROUP_HUNG);
  world_assert(w, "b.service", "cgroup=70");
  proctree_wake(&w->tree, CGROUPS WEB "/memory.current");
  cgroup_put(w, WEB "/memory.current", "1002\n");
  for (int i = 0; i < 1000 && group_of(w, "web.service")->cgroup_absence; i++)
    world_run(w, 10);
  world_assert(w, "web.service", "cgroup=1002");
}
