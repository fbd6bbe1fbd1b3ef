/* SPDX-License-Identifier: MIT */
/* Groups without members: which of them are known to be empty. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collected.h"

WORLD_TEST(hidden_processes_make_empty_groups_unknown) {
  world_put(w, collected_process(10, "a"));
  world_make_own(w);
  world_group(w, "g", "Comm", "a", NULL, NULL);
  world_group(w, "empty", "Comm", "b", NULL, NULL);
  for (int has_first = 0; has_first < 2; has_first++) {
    if (has_first)
      world_put(w, collected_process(1, "init"));
    world_run(w, 1);
    assert_int_equal(world_diag(w, DIAG_HIDDEN)->count, !has_first);
    assert_int_equal(world_find(w, "empty")->usage.is_unseen, !has_first);
    assert_false(world_find(w, "g")->usage.is_unseen);
  }
}

/* As after prctl(PR_SET_DUMPABLE), or a change of user. */
WORLD_TEST(member_whose_program_is_hidden_later_may_be_there) {
  struct fake f = collected_process(10, "worker");

  world_put(w, collected_process(1, "init"));
  world_put(w, f);
  world_group(w, "g", "Executable", "/usr/bin/thing", "User", "0");
  world_group(w, "h", "Executable", "/usr/bin/another", "User", "0");
  proctree_unlink(&w->tree, "1/exe");
  world_expect(w, 1, "g", "ps_count=1");
  opens.refused_link = "exe";
  for (int i = 0; i < 3; i++) {
    world_run(w, i ? 60 : 1);
    world_assert(w, "g", "ps_count=nan");
    world_assert(w, "h", "ps_count=0");
    f.comm = i ? "again" : "renamed"; /* which is seen within a minute */
    world_put(w, f);
  }
  /* Another process has its number. */
  f.starttime += 5;
  world_put(w, f);
  world_expect(w, 60, "g", "ps_count=0");
}

WORLD_TEST(refused_command_line_may_match_any_rule) {
  world_put(w, collected_process(10, "thing"));
  world_group(w, "g", "CommandLine", "x*", NULL, NULL);
  world_group(w, "h", "CommandLine", "x*", "Comm", "other");
  opens_refuse("cmdline", EACCES);
  world_expect(w, 1, "g", "ps_count=nan");
  world_assert(w, "h", "ps_count=0");
}

/* All that is known of it is comm and cgroup. */
WORLD_TEST(name_of_an_unidentified_process_rules_it_out) {
  static const struct {
    const char *group, *option, *pattern, *count;
  } rows[] = {{"comm", "Comm", "b", "ps_count=nan"},
              {"another", "Comm", "c", "ps_count=0"},
              {"program", "Executable", "/usr/bin/b", "ps_count=nan"},
              {"unit", "Unit", "a.service", "ps_count=nan"},
              {"another-unit", "Unit", "b.service", "ps_count=0"},
              {"slice", "Slice", "system.slice", "ps_count=nan"},
              {"container", "Container", "*", "ps_count=0"},
              {"user", "User", "8", "ps_count=nan"}};
  struct fake f = collected_process(10, "b");

  for (size_t i = 0; i < LENGTH(rows); i++)
    world_group(w, rows[i].group, rows[i].option, rows[i].pattern, NULL, NULL)
        ->is_view = true;
  world_group(w, "family", "Comm", "c", NULL, NULL)->takes_children = true;
  world_other(w, "rest");
  f.cgroup = "/system.slice/a.service";
  world_put(w, f);
  opens_refuse("stat", EPERM);
  world_run(w, 1);
  for (size_t i = 0; i < LENGTH(rows); i++)
    world_assert(w, rows[i].group, "%s", rows[i].count);
  world_assert(w, "family", "ps_count=nan");
  world_assert(w, "rest", "ps_count=nan");
  f.cgroup = "/";
  world_put(w, f);
  world_expect(w, 1, "another-unit", "ps_count=0");
  world_assert(w, "unit", "ps_count=0");
  proctree_unlink(&w->tree, "10/cgroup");
  world_expect(w, 1, "another-unit", "ps_count=nan");
  proctree_unlink(&w->tree, "10/comm");
  world_expect(w, 1, "another", "ps_count=0");
}

/* As with hidepid=1, which shows its pid and nothing of it; or files have run
 * out. */
WORLD_TEST(process_of_which_all_is_refused_may_be_in_any_group) {
  static const int errors[] = {EPERM, EMFILE};

  world_put(w, collected_process(10, "b"));
  world_group(w, "first", "Comm", "c", NULL, NULL);
  world_group(w, "last", "Unit", "a.service", NULL, NULL);
  world_other(w, "rest");
  for (size_t i = 0; i < LENGTH(errors); i++) {
    opens_refuse("*", errors[i]);
    world_expect(w, 1, "first", "ps_count=nan");
    world_assert(w, "last", "ps_count=nan");
    world_assert(w, "rest", "ps_count=nan");
  }
}

