/* SPDX-License-Identifier: MIT */
/* Documents as contrib/man/smaps-snapshot.5 has them, read back from what a
 * collector has written. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "parsed.h"
#include "proc/kernel.h"
#include "world.h"

/* The last one that was read; freed with the next. */
static parsed document;

static int setup(void **state) {
  struct world *w;

  document = NULL;
  world_setup(state);
  w = *state;
  world_keep_state(w);
  w->settings.state_interval_ns = 0;
  w->settings.interval_ns = 10 * NS_PER_S;
  w->settings.host = strdup("node\"1\"");
  return 0;
}

static int teardown(void **state) {
  parsed_free(document);
  return world_teardown(state);
}

/* Runs a cycle and reads its state. */
static parsed next_state(struct world *w) {
  size_t n = world_n_written();

  world_run(w, 10);
  assert_true(collector_results(w->collector)->snapshot_error >= 0);
  assert_int_equal(world_written(n)->error, 0);
  parsed_free(document);
  document = parsed_file(world_written(n)->path);
  return document;
}

/* The same, of a capture of that group, which takes one cycle. */
static parsed capture(struct world *w, const char *group) {
  world_keep_captures(w);
  free(w->settings.state_file);
  w->settings.state_file = NULL;
  world_run(w, 10);
  world_raise(w, group);
  return next_state(w);
}

/* Returns a process of 8 MiB with two threads, 2 MiB of it shared. */
static struct fake fake_member(uint32_t pid, const char *comm) {
  struct fake f = fake_process(pid, comm);

  f.threads = 2;
  f.size = 10000;
  f.text = 10;
  f.data = 20;
  f.private_kb = 6144;
  f.shared_kb = 2048;
  return f;
}

/* A group of the processes of its name. */
static struct rule *add_group(struct world *w, const char *name) {
  return world_group(w, name, "Comm", name, NULL, NULL);
}

static parsed of(parsed d, uint64_t pid) { return parsed_process(d, pid); }

static void assert_source(parsed d, uint64_t pid, const char *source) {
  assert_string_equal(parsed_string(of(d, pid), "source"), source);
}

static void assert_lacks(parsed p, const char *path) {
  if (parsed_get(p, path))
    fail_msg("%s is there", path);
}

#define WORLD_TEST(name) TEST_WITH(name, setup, teardown, struct world *w)

static void set_text(struct rule *r, const char *text) {
  r->text = strdup(text);
}

