/* Documents as contrib/man/smaps-snapshot.5 has them, read back from what a
 * collector has written: the head and the groups. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "documented.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, documented_setup, documented_teardown, struct world *w)

static void set_text(struct rule *r, const char *text) {
  assert_int_equal(rule_set_text(r, text), 0);
}

static uint64_t page_size(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

/* --- the head --------------------------------------------------------------*/

WORLD_TEST(head_says_what_of_and_when) {
  struct utsname system;
  parsed d;

  assert_int_equal(uname(&system), 0);
  world_watch(w, fake_member(10, "g"));
  next_state(w);
  d = next_state(w);
  assert_string_equal(parsed_keys(d, ""),
                      "format version plugin_version host time interval kernel "
                      "page_size mem_total mem_available trigger rules groups "
                      "processes ");
  parsed_assert(d, "format=smaps-snapshot version=2");
  assert_string_equal(parsed_string(d, "plugin_version"), SMAPS_VERSION);
  assert_string_equal(parsed_string(d, "host"), "node\"1\"");
  assert_true(parsed_decimal(d, "time") ==
              (double)(WORLD_WALL_NS / NS_PER_S) + 10);
  assert_true(parsed_decimal(d, "interval") == 10);
  assert_string_equal(parsed_string(d, "kernel"), system.release);
  assert_int_equal(parsed_integer(d, "page_size"), page_size());
  parsed_assert(d, "mem_total=1024m mem_available=512m");
  assert_string_equal(parsed_keys(d, "trigger"), "kind ");
  assert_string_equal(parsed_string(d, "trigger.kind"), "interval");
}

WORLD_TEST(unknown_fields_of_the_head_are_left_out) {
  parsed d;

  proctree_unlink(&w->tree, "meminfo");
  free(w->settings.host);
  w->settings.host = NULL;
  world_watch(w, fake_member(10, "g"));
  d = next_state(w);
  assert_lacks(d, "mem_total");
  assert_lacks(d, "mem_available");
  assert_lacks(d, "host");
}

