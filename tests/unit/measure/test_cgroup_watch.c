/* SPDX-License-Identifier: MIT */
/* Groups that are whole control groups have values of these, and count the
 * processes in them that were killed for memory. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "collected.h"

/* The tree has the hierarchy here; version 1 is below, at "/memory". */
#define CGROUPS "sys/fs/cgroup"
#define WEB "/system.slice/web.service"

/* Writes a file of the hierarchy. */
static void cgroup_put(const struct world *w, const char *path,
                       const char *text) {
  char name[300];

  snprintf(name, sizeof(name), CGROUPS "%s", path);
  proctree_write(&w->tree, name, text, strlen(text));
}

/* Makes a control group of version 2 with that use, without a limit. */
static void cgroup_make(const struct world *w, const char *path,
                        const char *use) {
  char name[256];

  snprintf(name, sizeof(name), "%s/memory.current", path);
  cgroup_put(w, name, use);
  snprintf(name, sizeof(name), "%s/memory.max", path);
  cgroup_put(w, name, "max\n");
}

/* Its inodes stay in use, so that the next control group of that path has
 * others, as in the kernel: a disk would give it the same. */
static void cgroup_remove(const struct world *w, const char *path) {
  static unsigned removed;
  char from[256], to[32];

  snprintf(from, sizeof(from), CGROUPS "%s", path);
  snprintf(to, sizeof(to), "removed.%u", removed++);
  proctree_rename(&w->tree, from, to);
}

/* All kills in a control group since its beginning; and on the host. */
static void cgroup_kill(const struct world *w, const char *path, unsigned all) {
  char name[256], text[64];

  snprintf(name, sizeof(name), "%s/memory.events", path);
  snprintf(text, sizeof(text), "low 0\noom 7\noom_kill %u\n", all);
  cgroup_put(w, name, text);
}

static void kill_on_host(const struct world *w, unsigned all) {
  proctree_print(&w->tree, 0, "vmstat", "pgfault 17\noom_kill %u\n", all);
}

/* The kill is counted by the control group and by the host. */
static void kill_in(struct world *w, const char *path, unsigned all) {
  cgroup_kill(w, path, all);
  kill_on_host(w, all);
}

/* Writes the files of a process that is in the control group. */
static void cgroup_join(const struct world *w, uint32_t pid, const char *comm,
                        const char *cgroup) {
  struct fake f = collected_process(pid, comm);

  f.cgroup = cgroup;
  world_put(w, f);
}

/* Process 10 in the control group of web.service, which is a group, as all
 * units are. */
static void start_web(struct world *w) {
  cgroup_make(w, WEB, "1000\n");
  cgroup_join(w, 10, "web", WEB);
  world_put(w, collected_process(9, "outside"));
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
}

static const struct group *group_of(const struct world *w, const char *name) {
  const struct group *g = world_find(w, name);

  if (!g)
    fail_msg("%s is not there", name);
  return g;
}

/* Asserts that a group has no control group after a cycle, and why. */
static void expect_absent(struct world *w, const char *name,
                          enum cgroup_absence why) {
  const struct group *g;

  world_run(w, 10);
  g = group_of(w, name);
  if (g->cgroup || g->cgroup_absence != why)
    fail_msg("%s: %s, %d and not %d", name, g->cgroup ? g->cgroup->path : "-",
             g->cgroup_absence, why);
}

static void expect_path(struct world *w, const char *name, const char *path) {
  const struct group *g;

  world_run(w, 10);
  g = group_of(w, name);
  if (!g->cgroup)
    fail_msg("%s has none: %d", name, g->cgroup_absence);
  assert_string_equal(g->cgroup->path, path);
  assert_int_equal(g->cgroup_absence, CGROUP_PRESENT);
}

/* --- which group is whole --- */

/* Process 10 and its child, by a PID file that names process 10. */
WORLD_TEST(family_of_a_pid_file_has_the_memory_of_its_control_group) {
  struct fake child = collected_process(11, "worker");
  char path[256];

  cgroup_make(w, WEB, "1000\n");
  cgroup_join(w, 10, "web", WEB);
  child.ppid = 10;
  child.cgroup = WEB;
  world_put(w, child);
  proctree_write(&w->tree, "web.pid", "10\n", 3);
  snprintf(path, sizeof(path), "%s/web.pid", w->tree.root);
  world_group(w, "web", "PidFile", path, NULL, NULL)->takes_children = true;
  expect_path(w, "web", WEB);
  world_assert(w, "web", "cgroup=1000");
  cgroup_join(w, 12, "cron", WEB);
  expect_absent(w, "web", CGROUP_SHARED);
}