static uint64_t page_size(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

/* --- the head --------------------------------------------------------------*/

WORLD_TEST(head_has_host_time_and_trigger) {
  struct utsname system;
  parsed d;

  assert_int_equal(uname(&system), 0);
  world_watch(w, fake_member(10, "g"));
  next_state(w);
  d = next_state(w);
  assert_string_equal(parsed_keys(d, ""),
                      "format version plugin_version host time interval kernel "
                      "page_size mem_total mem_available trigger rules groups "
                      "processes state_interval ");
  parsed_assert(d, "format=smaps-snapshot version=2 host=node\"1\" "
                   "plugin_version=" SMAPS_VERSION " interval=10.0 "
                   "mem_total=1024m mem_available=512m trigger.kind=interval");
  assert_true(parsed_decimal(d, "time") ==
              (double)(WORLD_WALL_NS / NS_PER_S) + 10);
  assert_string_equal(parsed_string(d, "kernel"), system.release);
  assert_int_equal(parsed_integer(d, "page_size"), page_size());
  assert_string_equal(parsed_keys(d, "trigger"), "kind ");
  /* Unknown values are left out. */
  proctree_unlink(&w->tree, "meminfo");
  free(w->settings.host);
  w->settings.host = NULL;
  d = next_state(w);
  assert_string_equal(
      parsed_keys(d, ""),
      "format version plugin_version time interval kernel "
      "page_size trigger rules groups processes state_interval ");
}

WORLD_TEST(rules_are_printed_as_they_are_configured) {
  parsed d;

  world_put(w, fake_member(10, "g"));
  set_text(add_group(w, "g"), "<Group \"g\"> Comm \"g\"");
  world_group(w, NULL, "Comm", "x", NULL, NULL); /* without a text */
  world_other(w, "rest");
  d = next_state(w);
  assert_int_equal(parsed_count(d, "rules"), 3);
  assert_string_equal(parsed_string(d, "rules.0"), "<Group \"g\"> Comm \"g\"");
  assert_string_equal(parsed_string(d, "rules.1"), "");
  assert_string_equal(parsed_string(d, "rules.2"), "Other \"rest\"");
  assert_int_equal(
      parsed_integer(parsed_find(d, "groups", "name", "rest"), "rule"), 2);
}

/* --- groups ----------------------------------------------------------------*/

static void write_cgroup(struct world *w, const char *path, const char *text) {
  proctree_write(&w->tree, path, text, strlen(text));
}

WORLD_TEST(a_group_has_the_memory_of_its_control_group) {
  struct fake f = fake_member(10, "g");
  parsed g;

  write_cgroup(w, "sys/fs/cgroup/g.service/memory.current", "100\n");
  write_cgroup(w, "sys/fs/cgroup/g.service/memory.max", "200\n");
  write_cgroup(w, "sys/fs/cgroup/g.service/memory.events",
               "high 5\nmax 6\noom_kill 3\n");
  write_cgroup(w, "sys/fs/cgroup/g.service/memory.peak", "150\n");
  write_cgroup(w, "sys/fs/cgroup/g.service/memory.pressure",
               "some total=1\nfull total=1\n");
  write_cgroup(w, "sys/fs/cgroup/g.service/memory.stat",
               "file 30\ninactive_file 11\nkernel 7\n");
  write_cgroup(w, "vmstat", "oom_kill 3\n");
  f.cgroup = "/g.service";
  world_put(w, f);
  world_group(w, "g", "Unit", "g.service", NULL, NULL);
  next_state(w);
  g = parsed_find(next_state(w), "groups", "name", "g");
  assert_string_equal(
      parsed_keys(g, ""),
      "name rule processes threads unreadable coverage age pss_error uss_error "
      "freed freed_error "
      "cgroup cgroup_memory cgroup_working_set cgroup_limit cgroup_file "
      "cgroup_kernel oom_kill oomd_kill cgroup_peak_ever events_high "
      "events_max pressure_some pressure_full "
      "usage ");
  parsed_assert(g, "cgroup=/g.service cgroup_memory=100 cgroup_working_set=89 "
                   "cgroup_limit=200 "
                   "cgroup_file=30 cgroup_kernel=7 oom_kill=0 oomd_kill=0 "
                   "cgroup_peak_ever=150 events_high=5 events_max=6");
}

WORLD_TEST(a_group_has_the_reason_against_a_control_group) {
  struct fake f = fake_member(10, "g");
  parsed g;

  f.cgroup = "/a.slice/g.service";
  world_put(w, f);
  f.pid = 11;
  f.comm = "h";
  world_put(w, f);
  world_group(w, "g", "Unit", "g.service", "Comm", "g");
  g = parsed_find(next_state(w), "groups", "name", "g");
  parsed_assert(g, "cgroup=/a.slice/g.service cgroup_absence=shared");
  assert_null(strstr(parsed_keys(g, ""), "cgroup_memory"));
}

/* Other users' processes are hidden: "empty" may have some. */
WORLD_TEST(a_group_that_may_have_members_has_no_counts) {
  parsed g;

  world_put(w, fake_member(10, "g"));
  world_make_own(w);
  world_group(w, "empty", "Comm", "b", NULL, NULL);
  g = parsed_find(next_state(w), "groups", "name", "empty");
  assert_string_equal(parsed_keys(g, ""), "name rule cgroup_absence usage ");
  world_put(w, fake_member(1, "init"));
  g = parsed_find(next_state(w), "groups", "name", "empty");
  parsed_assert(g, "processes=0 threads=0 unreadable=0");
}

/* A tree with the files of a host has more values. */
WORLD_TEST(page_tables_stacks_and_uptime_are_of_groups_and_processes) {
  static const char uptime[] = "100.00 50.00\n";
  struct fake a = fake_member(10, "g"), b = fake_member(11, "g");
  parsed d, g;

  a.tables_kb = b.tables_kb = 60;
  a.starttime = 1000;
  b.starttime = 4050;
  world_put(w, a);
  world_watch(w, b);
  proctree_write(&w->tree, "uptime", uptime, sizeof(uptime) - 1);
  d = next_state(w);
  g = parsed_get(d, "groups.0");
  assert_int_equal(parsed_integer(g, "usage.page_tables"),
                   2 * (60 * KIB + page_size()));
  assert_int_equal(parsed_integer(g, "usage.kernel_stack"),
                   4 * kernel_stack_size(page_size()));
  parsed_assert(g, "uptime=90.0");
  assert_int_equal(parsed_integer(of(d, 11), "usage.page_tables"),
                   60 * KIB + page_size());
  parsed_assert(of(d, 11), "uptime=59.5");
}

/* Both groups have an unreadable member, and one a member beside it. */
WORLD_TEST(an_unreadable_member_is_guessed_beside_others_only) {
  parsed d, g, alone;

  world_put(w, fake_member(10, "g"));
  world_put(w, fake_member(11, "g"));
  world_put(w, fake_member(12, "alone"));
  proctree_write(&w->tree, "12/smaps_rollup", "?\n", 2);
  proctree_write(&w->tree, "11/smaps_rollup", "?\n", 2);
  add_group(w, "g");
  add_group(w, "alone");
  d = next_state(w);
  g = parsed_get(d, "groups.1");
  parsed_assert(g, "unreadable=1 pss_error=7m uss_error=6m usage.pss=14m");
  assert_source(d, 10, "read");
  parsed_assert(of(d, 11), "source=unreadable usage.resident=8m pss_error=7m "
                           "usage.pss=7m");
  assert_lacks(of(d, 11), "deferred");
  alone = parsed_get(d, "groups.0");
  assert_string_equal(parsed_keys(alone, "usage"),
                      "rss size resident resident_shared text data "
                      "kernel_stack ");
  parsed_assert(alone, "usage.rss=8m");
  assert_lacks(alone, "age");
  assert_lacks(alone, "pss_error");
  assert_lacks(alone, "uss_error");
}

/* Flat for 200 s, then 10 MiB more each 10 s, found in a third of the window.
 */
WORLD_TEST(growth_begins_at_a_time_of_the_clock) {
  const double begin = (double)(WORLD_WALL_NS / NS_PER_S) + 200;
  parsed g = NULL, since = NULL;

  w->settings.report.growth_window_ns = 600 * NS_PER_S;
  add_group(w, "g");
  for (unsigned i = 0; i < 50; i++) {
    struct fake f = fake_member(10, "g");

    f.private_kb = 100 * 1024 + (i > 20 ? (i - 20) * 10 * 1024 : 0);
    world_put_mapped(w, f, NULL);
    g = parsed_find(next_state(w), "groups", "name", "g");
    since = parsed_get(g, "grows_since");
    assert_int_equal(!since, !parsed_get(g, "growth") ||
                                 parsed_integer(g, "growth") == 0);
    if (since)
      assert_true(fabs(parsed_decimal(g, "grows_since") - begin) <= 20);
  }
  assert_non_null(since);
}

/* --- processes --- */

WORLD_TEST(process_that_was_read_has_all_keys) {
  struct fake f = fake_member(10, "g");
  parsed p;

  f.exe = "/usr/bin/g";
  f.cmdline = "g -v \xff";
  f.uid = 7;
  f.cgroup = "/system.slice/g.service";
  world_put(w, f);
  world_put(w, (struct fake){.pid = 1, .comm = "init", .starttime = 1});
  add_group(w, "g");
  p = of(next_state(w), 10);
  assert_string_equal(
      parsed_keys(p, ""),
      "pid starttime ppid comm command_line exe user cgroup unit slice uid "
      "groups rule also threads source read_cost usage ");
  parsed_assert(p, "starttime=110 ppid=1 comm=g");
  assert_string_equal(parsed_string(p, "command_line"), "g -v \\xff");
  parsed_assert(
      p, "exe=/usr/bin/g user=seven uid=7 cgroup=/system.slice/g.service "
         "unit=g.service slice=system.slice");
  assert_int_equal(parsed_count(p, "groups"), 1);
  parsed_assert(p, "groups.0=g rule=0");
  assert_int_equal(parsed_count(p, "also"), 0);
  parsed_assert(p, "threads=2 source=read");
  assert_true(parsed_decimal(p, "read_cost") > 0);
  assert_lacks(of(document, 1), "ppid");
  parsed_assert(p, "usage.pss=7m usage.pss_anon=6m usage.uss=6m");
  assert_int_equal(parsed_integer(p, "usage.size"), 10000 * page_size());
}

/* A process that cannot be inspected has its pid, and no 0 for the rest. */
WORLD_TEST(unknown_values_of_a_process_are_left_out) {
  parsed d;

  world_put(w, fake_member(10, "g"));
  world_put(w, fake_member(11, "x"));
  proctree_write(&w->tree, "11/stat", "?\n", 2);
  add_group(w, "g");
  d = next_state(w);
  assert_string_equal(parsed_keys(of(d, 11), ""),
                      "pid groups also source usage ");
  assert_string_equal(parsed_keys(of(d, 11), "usage"), "");
  assert_source(d, 11, "unreadable");
}

/* The error of the group has its causes. */
WORLD_TEST(an_estimate_has_an_age_and_an_error_with_its_cause) {
  struct fake f = fake_member(10, "g");
  parsed p, g;

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  w->settings.interval_ns = NS_PER_S; /* so that no time is there for more */
  world_watch(w, f);
  assert_source(next_state(w), 10, "read");
  assert_lacks(document, "groups.0.pss_error_by");
  f.private_kb += 4;
  world_put(w, f);
  p = of(next_state(w), 10);
  assert_string_equal(parsed_string(p, "source"), "estimated");
  assert_true(parsed_decimal(p, "age") > 9.9 &&
              parsed_decimal(p, "age") < 10.1);
  assert_in_range(parsed_integer(p, "uss_error"), 1,
                  2 * parsed_integer(p, "pss_error") + 1);
  assert_int_equal(parsed_integer(p, "usage.pss"), 7 * MIB + 4 * KIB);
  assert_lacks(p, "deferred");
  g = parsed_get(document, "groups.0");
  assert_string_equal(parsed_keys(g, "pss_error_by"), "time ");
  assert_int_equal(parsed_integer(g, "pss_error_by.time"),
                   parsed_integer(g, "pss_error"));
}

WORLD_TEST(process_that_was_never_read_is_guessed_and_deferred) {
  parsed p;

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  world_budget(w, 0);
  world_watch(w, fake_member(10, "g"));
  p = of(next_state(w), 10);
  parsed_assert(p, "source=guessed deferred=budget pss_error=7m uss_error=6m");
  assert_lacks(p, "age");
  parsed_assert(document,
                "groups.0.pss_error=7m groups.0.pss_error_by.guess=7m");
}

/* --- captures --- */

static const struct fake_mapping some_mappings[] = {
    {.name = "/usr/lib/libc.so.6",
     .permissions = "r-xp",
     .private_kb = 4,
     .shared_kb = 1000,
     .pss_kb = 100},
    {.name = "/usr/lib/libc.so.6", .permissions = "rw-p", .private_kb = 16},
    {.name = "[heap]", .private_kb = 6000, .swap_kb = 12},
    {.name = NULL, .private_kb = 100, .size_kb = 4096},
    {.name = "/dev/shm/a\\012\xff", .permissions = "rw-s", .shared_kb = 48},
    {.name = "[stack]", .private_kb = 24},
};
#define SOME LENGTH(some_mappings)

static void watch_mapped(struct world *w) {
  world_watch(w, fake_member(10, "g"));
  proctree_put_smaps(&w->tree, 10, some_mappings, SOME);
}

WORLD_TEST(a_trigger_without_a_value_prints_no_value) {
  static const char *const severities[] = {"okay", "warning", "failure"};

  world_watch(w, fake_member(10, "g"));
  w->settings.capture.cooldown_ns = 0;
  w->settings.capture.severities =
      SEVERITY_OKAY | SEVERITY_WARNING | SEVERITY_FAILURE;
  capture(w, "g");
  for (size_t i = 0; i < LENGTH(severities); i++) {
    parsed d;

    collector_raise(w->collector,
                    &(struct alarm){.group = "g",
                                    .severity = (enum severity)(1 << i),
                                    .message = "\x1b[2J\xff\""});
    d = next_state(w);
    assert_string_equal(parsed_keys(d, "trigger"),
                        "kind severity time group message ");
    assert_string_equal(parsed_string(d, "trigger.severity"), severities[i]);
    assert_string_equal(parsed_string(d, "trigger.message"), "\x1b[2J\\xff\"");
  }
}

static uint64_t sum_of(parsed p, const char *array, const char *key) {
  uint64_t sum = 0;

  for (size_t i = 0; i < parsed_count(p, array); i++) {
    char path[64];

    snprintf(path, sizeof(path), "%s.%zu.%s", array, i, key);
    sum += parsed_integer(p, path);
  }
  return sum;
}

static void assert_mappings_are_the_usage(parsed p) {
  static const char *const keys[] = {
      "rss",          "pss",           "shared_clean",
      "shared_dirty", "private_clean", "private_dirty",
      "anonymous",    "swap",          "swap_total"};

  for (size_t i = 0; i < LENGTH(keys); i++) {
    char path[64];

    snprintf(path, sizeof(path), "usage.%s", keys[i]);
    assert_int_equal(sum_of(p, "mappings", keys[i]), parsed_integer(p, path));
  }
}

WORLD_TEST(mappings_beyond_the_top_are_summed_without_a_name) {
  parsed p;

  w->settings.capture.top_mappings = 2;
  watch_mapped(w);
  p = of(capture(w, "g"), 10);
  assert_int_equal(parsed_count(p, "mappings"), 3);
  assert_mappings_are_the_usage(p);
  assert_string_equal(parsed_keys(p, "mappings.2"),
                      "permissions vmas size rss pss shared_clean "
                      "shared_dirty private_clean private_dirty anonymous "
                      "swap swap_total ");
  parsed_assert(p, "mappings.2.permissions=rw-ps mappings.2.vmas=3");
  parsed_assert(document, "mappings.2.vmas=3");
  assert_lacks(document, "mappings.2.processes");
}