WORLD_TEST(zombie_leaves_its_group_empty) {
  struct fake f = collected_process(10, "b");

  world_put(w, collected_process(1, "init"));
  world_put(w, f);
  world_group(w, "g", "Comm", "b", NULL, NULL);
  world_expect(w, 1, "g", "ps_count=1");
  f.state = 'Z';
  f.private_kb = f.shared_kb = 0;
  world_put(w, f);
  world_expect(w, 1, "g", "ps_count=0");
}

/* The path shows in which container it is, but not the name of the container.
 */
WORLD_TEST(container_of_an_unidentified_process_may_have_any_name) {
  struct fake f = collected_process(10, "b");

  world_group(w, "name", "ContainerName", "web", NULL, NULL)->is_view = true;
  world_group(w, "pod", "Pod", "web", NULL, NULL)->is_view = true;
  f.cgroup = "/lxc.payload.c1";
  world_put(w, f);
  opens_refuse("stat", EPERM);
  world_run(w, 1);
  world_assert(w, "name", "ps_count=nan");
  world_assert(w, "pod", "ps_count=nan");
  f.cgroup = "/system.slice/a.service";
  world_put(w, f);
  world_run(w, 1);
  world_assert(w, "name", "ps_count=0");
  world_assert(w, "pod", "ps_count=0");
}

/* It can inherit only from its parent; 9 is in the family, 11 is not. */
WORLD_TEST(parent_of_an_unidentified_process_rules_families_out) {
  static const struct {
    const char *status, *count;
  } rows[] = {{"PPid:\t9\n", "ps_count=nan"},
              {"PPid:\t11\n", "ps_count=1"},
              {"PPid:\t12\n", "ps_count=1"},
              {"Threads:\t1\n", "ps_count=nan"}};

  world_group(w, "family", "Comm", "c", NULL, NULL)->takes_children = true;
  world_put(w, collected_process(9, "c"));
  world_put(w, collected_process(11, "d"));
  world_run(w, 1);
  world_assert(w, "family", "ps_count=1");
  world_put(w, collected_process(10, "b"));
  opens_refuse("stat", EPERM);
  for (size_t i = 0; i < LENGTH(rows); i++) {
    proctree_print(&w->tree, 10, "status", "%s", rows[i].status);
    world_run(w, 1);
    world_assert(w, "family", "%s", rows[i].count);
  }
}

WORLD_TEST(unidentified_process_inherits_its_parents_group_alone) {
  world_group(w, "%{comm}", "Comm", "c?", NULL, NULL)->takes_children = true;
  world_put(w, collected_process(9, "ca"));
  world_put(w, collected_process(11, "cb"));
  world_run(w, 1);
  world_put(w, collected_process(10, "b"));
  opens_refuse("stat", EPERM);
  proctree_print(&w->tree, 10, "status", "PPid:\t9\n");
  world_run(w, 1);
  assert_int_equal(world_find(w, "ca")->usage.perhaps, 1);
  assert_int_equal(world_find(w, "cb")->usage.perhaps, 0);
}

/* The second rule has the group, and the first may take others. */
WORLD_TEST(unidentified_process_of_either_rule_is_in_the_group_of_two) {
  static const struct {
    const char *comm, *cgroup, *status;
    unsigned n;
  } rows[] = {{"ab", "/a.service", "PPid:\t1\n", 1},
              {"ab", "/b.service", "PPid:\t9\n", 1},
              {"x", "/b.service", "PPid:\t1\n", 1},
              {"x", "/a.service", "PPid:\t9\n", 1},
              {"abc", "/a.service", "PPid:\t1\n", 0}};

  world_group(w, "%{comm}", "Comm", "a*", "User", "0")->takes_children = true;
  world_group(w, "ab", "Unit", "b.service", NULL, NULL);
  world_put(w, collected_process(9, "ab"));
  world_run(w, 1);
  opens_refuse("stat", EPERM);
  for (size_t i = 0; i < LENGTH(rows); i++) {
    struct fake f = collected_process(10 + (uint32_t)i, rows[i].comm);

    f.cgroup = rows[i].cgroup;
    world_put(w, f);
    proctree_print(&w->tree, f.pid, "status", "%s", rows[i].status);
    world_run(w, 1);
    if (world_find(w, "ab")->usage.perhaps != rows[i].n)
      fail_msg("%s in %s: is counted wrongly", f.comm, f.cgroup);
    proctree_end(&w->tree, f.pid);
  }
}

WORLD_TEST(unidentified_process_that_is_taken_is_in_no_group_below) {
  world_put(w, collected_process(10, "b"));
  world_group(w, "above", "Comm", "b", NULL, NULL);
  world_group(w, "below", "Executable", "/usr/bin/b", NULL, NULL);
  world_other(w, "rest");
  opens_refuse("stat", EPERM);
  world_expect(w, 1, "above", "ps_count=nan");
  world_assert(w, "below", "ps_count=0");
  world_assert(w, "rest", "ps_count=0");
}