WORLD_TEST(group_with_a_member_elsewhere_is_not_a_whole_control_group) {
  cgroup_make(w, WEB, "1000\n");
  cgroup_join(w, 10, "a", WEB);
  cgroup_join(w, 11, "a", "/other.slice/b.service");
  cgroup_join(w, 12, "b", "/other.slice/b.service");
  world_group(w, "g", "Comm", "a", "Cgroup", "*");
  world_group(w, "all", "Cgroup", "*", NULL, NULL);
  expect_absent(w, "g", CGROUP_ROOT);
}

WORLD_TEST(unit_and_slice_are_their_own_control_groups) {
  cgroup_make(w, WEB, "1000\n");
  cgroup_make(w, WEB "/worker", "10\n");
  cgroup_join(w, 10, "web", WEB "/worker");
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  world_group(w, "%{container}", "Container", "*", NULL, NULL);
  world_group(w, "%{slice}", "Slice", "*", NULL, NULL)->is_view = true;
  cgroup_make(w, "/system.slice", "3000\n");
  w->settings.rules[0].is_view = true;
  expect_path(w, "web.service", WEB);
  world_assert(w, "system.slice", "cgroup=3000");
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
WORLD_TEST(version_1_has_the_least_limit_of_all_levels) {
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

WORLD_TEST(controller_with_the_processes_elsewhere_is_ignored) {
  start_web(w);
  put_paths(w, "4:memory:/\n1:name=systemd:" WEB "\n");
  cgroup_put(w, "/memory/memory.usage_in_bytes", "1234\n");
  expect_absent(w, "web.service", CGROUP_ELSEWHERE);
}

WORLD_TEST(control_group_that_is_not_mounted_has_no_values) {
  cgroup_join(w, 10, "web", WEB);
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  expect_absent(w, "web.service", CGROUP_OUT_OF_SIGHT);
  /* It is looked for again. */
  cgroup_make(w, WEB, "1000\n");
  world_run(w, 40);
  expect_absent(w, "web.service", CGROUP_OUT_OF_SIGHT);
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

/* As the start script of a service does. */
WORLD_TEST(member_that_ends_while_it_is_asked_costs_one_cycle) {
  cgroup_make(w, WEB, "1000\n");
  cgroup_put(w, WEB "/memory.max", "4000\n");
  cgroup_join(w, 10, "a", WEB);
  cgroup_join(w, 12, "b", WEB);
  world_group(w, "g", "Comm", "a", "Cgroup", "*");
  expect_absent(w, "g", CGROUP_SHARED);
  world_run(w, 10);
  proctree_end(&w->tree, 12);
  proctree_unlink(&w->tree, "10/cgroup");
  world_expect(w, 10, "g", "ps_count=1");
  assert_null(group_of(w, "g")->cgroup);
  cgroup_join(w, 10, "a", WEB);
  world_expect(w, 10, "g", "cgroup=1000 cgroup_limit=4000");
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
  /* Between two cycles there come another process and another limit. */
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

/* Else a file that is read would look like a full control group. */
WORLD_TEST(fast_growth_of_the_page_cache_is_read_within_the_minute) {
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
  assert_true(cgroup_memory_working_set(group_of(w, "web.service")->cgroup) ==
              1000);
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
    /* The statistics show in which cycle they were read. */
    web += world_value(w, "web.service", "cgroup_file") == i;
    b += world_value(w, "b.service", "cgroup_file") == i;
    assert_true(web == web_before || b == b_before);
  }
  assert_int_equal(web, 10);
  assert_int_equal(b, 10);
}

WORLD_TEST(kernel_memory_without_a_total_is_the_sum_of_its_parts) {
  start_web(w);
  cgroup_put(
      w, WEB "/memory.stat",
      "file 600\nkernel_stack 1\nslab 20\nslab_reclaimable 7\nsock 300\n");
  world_expect(w, 10, "web.service", "cgroup_kernel=321");
}

/* --- what only some ask for --- */

WORLD_TEST(peak_of_its_life_and_events_are_read_in_each_cycle) {
  start_web(w);
  cgroup_put(w, WEB "/memory.peak", "5000\n");
  cgroup_put(w, WEB "/memory.events", "low 1\nhigh 20\nmax 300\noom 4\n");
  world_expect(w, 10, "web.service",
               "cgroup_peak_ever=5000 events_high=20 events_max=300 "
               "oom_kill=nan cgroup_peak=nan");
  cgroup_put(w, WEB "/memory.peak", "6000\n");
  cgroup_put(w, WEB "/memory.events", "low 1\nhigh 21\nmax 300\noom 4\n");
  world_expect(w, 10, "web.service",
               "cgroup_peak_ever=6000 events_high=21 events_max=300");
  proctree_unlink(&w->tree, CGROUPS WEB "/memory.peak");
  proctree_unlink(&w->tree, CGROUPS WEB "/memory.events");
  world_expect(w, 10, "web.service",
               "cgroup_peak_ever=nan events_high=nan events_max=nan "
               "cgroup=1000");
}

WORLD_TEST(version_1_has_a_peak_and_counts_hits_of_the_limit) {
  start_web_of_version_1(w);
  cgroup_put(w, "/memory" WEB "/memory.usage_in_bytes", "1234\n");
  cgroup_put(w, "/memory" WEB "/memory.max_usage_in_bytes", "2000\n");
  cgroup_put(w, "/memory" WEB "/memory.failcnt", "7\n");
  world_run(w, 10);
  world_expect(w, 10, "web.service",
               "cgroup_peak_ever=2000 events_max=7 events_high=nan "
               "pressure_some=nan pressure_full=nan cgroup_peak=nan "
               "oomd_kill=nan");
}

/* Microseconds in which some, and all, of its processes have waited. */
static void stall_web(const struct world *w, unsigned some, unsigned full) {
  char text[200];

  snprintf(text, sizeof(text),
           "some avg10=0.00 avg60=0.00 avg300=0.00 total=%u\n"
           "full avg10=0.00 avg60=0.00 avg300=0.00 total=%u\n",
           some, full);
  cgroup_put(w, WEB "/memory.pressure", text);
}

/* The clock of the tests ticks with each look at it. */
static void expect_pressure(const struct world *w, double some, double full) {
  double is_some = world_value(w, "web.service", "pressure_some");
  double is_full = world_value(w, "web.service", "pressure_full");

  if (!(fabs(is_some - some) <= 0.01) || !(fabs(is_full - full) <= 0.01))
    fail_msg("%f and %f, not %f and %f", is_some, is_full, some, full);
}

WORLD_TEST(pressure_is_a_percentage_of_the_interval) {
  start_web(w);
  stall_web(w, 7000000, 500000);
  world_expect(w, 10, "web.service", "pressure_some=nan pressure_full=nan");
  stall_web(w, 9500000, 1000000);
  world_run(w, 10);
  expect_pressure(w, 25, 5);
  world_run(w, 20);
  expect_pressure(w, 0, 0);
  stall_web(w, 9500000 + 3000000, 1000000 + 3000000);
  world_run(w, 60);
  expect_pressure(w, 5, 5);
  /* types.db takes more than 100.1 for unknown. */
  stall_web(w, 40000000, 4000000);
  world_run(w, 10);
  expect_pressure(w, 100, 0);
  /* One reading is missing: the next has nothing to be compared with. */
  cgroup_put(w, WEB "/memory.pressure", "some\n");
  world_expect(w, 10, "web.service", "pressure_some=nan");
  stall_web(w, 41000000, 4000000);
  world_expect(w, 10, "web.service", "pressure_some=nan");
}

WORLD_TEST(pressure_of_a_control_group_that_was_made_again_is_its_own) {
  start_web(w);
  stall_web(w, 1000, 0);
  world_run(w, 10);
  cgroup_remove(w, WEB);
  cgroup_make(w, WEB, "1000\n");
  stall_web(w, 5000000, 0);
  world_expect(w, 10, "web.service", "pressure_some=nan");
  stall_web(w, 6000000, 0);
  world_run(w, 10);
  expect_pressure(w, 10, 0);
}

WORLD_TEST(files_that_no_group_reports_are_not_read) {
  static const struct {
    const char *report, *file;
    bool is_read;
  } cases[] = {{"default", "memory.peak", false},
               {"default", "memory.pressure", false},
               {"default", ".", false},
               {"cgroup_peak_ever", "memory.peak", true},
               {"pressure_full", "memory.pressure", true},
               {"pressure_full", "memory.peak", false},
               {"oomd_kill", ".", true},
               {"events_high", ".", false}};
  static const char *const names[] = {"a.service", "b.service", "c.service",
                                      "d.service", "e.service", "f.service",
                                      "g.service", "h.service"};
  struct config_error reason;

  world_put(w, collected_process(9, "outside"));
  for (size_t i = 0; i < LENGTH(cases); i++)
    world_group(w, names[i], "Unit", names[i], NULL, NULL)->report.metrics =
        metric_find(cases[i].report, &reason);
  for (size_t i = 0; i < LENGTH(cases); i++) {
    unsigned before = opens_counted();
    char path[64];

    snprintf(path, sizeof(path), "/%s", names[i]);
    cgroup_make(w, path, "1000\n");
    cgroup_join(w, 10 + (uint32_t)i, "web", path);
    opens_count(cases[i].file);
    world_run(w, 10);
    if ((opens_counted() > before) != cases[i].is_read)
      fail_msg("Report \"%s\" opens %s %u times", cases[i].report,
               cases[i].file, opens_counted() - before);
    proctree_end(&w->tree, 10 + (uint32_t)i);
    world_run(w, 10);
  }
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

/* --- kills --- */

#define SYSTEM_B "/system.slice/b.service"
#define OTHER_B "/other.slice/b.service"

/* Makes a control group without kills. */
static void make_spared(struct world *w, const char *path) {
  cgroup_make(w, path, "1000\n");
  cgroup_kill(w, path, 0);
}

/* Adds a second service beside web. */
static void start_b(struct world *w, const char *path) {
  make_spared(w, path);
  cgroup_join(w, 20, "b", path);
  cgroup_kill(w, WEB, 0);
}

/* systemd removes a control group before anyone can read its count. */
static void end_web(struct world *w) {
  proctree_end(&w->tree, 10);
  cgroup_remove(w, WEB);
}

static void restart_web(struct world *w) {
  make_spared(w, WEB);
  cgroup_join(w, 11, "web", WEB);
}

/* The second has processes again, and an old count. */
WORLD_TEST(kill_in_the_first_interval_counts) {
  start_web(w);
  kill_in(w, WEB, 0);
  world_run(w, 10);
  cgroup_make(w, SYSTEM_B, "1000\n");
  cgroup_join(w, 20, "b", SYSTEM_B);
  kill_in(w, SYSTEM_B, 1);
  world_expect(w, 10, "b.service", "oom_kill=1");
  cgroup_make(w, "/other.slice/c.service", "1000\n");
  cgroup_join(w, 21, "c", "/other.slice/c.service");
  cgroup_kill(w, "/other.slice/c.service", 5);
  world_expect(w, 10, "c.service", "oom_kill=0");
}

WORLD_TEST(kills_outlive_a_restart) {
  start_web(w);
  kill_in(w, WEB, 0);
  world_run(w, 10);
  kill_in(w, WEB, 1);
  world_expect(w, 10, "web.service", "oom_kill=1");
  end_web(w);
  world_run(w, 10);
  /* Then a new control group, with counts from 0. */
  assert_null(world_find(w, "web.service"));
  restart_web(w);
  world_expect(w, 10, "web.service", "oom_kill=1");
  cgroup_kill(w, WEB, 1);
  kill_on_host(w, 2);
  world_expect(w, 10, "web.service", "oom_kill=2");
}

WORLD_TEST(kill_in_a_removed_control_group_is_known_from_its_parent) {
  start_web(w);
  start_b(w, SYSTEM_B);
  kill_in(w, "/system.slice", 4);
  world_run(w, 10);
  end_web(w);
  restart_web(w);
  /* One kill is another's, and known. */
  cgroup_kill(w, SYSTEM_B, 1);
  kill_in(w, "/system.slice", 6);
  world_expect(w, 10, "web.service", "oom_kill=1");
  world_assert(w, "b.service", "oom_kill=1");
  world_expect(w, 10, "web.service", "oom_kill=1");
}

/* The group "web" of process 10 alone, which has one kill, and another process
 * that is not in it. */
static void start_killed_web(struct world *w) {
  make_spared(w, WEB);
  cgroup_join(w, 10, "web", WEB);
  cgroup_join(w, 20, "other", "/user.slice");
  world_group(w, "web", "Unit", "web.service", "Comm", "web");
  kill_in(w, "/system.slice", 0);
  world_run(w, 10);
  cgroup_kill(w, WEB, 1);
  kill_in(w, "/system.slice", 1);
  world_expect(w, 10, "web", "oom_kill=1");
}

WORLD_TEST(kills_are_shown_while_others_are_in_the_control_group) {
  start_killed_web(w);
  cgroup_join(w, 30, "helper", WEB);
  world_expect(w, 10, "web", "oom_kill=1 cgroup=nan");
  proctree_end(&w->tree, 30);
  world_expect(w, 10, "web", "oom_kill=1 cgroup=1000");
  cgroup_join(w, 30, "helper", WEB);
  /* Once, or the alarm would never end. */
  world_expect(w, 3700, "web", "oom_kill=0 cgroup=nan");
  expect_absent(w, "web", CGROUP_SHARED);
}

/* The host's count has been read when the process is killed. */
WORLD_TEST(kill_during_a_cycle_is_counted_in_the_next) {
  start_killed_web(w);
  cgroup_remove(w, WEB);
  cgroup_kill(w, "/system.slice", 2);
  world_expect(w, 10, "web", "oom_kill=1");
  proctree_end(&w->tree, 10);
  kill_on_host(w, 2);
  world_expect(w, 10, "web", "oom_kill=2");
}

/* Either may be the one. */
WORLD_TEST(kill_that_may_be_in_two_groups_counts_in_none) {
  start_web(w);
  start_b(w, SYSTEM_B);
  kill_in(w, "/system.slice", 0);
  world_run(w, 10);
  end_web(w);
  proctree_end(&w->tree, 20);
  cgroup_remove(w, SYSTEM_B);
  kill_in(w, "/system.slice", 1);
  world_run(w, 10);
  restart_web(w);
  world_expect(w, 10, "web.service", "oom_kill=0");
}

WORLD_TEST(kill_while_a_service_was_away_is_not_its_own) {
  start_web(w);
  start_b(w, OTHER_B);
  cgroup_kill(w, "/other.slice", 0);
  kill_in(w, "/system.slice", 0);
  world_run(w, 10);
  cgroup_kill(w, WEB, 1);
  kill_in(w, "/system.slice", 1);
  world_expect(w, 10, "web.service", "oom_kill=1");
  end_web(w);
  world_run(w, 10);
  kill_in(w, "/system.slice", 2);
  world_run(w, 10);
  restart_web(w);
  cgroup_kill(w, OTHER_B, 1);
  kill_in(w, "/other.slice", 3);
  world_expect(w, 10, "web.service", "oom_kill=1");
}

/* Its control group has stayed, with the kills that were counted before. */
WORLD_TEST(kill_elsewhere_is_not_that_of_a_service_that_comes_back) {
  start_web(w);
  start_b(w, OTHER_B);
  cgroup_kill(w, OTHER_B, 0);
  kill_in(w, WEB, 0);
  world_run(w, 10);
  kill_in(w, WEB, 1);
  world_expect(w, 10, "web.service", "oom_kill=1");
  proctree_end(&w->tree, 10);
  world_run_times(w, 3, 10);
  cgroup_kill(w, OTHER_B, 1);
  kill_on_host(w, 2);
  cgroup_join(w, 11, "web", WEB);
  world_expect(w, 10, "web.service", "oom_kill=1");
  kill_in(w, WEB, 2);
  kill_on_host(w, 3);
  world_expect(w, 10, "web.service", "oom_kill=2");
}

/* The tree has no vmstat, as with systemd's ProcSubset=pid. */
WORLD_TEST(kills_are_looked_for_with_the_limit_where_the_host_shows_none) {
  start_web(w);
  cgroup_kill(w, WEB, 5);
  world_run(w, 10);
  cgroup_kill(w, WEB, 6);
  world_run_times(w, 6, 10);
  world_assert(w, "web.service", "oom_kill=1");
}

/* One kill comes in each minute, for four hours. At most those of an hour and
 * an eighth count. */
WORLD_TEST(kills_without_an_end_count_for_an_hour) {
  start_web(w);
  kill_in(w, WEB, 0);
  world_run(w, 60);
  for (unsigned i = 1; i <= 240; i++) {
    double kills;

    kill_in(w, WEB, i);
    world_run(w, 60);
    kills = world_value(w, "web.service", "oom_kill");
    assert_true(i < 60 ? kills == i : kills >= 60 && kills <= 69);
  }
  world_run(w, 3500);
  assert_true(world_value(w, "web.service", "oom_kill") > 0);
  world_run(w, 200);
  world_assert(w, "web.service", "oom_kill=0");
}

/* --- kills by systemd-oomd --- */

/* Skips the test where files cannot have attributes. */
static void note_oomd(const struct world *w, const char *name,
                      const char *value) {
  char path[256];

  snprintf(path, sizeof(path), "%s/" CGROUPS WEB, w->tree.root);
  if (setxattr(path, name, value, strlen(value), 0) == 0)
    return;
  assert_int_equal(errno, ENOTSUP);
  skip();
}

static void kill_by_oomd(const struct world *w, const char *ooms,
                         const char *kills) {
  note_oomd(w, "user.oomd_ooms", ooms);
  note_oomd(w, "user.oomd_kill", kills);
}

WORLD_TEST(kills_by_systemd_oomd_count_for_an_hour_apart_from_others) {
  start_web(w);
  kill_in(w, WEB, 0);
  /* Those before the plugin was started are of an unknown time. */
  kill_by_oomd(w, "1", "2");
  world_expect(w, 10, "web.service", "oomd_kill=0 oom_kill=0");
  kill_by_oomd(w, "2", "7");
  world_expect(w, 10, "web.service", "oomd_kill=5 oom_kill=0");
  world_expect(w, 10, "web.service", "oomd_kill=5 oom_kill=0");
  /* It has tried, and found nothing to kill. */
  note_oomd(w, "user.oomd_ooms", "3");
  world_expect(w, 10, "web.service", "oomd_kill=5");
  world_run(w, 3500);
  world_expect(w, 200, "web.service", "oomd_kill=0");
}

WORLD_TEST(kills_by_systemd_oomd_outlive_a_restart) {
  start_web(w);
  world_expect(w, 10, "web.service", "oomd_kill=0");
  kill_by_oomd(w, "1", "3");
  world_expect(w, 10, "web.service", "oomd_kill=3");
  end_web(w);
  world_run(w, 10);
  assert_null(world_find(w, "web.service"));
  cgroup_make(w, WEB, "1000\n");
  cgroup_join(w, 11, "web", WEB);
  world_expect(w, 10, "web.service", "oomd_kill=3");
  kill_by_oomd(w, "1", "1");
  world_expect(w, 10, "web.service", "oomd_kill=4");
  /* Again, and within an interval. */
  proctree_end(&w->tree, 11);
  cgroup_remove(w, WEB);
  cgroup_make(w, WEB, "1000\n");
  cgroup_join(w, 12, "web", WEB);
  world_expect(w, 10, "web.service", "oomd_kill=4");
  kill_by_oomd(w, "1", "2");
  world_expect(w, 10, "web.service", "oomd_kill=6");
}

WORLD_TEST(attribute_that_is_no_number_is_unknown) {
  start_web(w);
  world_expect(w, 10, "web.service", "oomd_kill=0");
  note_oomd(w, "user.oomd_kill", "2 ");
  world_expect(w, 10, "web.service", "oomd_kill=nan");
  note_oomd(w, "user.oomd_kill", "123456789012345678901234567890");
  world_expect(w, 10, "web.service", "oomd_kill=nan cgroup=1000");
}

/* --- over a restart of the daemon --- */

/* Two cycles of the service and of another, and then the end of the daemon. */
static void run_and_stop(struct world *w) {
  world_remember(w);
  start_web(w);
  start_b(w, SYSTEM_B);
  kill_in(w, "/system.slice", 4);
  cgroup_kill(w, WEB, 3);
  world_run_times(w, 2, 10);
}

WORLD_TEST(kills_are_remembered_for_an_hour) {
  run_and_stop(w);
  cgroup_kill(w, WEB, 4);
  kill_in(w, "/system.slice", 5);
  world_expect(w, 10, "web.service", "oom_kill=1");
  world_stop(w);
  world_expect(w, 1800, "web.service", "oom_kill=1");
  world_assert(w, "b.service", "oom_kill=0");
  world_run(w, 10);
  world_stop(w);
  world_expect(w, 1700, "web.service", "oom_kill=1");
  world_expect(w, 300, "web.service", "oom_kill=0");
}

WORLD_TEST(kill_while_the_daemon_is_down_counts) {
  run_and_stop(w);
  world_stop(w);
  cgroup_kill(w, WEB, 5);
  kill_in(w, "/system.slice", 6);
  world_expect(w, 600, "web.service", "oom_kill=2");
  world_assert(w, "b.service", "oom_kill=0");
  world_expect(w, 10, "web.service", "oom_kill=2");
}

WORLD_TEST(kill_in_a_control_group_that_was_made_again_meanwhile_counts) {
  run_and_stop(w);
  world_stop(w);
  end_web(w);
  restart_web(w);
  kill_in(w, "/system.slice", 5);
  world_expect(w, 60, "web.service", "oom_kill=1");
  world_assert(w, "b.service", "oom_kill=0");
}

/* Its old kills are not new, although one process of the host was killed. */
WORLD_TEST(kills_in_an_unknown_control_group_do_not_count) {
  run_and_stop(w);
  world_stop(w);
  cgroup_make(w, "/system.slice/c.service", "1000\n");
  cgroup_kill(w, "/system.slice/c.service", 9);
  cgroup_join(w, 30, "c", "/system.slice/c.service");
  kill_on_host(w, 5);
  world_expect(w, 60, "c.service", "oom_kill=0");
  world_assert(w, "web.service", "oom_kill=0");
}

/* The fixed group "web", and another process. */
static void run_fixed(struct world *w) {
  world_remember(w);
  make_spared(w, WEB);
  cgroup_join(w, 10, "web", WEB);
  world_put(w, collected_process(9, "outside"));
  world_group(w, "web", "Unit", "web.service", NULL, NULL);
  kill_in(w, "/system.slice", 0);
  world_run_times(w, 2, 10);
}

/* Before and after, although no member shows the control group. */
WORLD_TEST(kills_of_a_group_that_is_gone_are_remembered) {
  run_fixed(w);
  cgroup_kill(w, WEB, 1);
  kill_in(w, "/system.slice", 1);
  world_expect(w, 10, "web", "oom_kill=1");
  end_web(w);
  world_expect(w, 10, "web", "oom_kill=1");
  world_stop(w);
  world_expect(w, 10, "web", "oom_kill=1");
  world_expect(w, 10, "web", "oom_kill=1");
  restart_web(w);
  world_expect(w, 10, "web", "oom_kill=1");
}

/* The last member was killed, and nobody has started the service again. */
WORLD_TEST(kill_of_the_last_member_while_the_daemon_is_down_counts) {
  run_fixed(w);
  world_stop(w);
  end_web(w);
  kill_in(w, "/system.slice", 1);
  world_expect(w, 60, "web", "oom_kill=1");
}

WORLD_TEST(kills_by_systemd_oomd_are_remembered_and_counted_on) {
  run_and_stop(w);
  kill_by_oomd(w, "1", "2");
  world_expect(w, 10, "web.service", "oomd_kill=2");
  world_stop(w);
  world_expect(w, 10, "web.service", "oomd_kill=2 oom_kill=0");
  world_run(w, 10);
  world_stop(w);
  kill_by_oomd(w, "2", "5");
  world_expect(w, 10, "web.service", "oomd_kill=5 oom_kill=0");
}

/* Its files are gone, and were read before. */
WORLD_TEST(kills_in_a_control_group_without_files_are_remembered) {
  run_and_stop(w);
  cgroup_kill(w, WEB, 4);
  kill_in(w, "/system.slice", 5);
  world_expect(w, 10, "web.service", "oom_kill=1");
  cgroup_remove(w, WEB);
  world_expect(w, 10, "web.service", "oom_kill=1");
  world_stop(w);
  make_spared(w, WEB);
  world_expect(w, 10, "web.service", "oom_kill=1");
  world_stop(w);
  for (size_t i = 0; i < world_n_written(); i++)
    assert_int_equal(world_written(i)->kind, DOCUMENT_STATE);
}

WORLD_TEST(kills_of_another_boot_are_forgotten) {
  run_and_stop(w);
  world_stop(w);
  proctree_print(&w->tree, 0, "sys/kernel/random/boot_id", "another\n");
  cgroup_kill(w, WEB, 5);
  kill_in(w, "/system.slice", 6);
  world_expect(w, 60, "web.service", "oom_kill=0");
}