WORLD_TEST(rules_are_as_they_are_configured) {
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

WORLD_TEST(without_rules_the_default_ones_are_told) {
  parsed d;

  world_put(w, fake_member(10, "g"));
  d = next_state(w);
  assert_int_equal(parsed_count(d, "rules"), 2);
  assert_string_equal(parsed_string(d, "rules.0"),
                      "<Group \"%{unit}\"> Unit \"*.service\"");
  assert_string_equal(parsed_string(d, "rules.1"), "Other \"other\"");
  assert_int_equal(parsed_integer(of(d, 10), "rule"), 1);
}

/* --- groups ----------------------------------------------------------------*/

WORLD_TEST(a_group_has_its_sums) {
  parsed g;

  world_put(w, fake_member(10, "g"));
  world_put(w, fake_member(11, "g"));
  add_group(w, "a");
  add_group(w, "g");
  g = parsed_find(next_state(w), "groups", "name", "g");
  assert_string_equal(parsed_keys(g, ""),
                      "name rule processes threads unreadable coverage age "
                      "pss_error uss_error cgroup_absence usage ");
  parsed_assert(
      g, "rule=1 processes=2 threads=4 unreadable=0 coverage=100.0 age=0.0 "
         "pss_error=0 uss_error=0 usage.pss=14m usage.uss=12m usage.rss=16m "
         "usage.shared=4m");
  assert_int_equal(parsed_integer(g, "usage.size"), 2 * 10000 * page_size());
  parsed_assert(g, "usage.resident=16m usage.resident_shared=4m");
  assert_int_equal(parsed_integer(g, "usage.text"), 2 * 10 * page_size());
  assert_int_equal(parsed_integer(g, "usage.data"), 2 * 20 * page_size());
}

static void write_cgroup(struct world *w, const char *path, const char *text) {
  proctree_write(&w->tree, path, text, strlen(text));
}

WORLD_TEST(a_group_has_the_memory_of_its_control_group) {
  struct fake f = fake_member(10, "g");
  char mounts[160];
  parsed g;

  snprintf(mounts, sizeof(mounts),
           "30 23 0:26 / %s/cg rw - cgroup2 cgroup2 rw\n", w->tree.root);
  write_cgroup(w, "self/mountinfo", mounts);
  write_cgroup(w, "cg/g.service/memory.current", "100\n");
  write_cgroup(w, "cg/g.service/memory.max", "200\n");
  write_cgroup(w, "cg/g.service/memory.events", "oom_kill 3\n");
  write_cgroup(w, "cg/g.service/memory.stat",
               "file 30\ninactive_file 11\nkernel 7\n");
  write_cgroup(w, "vmstat", "oom_kill 3\n");
  f.cgroup = "/g.service";
  world_put(w, f);
  world_group(w, "g", "Unit", "g.service", NULL, NULL);
  g = parsed_find(next_state(w), "groups", "name", "g");
  assert_string_equal(
      parsed_keys(g, ""),
      "name rule processes threads unreadable coverage age pss_error uss_error "
      "cgroup cgroup_memory cgroup_working_set cgroup_limit cgroup_file "
      "cgroup_kernel oom_kill "
      "usage ");
  parsed_assert(g, "cgroup=/g.service cgroup_memory=100 cgroup_working_set=89 "
                   "cgroup_limit=200 "
                   "cgroup_file=30 cgroup_kernel=7 oom_kill=0");
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

WORLD_TEST(usage_has_the_names_of_the_page) {
  world_watch(w, fake_member(10, "g"));
  assert_string_equal(
      parsed_keys(next_state(w), "groups.0.usage"),
      "pss uss rss shared swap pss_anon pss_file pss_shmem pss_dirty "
      "private_clean private_dirty shared_clean shared_dirty referenced "
      "anonymous lazy_free ksm anon_huge_pages shmem_pmd_mapped "
      "file_pmd_mapped shared_hugetlb private_hugetlb swap_total locked "
      "size resident resident_shared text data ");
}

/* What a tree with the files of a host tells besides. */
WORLD_TEST(page_tables_stacks_and_uptime_are_of_groups_and_processes) {
  static const char meminfo[] = "MemTotal: 9 kB\nKernelStack: 808 kB\n";
  static const char loadavg[] = "0.20 0.18 0.12 1/50 11206\n";
  static const char uptime[] = "100.00 50.00\n";
  struct fake a = fake_member(10, "g"), b = fake_member(11, "g");
  parsed d, g;

  a.tables_kb = b.tables_kb = 60;
  a.starttime = 1000;
  b.starttime = 4050;
  world_put(w, a);
  world_watch(w, b);
  proctree_write(&w->tree, "meminfo", meminfo, sizeof(meminfo) - 1);
  proctree_write(&w->tree, "loadavg", loadavg, sizeof(loadavg) - 1);
  proctree_write(&w->tree, "uptime", uptime, sizeof(uptime) - 1);
  d = next_state(w);
  g = parsed_get(d, "groups.0");
  assert_int_equal(parsed_integer(g, "usage.page_tables"),
                   2 * (60 * KIB + page_size()));
  parsed_assert(g, "usage.kernel_stack=64k uptime=90.0");
  assert_int_equal(parsed_integer(of(d, 11), "usage.page_tables"),
                   60 * KIB + page_size());
  parsed_assert(of(d, 11), "usage.kernel_stack=32k uptime=59.5");
}

WORLD_TEST(a_field_that_the_kernel_lacks_is_left_out) {
  static const char rollup[] =
      "1000-2000 ---p 00000000 00:00 0 [rollup]\nRss: 8192 kB\nPss: 7168 kB\n"
      "Shared_Clean: 0 kB\nShared_Dirty: 2048 kB\nPrivate_Clean: 0 kB\n"
      "Private_Dirty: 6144 kB\nSwapPss: 0 kB\n";
  parsed d;

  world_watch(w, fake_member(10, "g"));
  proctree_write(&w->tree, "10/smaps_rollup", rollup, sizeof(rollup) - 1);
  d = next_state(w);
  assert_string_equal(parsed_keys(d, "groups.0.usage"),
                      "pss uss rss shared swap private_clean private_dirty "
                      "shared_clean shared_dirty size resident "
                      "resident_shared text data ");
  assert_string_equal(parsed_keys(d, "processes.0.usage"),
                      "pss uss rss shared swap private_clean private_dirty "
                      "shared_clean shared_dirty size resident "
                      "resident_shared text data ");
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
  assert_int_equal(parsed_integer(g, "unreadable"), 1);
  assert_int_equal(parsed_integer(g, "pss_error"), 7 * MIB);
  assert_int_equal(parsed_integer(g, "uss_error"), 6 * MIB);
  assert_source(d, 10, "read");
  assert_source(d, 11, "unreadable");
  assert_int_equal(parsed_integer(of(d, 11), "usage.resident"), 8 * MIB);
  assert_int_equal(parsed_integer(of(d, 11), "pss_error"), 7 * MIB);
  assert_int_equal(parsed_integer(of(d, 10), "usage.pss") +
                       parsed_integer(of(d, 11), "usage.pss"),
                   parsed_integer(g, "usage.pss"));
  assert_lacks(of(d, 11), "deferred");
  alone = parsed_get(d, "groups.0");
  assert_string_equal(parsed_keys(alone, "usage"),
                      "rss size resident resident_shared text data ");
  assert_string_equal(parsed_keys(of(d, 12), "usage"),
                      "rss size resident resident_shared text data ");
  assert_int_equal(parsed_integer(alone, "usage.rss"), 8 * MIB);
  assert_lacks(alone, "pss_error");
  assert_lacks(alone, "uss_error");
}

WORLD_TEST(a_group_that_was_never_read_has_no_pss) {
  parsed d;

  w->settings.policy.refresh = REFRESH_NEVER;
  world_watch(w, fake_member(10, "g"));
  d = next_state(w);
  assert_lacks(d, "groups.0.age");
  assert_lacks(d, "groups.0.usage.pss");
  assert_int_equal(parsed_integer(d, "groups.0.unreadable"), 0);
  assert_source(d, 10, "statm");
}

WORLD_TEST(a_fixed_group_stands_without_members_and_others_do_not) {
  parsed d;

  world_put(w, fake_member(10, "g"));
  world_put(w, fake_member(11, "x"));
  add_group(w, "g");
  world_group(w, "t-%{comm}", "Comm", "x", NULL, NULL);
  d = next_state(w);
  assert_int_equal(parsed_count(d, "groups"), 2);
  proctree_end(&w->tree, 10);
  proctree_end(&w->tree, 11);
  world_put(w, fake_member(12, "y"));
  d = next_state(w);
  assert_int_equal(parsed_count(d, "groups"), 1);
  parsed_assert(d, "groups.0.name=g groups.0.processes=0 groups.0.usage.pss=0");
}

/* The child is in another, but its children would be in this one. */
WORLD_TEST(a_group_that_only_descendants_may_come_to_is_not_there) {
  struct fake child = fake_member(11, "b");

  child.ppid = 10;
  world_put(w, fake_member(10, "a"));
  world_put(w, child);
  add_group(w, "b");
  world_group(w, "t-%{comm}", "Comm", "a", NULL, NULL)->takes_children = true;
  assert_int_equal(parsed_count(next_state(w), "groups"), 2);
  proctree_end(&w->tree, 10);
  assert_int_equal(parsed_count(next_state(w), "groups"), 1);
  assert_string_equal(parsed_string(document, "groups.0.name"), "b");
}
