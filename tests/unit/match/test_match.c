/* Rules at work on processes: who ends up in which group. */
#include "test.h"

#include <stdio.h>

#include "matched.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, world_setup, world_teardown, struct world *w)

/* Writes a process that started then. */
static void put_started(struct world *w, uint32_t pid, uint32_t ppid,
                        const char *comm, unsigned long start) {
  struct fake f = named(pid, ppid, comm);

  f.starttime = start;
  world_put(w, f);
}

WORLD_TEST(without_other_the_rest_is_not_counted) {
  put_all(w, "1 0 one, 2 1 two");
  world_group(w, "a", "Comm", "one", NULL, NULL);
  world_run(w, 0);
  assert_int_equal(world_groups(w), 1);
  assert_int_equal(world_counts(w)->processes, 2);
  assert_int_equal(world_counts(w)->matched, 1);
}

WORLD_TEST(continue_offers_processes_to_the_rules_below) {
  put_in_unit(w, 1, "/system.slice/web.service", 7);
  put_in_unit(w, 2, "/system.slice/db.service", 12345);
  put_in_unit(w, 3, "/user", 7);
  world_group(w, "user-%{user}", "User", "*", NULL, NULL)->is_view = true;
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  world_other(w, "rest");
  world_run(w, 0);
  world_assert_members(w,
                       "user-seven=2 user-12345=1 web.service=1 db.service=1");
  /* A view takes nothing, so that services and the rest add up to all. */
  assert_int_equal(world_members(w, "rest"), 1);
}

WORLD_TEST(two_rules_with_one_name_count_a_process_once) {
  put(w, 1, 0, "one");
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL)->is_view = true;
  world_group(w, "one", "Comm", "one", NULL, NULL);
  world_run(w, 0);
  assert_int_equal(world_members(w, "one"), 1);
  world_assert(w, "one", "pss=102400");
}

WORLD_TEST(children_take_in_all_descendants) {
  put_all(w, "10 1 init, 20 10 server, 30 20 worker");
  put(w, 40, 10, "worker");
  put_started(w, 5, 30, "script", 900); /* a pid that has wrapped around */
  group_servers(w);
  world_run(w, 0);
  world_assert_members(w, "server=3 rest=2");
}

WORLD_TEST(rule_above_takes_a_child_and_not_its_children) {
  put_all(w, "20 1 server, 30 20 shell, 40 30 worker");
  world_group(w, "shells", "Comm", "shell", NULL, NULL);
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_run(w, 0);
  world_assert_members(w, "shells=1 server=2");
}

WORLD_TEST(orphan_stays_with_its_family) {
  put_all(w, "20 1 server, 30 20 worker");
  world_group(w, "seen", "Comm", "renamed", NULL, NULL)->is_view = true;
  group_servers(w);
  world_run(w, 0);
  assert_int_equal(world_members(w, "server"), 2);
  proctree_end(&w->tree, 20);
  put(w, 30, 1, "worker");
  world_run(w, 1);
  assert_int_equal(world_members(w, "server"), 1);
  /* And when it execs, which its size shows. */
  exec(w, 30, 1, "renamed");
  world_run(w, 1);
  world_assert_members(w, "seen=1 server=1 rest=0");
}

WORLD_TEST(family_follows_when_an_ancestor_execs) {
  put_all(w, "20 1 shell, 30 20 worker, 40 30 helper");
  group_servers(w);
  world_run(w, 0);
  assert_int_equal(world_members(w, "rest"), 3);
  put(w, 20, 1, "server");
  world_run(w, 1);
  assert_int_equal(world_members(w, "server"), 3);
  put(w, 20, 1, "shell");
  world_run(w, 1);
  assert_int_equal(world_members(w, "rest"), 3);
}

/* Every process its neighbour's parent, in a ring: no kernel shows that. */
WORLD_TEST(ring_of_parents_ends) {
  put_all(w, "20 22 a, 21 20 b, 22 21 server");
  for (uint32_t pid = 20; pid <= 22; pid++)
    put_started(w, pid, pid == 20 ? 22 : pid - 1, pid == 22 ? "server" : "x",
                500);
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_run(w, 0);
  assert_true(world_members(w, "server") >= 1);
}

WORLD_TEST(long_line_of_descendants_needs_no_deep_stack) {
  for (uint32_t pid = 2; pid < 3000; pid++)
    put(w, pid, pid - 1, pid == 2 ? "server" : "worker");
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_run(w, 0);
  assert_int_equal(world_members(w, "server"), 2998);
}

/* In the cycle in which it was to follow. */
WORLD_TEST(process_that_cannot_be_inspected_follows_later) {
  put_all(w, "20 1 shell, 30 20 worker");
  group_servers(w);
  world_run(w, 1);
  world_run(w, 1);
  exec(w, 20, 1, "server");
  proctree_write(&w->tree, "30/statm", "x\n", 2);
  proctree_write(&w->tree, "30/stat", "x\n", 2);
  world_run(w, 1);
  assert_int_equal(world_members(w, "server"), 1);
  put(w, 30, 20, "worker");
  world_run(w, 1);
  assert_int_equal(world_members(w, "server"), 2);
}

/* It has one claim before and one after: by another rule, or for another
 * group. */
WORLD_TEST(descendants_follow_from_claim_to_claim) {
  static const char *const comms[] = {"a", "b", "cc", "dd", "a"};

  put_all(w, "20 1 x, 30 20 worker, 40 30 helper");
  world_group(w, "a", "Comm", "a", NULL, NULL)->takes_children = true;
  world_group(w, "b", "Comm", "b", NULL, NULL)->takes_children = true;
  world_group(w, "%{comm}", "Comm", "??", NULL, NULL)->takes_children = true;
  for (size_t i = 0; i < LENGTH(comms); i++) {
    put(w, 20, 1, comms[i]);
    world_run(w, 1);
    if (world_members(w, comms[i]) != 3)
      fail_msg("%s has %u", comms[i], world_members(w, comms[i]));
  }
}

/* Others may have come to share with it meanwhile, or gone. */
WORLD_TEST(process_back_in_a_group_is_read_again) {
  char path[128];

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  put(w, 20, 1, "server");
  snprintf(path, sizeof(path), "%s/x.pid", w->tree.root);
  proctree_write(&w->tree, "x.pid", "20\n", 3);
  world_group(w, "g", "PidFile", path, NULL, NULL);
  world_run_reading(w, 1, 1);
  world_run_reading(w, 1, 0);
  proctree_write(&w->tree, "x.pid", "99\n", 3);
  world_run(w, 1);
  assert_int_equal(world_members(w, "g"), 0);
  proctree_write(&w->tree, "x.pid", "20\n", 3);
  world_run_reading(w, 1, 1);
  assert_int_equal(world_members(w, "g"), 1);
}
