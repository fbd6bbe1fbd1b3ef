/* Processes that were killed for memory, in control groups of our own. */
#include "test.h"

#include <errno.h>

#include "cgroup_world.h"

static void assert_kills(const struct world *w, const char *name, double n) {
  assert_true(world_value(w, name, "oom_kill") == n);
}

WORLD_TEST(kills_before_the_first_cycle_do_not_count) {
  start_web(w);
  kill_web(w, 5);
  world_run(w, 10);
  assert_kills(w, "web.service", 0);
  kill_web(w, 7);
  world_run(w, 10);
  assert_kills(w, "web.service", 2);
}

WORLD_TEST(kills_count_for_an_hour) {
  start_web(w);
  kill_web(w, 0);
  world_run(w, 10);
  kill_web(w, 1);
  world_run(w, 10);
  world_run(w, 1800);
  assert_kills(w, "web.service", 1);
  kill_web(w, 3);
  world_run(w, 1700);
  assert_kills(w, "web.service", 3);
  world_run(w, 200);
  assert_kills(w, "web.service", 2);
  world_run(w, 3500);
  assert_kills(w, "web.service", 0);
}

WORLD_TEST(kills_outlive_a_restart) {
  start_web(w);
  kill_web(w, 0);
  world_run(w, 10);
  kill_web(w, 1);
  world_run(w, 10);
  assert_kills(w, "web.service", 1);
  /* No member for a cycle; then a new control group, with counts from 0. */
  proctree_end(&w->tree, 10);
  proctree_unlink(&w->tree, "cg" WEB);
  world_run(w, 10);
  assert_null(world_find(w, "web.service"));
  cgroup_make(w, WEB, "1000\n");
  cgroup_kill(w, WEB, 0);
  cgroup_join(w, 11, "web", WEB);
  world_run(w, 10);
  assert_kills(w, "web.service", 1);
  cgroup_kill(w, WEB, 1);
  kill_on_host(w, 2);
  world_run(w, 10);
  assert_kills(w, "web.service", 2);
}

/* systemd removes it before anyone can read its count. */
WORLD_TEST(kill_that_removed_the_control_group_is_told_by_its_parent) {
  start_web(w);
  cgroup_make(w, "/system.slice/b.service", "70\n");
  cgroup_join(w, 20, "b", "/system.slice/b.service");
  cgroup_kill(w, WEB, 0);
  cgroup_kill(w, "/system.slice/b.service", 0);
  cgroup_kill(w, "/system.slice", 4);
  kill_on_host(w, 4);
  world_run(w, 10);
  proctree_end(&w->tree, 10);
  proctree_unlink(&w->tree, "cg" WEB);
  cgroup_make(w, WEB, "1000\n");
  cgroup_kill(w, WEB, 0);
  cgroup_join(w, 11, "web", WEB);
  /* One kill is another's, and known. */
  cgroup_kill(w, "/system.slice/b.service", 1);
  cgroup_kill(w, "/system.slice", 6);
  kill_on_host(w, 6);
  world_run(w, 10);
  assert_kills(w, "web.service", 1);
  assert_kills(w, "b.service", 1);
  world_run(w, 10);
  assert_kills(w, "web.service", 1);
}

WORLD_TEST(group_that_was_killed_shows_it_without_members) {
  cgroup_make(w, WEB, "1000\n");
  cgroup_join(w, 10, "web", WEB);
  cgroup_join(w, 20, "other", "/user.slice");
  world_group(w, "web", "Unit", "web.service", NULL, NULL);
  cgroup_kill(w, WEB, 0);
  cgroup_kill(w, "/system.slice", 0);
  kill_on_host(w, 0);
  world_run(w, 10);
  proctree_end(&w->tree, 10);
  proctree_unlink(&w->tree, "cg" WEB);
  cgroup_kill(w, "/system.slice", 1);
  kill_on_host(w, 1);
  world_run(w, 10);
  world_assert(w, "web", "ps_count=0 oom_kill=1 cgroup=nan");
  world_run(w, 3700);
  assert_absent(w, "web", CGROUP_EMPTY);
}

/* Either may be the one. */
WORLD_TEST(kill_that_may_be_of_two_is_of_none) {
  start_web(w);
  cgroup_make(w, "/system.slice/b.service", "70\n");
  cgroup_join(w, 20, "b", "/system.slice/b.service");
  cgroup_kill(w, WEB, 0);
  cgroup_kill(w, "/system.slice/b.service", 0);
  cgroup_kill(w, "/system.slice", 0);
  kill_on_host(w, 0);
  world_run(w, 10);
  proctree_end(&w->tree, 10);
  proctree_end(&w->tree, 20);
  proctree_unlink(&w->tree, "cg" WEB);
  proctree_unlink(&w->tree, "cg/system.slice/b.service");
  cgroup_kill(w, "/system.slice", 1);
  kill_on_host(w, 1);
  world_run(w, 10);
  cgroup_make(w, WEB, "1000\n");
  cgroup_kill(w, WEB, 0);
  cgroup_join(w, 11, "web", WEB);
  world_run(w, 10);
  assert_kills(w, "web.service", 0);
}

WORLD_TEST(control_group_that_ends_while_another_is_killed_was_not) {
  start_web(w);
  cgroup_make(w, "/other.slice/b.service", "70\n");
  cgroup_join(w, 20, "b", "/other.slice/b.service");
  cgroup_kill(w, WEB, 0);
  cgroup_kill(w, "/other.slice/b.service", 0);
  cgroup_kill(w, "/system.slice", 0);
  cgroup_kill(w, "/other.slice", 0);
  kill_on_host(w, 0);
  world_run(w, 10);
  proctree_end(&w->tree, 10);
  cgroup_join(w, 11, "web", WEB);
  proctree_unlink(&w->tree, "cg" WEB);
  cgroup_make(w, WEB, "1000\n");
  cgroup_kill(w, WEB, 0);
  cgroup_kill(w, "/other.slice/b.service", 1);
  cgroup_kill(w, "/other.slice", 1);
  kill_on_host(w, 1);
  world_run(w, 10);
  assert_kills(w, "web.service", 0);
  assert_kills(w, "b.service", 1);
}

/* It keeps what is known of the path alive. */
WORLD_TEST(zombie_of_an_earlier_life_hides_no_kill) {
  struct fake zombie = process(10, "web");

  start_web(w);
  kill_web(w, 0);
  world_run(w, 10);
  kill_web(w, 1);
  world_run(w, 10);
  assert_kills(w, "web.service", 1);
  zombie.cgroup = WEB;
  zombie.state = 'Z';
  world_put(w, zombie);
  proctree_rename(&w->tree, "cg" WEB, "cg/old");
  cgroup_make(w, WEB, "2000\n");
  cgroup_kill(w, WEB, 1);
  kill_on_host(w, 2);
  cgroup_join(w, 11, "web", WEB);
  world_run(w, 10);
  assert_kills(w, "web.service", 2);
}

/* As before Linux 4.17, in version 1: they are not asked for in each cycle. */
WORLD_TEST(kernel_that_does_not_count_kills_is_asked_in_one_of_six_cycles) {
  start_web(w);
  kill_on_host(w, 0);
  cgroup_put(w, WEB "/memory.events", "low 0\noom 7\n");
  world_run(w, 10);
  cgroup_kill(w, WEB, 0);
  for (int i = 0; i < 4; i++) {
    world_run(w, 10);
    world_assert(w, "web.service", "oom_kill=nan");
  }
  world_run(w, 10);
  assert_kills(w, "web.service", 0);
}

WORLD_TEST(kill_is_counted_though_vmstat_could_not_be_read) {
  start_web(w);
  kill_web(w, 0);
  world_run(w, 10);
  opens.failing = "vmstat";
  opens.error = EMFILE;
  opens.failures = 1;
  kill_web(w, 1);
  world_run(w, 10);
  world_run(w, 10);
  assert_kills(w, "web.service", 1);
}

WORLD_TEST(empty_group_shows_nothing_of_another_in_its_control_group) {
  cgroup_make(w, WEB, "1000\n");
  cgroup_join(w, 10, "web", WEB);
  cgroup_join(w, 9, "out", "/user.slice");
  world_group(w, "web", "Unit", "web.service", "Comm", "web");
  world_group(w, "other", "Unit", "web.service", NULL, NULL);
  kill_web(w, 0);
  world_run(w, 10);
  kill_web(w, 1);
  world_run(w, 10);
  proctree_end(&w->tree, 10);
  cgroup_join(w, 11, "shell", WEB);
  world_run(w, 10);
  world_assert(w, "other", "cgroup=1000 ps_count=1 oom_kill=1");
  assert_absent(w, "web", CGROUP_EMPTY);
}
