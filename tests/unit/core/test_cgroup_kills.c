/* Processes that were killed for memory, in control groups of our own. */
#include "test.h"

#include <errno.h>

#include "cgroup_world.h"

static void assert_kills(const struct world *w, const char *name, double n) {
  assert_true(world_value(w, name, "oom_kill") == n);
}

#define SYSTEM_B "/system.slice/b.service"
#define OTHER_B "/other.slice/b.service"

/* Makes a control group without kills. */
static void make_spared(struct world *w, const char *path) {
  cgroup_make(w, path, "1000\n");
  cgroup_kill(w, path, 0);
}

/* A second service beside web. */
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

/* The group "web" of process 10 alone, and another that is not in it. */
static void start_web_by_name(struct world *w) {
  make_spared(w, WEB);
  cgroup_join(w, 10, "web", WEB);
  cgroup_join(w, 20, "other", "/user.slice");
  world_group(w, "web", "Unit", "web.service", "Comm", "web");
}

static void run_and_see(struct world *w, const char *name, double kills) {
  world_run(w, 10);
  assert_kills(w, name, kills);
}

/* As the slice tells it, and the host. */
static void kill_in(struct world *w, const char *slice, unsigned n) {
  cgroup_kill(w, slice, n);
  kill_on_host(w, n);
}

/* The second has processes again, and an old count. */
WORLD_TEST(kill_in_the_first_interval_counts) {
  start_web(w);
  kill_web(w, 0);
  world_run(w, 10);
  cgroup_make(w, SYSTEM_B, "1000\n");
  cgroup_join(w, 20, "b", SYSTEM_B);
  cgroup_kill(w, SYSTEM_B, 1);
  kill_on_host(w, 1);
  run_and_see(w, "b.service", 1);
  cgroup_make(w, "/other.slice/c.service", "1000\n");
  cgroup_join(w, 21, "c", "/other.slice/c.service");
  cgroup_kill(w, "/other.slice/c.service", 5);
  run_and_see(w, "c.service", 0);
}

/* Has one kill, and then no member for a cycle. */
static void kill_and_end_web(struct world *w) {
  start_web(w);
  kill_web(w, 0);
  world_run(w, 10);
  kill_web(w, 1);
  run_and_see(w, "web.service", 1);
  end_web(w);
  world_run(w, 10);
}

WORLD_TEST(kills_outlive_a_restart) {
  kill_and_end_web(w);
  /* Then a new control group, with counts from 0. */
  assert_null(world_find(w, "web.service"));
  restart_web(w);
  run_and_see(w, "web.service", 1);
  cgroup_kill(w, WEB, 1);
  kill_on_host(w, 2);
  run_and_see(w, "web.service", 2);
}

/* Nothing was read of the new life, and another was killed meanwhile. */
WORLD_TEST(service_that_is_gone_at_once_brings_no_old_kill) {
  kill_and_end_web(w);
  cgroup_join(w, 11, "web", WEB);
  kill_on_host(w, 2);
  run_and_see(w, "web.service", 1);
}

WORLD_TEST(kill_that_removed_the_control_group_is_told_by_its_parent) {
  start_web(w);
  start_b(w, SYSTEM_B);
  kill_in(w, "/system.slice", 4);
  world_run(w, 10);
  end_web(w);
  restart_web(w);
  /* One kill is another's, and known. */
  cgroup_kill(w, SYSTEM_B, 1);
  kill_in(w, "/system.slice", 6);
  run_and_see(w, "web.service", 1);
  assert_kills(w, "b.service", 1);
  run_and_see(w, "web.service", 1);
}

/* Killed once, and with a name of its own. */
static void start_killed_web(struct world *w) {
  start_web_by_name(w);
  kill_in(w, "/system.slice", 0);
  world_run(w, 10);
  cgroup_kill(w, WEB, 1);
  kill_in(w, "/system.slice", 1);
  run_and_see(w, "web", 1);
}

/* A value that is missing for a cycle would end the alarm, and make another. */
WORLD_TEST(kills_are_shown_while_the_control_group_goes_and_comes) {
  start_killed_web(w);
  cgroup_remove(w, WEB); /* a process of it has been seen yet */
  world_expect(w, 10, "web", "ps_count=1 oom_kill=1 cgroup=nan");
  proctree_end(&w->tree, 10);
  world_expect(w, 10, "web", "ps_count=0 oom_kill=1 cgroup=nan");
  restart_web(w);
  world_expect(w, 10, "web", "ps_count=1 oom_kill=1 cgroup=1000");
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
  world_run(w, 10);
  assert_absent(w, "web", CGROUP_SHARED);
}

/* The host's count has been read when the process is killed. */
WORLD_TEST(kill_during_a_cycle_is_counted_in_the_next) {
  start_killed_web(w);
  cgroup_remove(w, WEB);
  cgroup_kill(w, "/system.slice", 2);
  run_and_see(w, "web", 1);
  proctree_end(&w->tree, 10);
  kill_on_host(w, 2);
  run_and_see(w, "web", 2);
}

/* All that it has counted may be from before. */
WORLD_TEST(parent_that_is_read_for_the_first_time_brings_no_kill) {
  start_web(w);
  kill_web(w, 0);
  world_run(w, 10);
  end_web(w);
  restart_web(w);
  kill_in(w, "/system.slice", 5);
  run_and_see(w, "web.service", 0);
}

/* Either may be the one. */
WORLD_TEST(kill_that_may_be_of_two_is_of_none) {
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
  run_and_see(w, "web.service", 0);
}

WORLD_TEST(kill_while_a_service_was_away_is_not_its_own) {
  start_web(w);
  start_b(w, OTHER_B);
  cgroup_kill(w, "/other.slice", 0);
  kill_in(w, "/system.slice", 0);
  world_run(w, 10);
  cgroup_kill(w, WEB, 1);
  kill_in(w, "/system.slice", 1);
  run_and_see(w, "web.service", 1);
  end_web(w);
  world_run(w, 10);
  kill_in(w, "/system.slice", 2);
  world_run(w, 10);
  restart_web(w);
  cgroup_kill(w, OTHER_B, 1);
  kill_in(w, "/other.slice", 3);
  run_and_see(w, "web.service", 1);
}

/* It keeps what is known of the path alive. */
WORLD_TEST(zombie_of_an_earlier_life_hides_no_kill) {
  struct fake zombie = process(10, "web");

  start_web(w);
  kill_web(w, 0);
  world_run(w, 10);
  kill_web(w, 1);
  run_and_see(w, "web.service", 1);
  zombie.cgroup = WEB;
  zombie.state = 'Z';
  world_put(w, zombie);
  proctree_rename(&w->tree, CGROUPS WEB, CGROUPS "/old");
  cgroup_make(w, WEB, "2000\n");
  cgroup_kill(w, WEB, 1);
  kill_on_host(w, 2);
  cgroup_join(w, 11, "web", WEB);
  run_and_see(w, "web.service", 2);
}

/* As before Linux 4.17, in version 1: they are not asked for in each cycle. */
WORLD_TEST(kernel_that_does_not_count_kills_is_asked_in_one_of_six_cycles) {
  start_web(w);
  kill_on_host(w, 0);
  cgroup_put(w, WEB "/memory.events", "low 0\noom 7\n");
  world_run(w, 10);
  cgroup_kill(w, WEB, 0);
  for (int i = 0; i < 4; i++) {
    world_expect(w, 10, "web.service", "oom_kill=nan");
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
  run_and_see(w, "web.service", 1);
}

WORLD_TEST(empty_group_shows_nothing_of_another_in_its_control_group) {
  start_web_by_name(w);
  world_group(w, "other", "Unit", "web.service", NULL, NULL);
  kill_web(w, 0);
  world_run(w, 10);
  kill_web(w, 1);
  world_run(w, 10);
  proctree_end(&w->tree, 10);
  cgroup_join(w, 11, "shell", WEB);
  world_expect(w, 10, "other", "cgroup=1000 ps_count=1 oom_kill=1");
  assert_absent(w, "web", CGROUP_EMPTY);
}

#define PG "/system.slice/system-pg.slice/pg@1.service"

/* Kills of the whole hierarchy, each as its control group has counted them. */
static void kill_all(struct world *w, unsigned pg, unsigned pg_slice,
                     unsigned system) {
  cgroup_kill(w, PG, pg);
  cgroup_kill(w, "/system.slice/system-pg.slice", pg_slice);
  kill_in(w, "/system.slice", system);
}

static void start_pg(struct world *w) {
  start_web(w);
  cgroup_make(w, PG, "70\n");
  cgroup_make(w, "/system.slice/system-pg.slice", "70\n");
  cgroup_join(w, 20, "pg", PG);
  cgroup_kill(w, WEB, 0);
  kill_all(w, 0, 0, 0);
}

/* The slice has counted that of its unit, too. */
WORLD_TEST(kill_that_two_groups_have_counted_is_of_no_third) {
  start_pg(w);
  world_group(w, "%{slice}", "Slice", "system-pg.slice", NULL, NULL);
  w->settings.rules[0].is_view = true;
  world_run(w, 10);
  end_web(w);
  restart_web(w);
  kill_all(w, 1, 1, 1);
  run_and_see(w, "system-pg.slice", 1);
  assert_kills(w, "pg@1.service", 1);
  assert_kills(w, "web.service", 0);
}

/* Those that it has counted are from before. */
WORLD_TEST(control_group_that_is_whole_again_brings_no_kill) {
  cgroup_make(w, WEB, "1000\n");
  cgroup_make(w, "/b.service", "70\n");
  cgroup_join(w, 10, "web", WEB);
  cgroup_join(w, 20, "b", "/b.service");
  world_group(w, "web", "Unit", "web.service", "Comm", "web");
  world_group(w, "b", "Unit", "b.service", NULL, NULL);
  cgroup_kill(w, WEB, 5);
  cgroup_kill(w, "/b.service", 0);
  kill_on_host(w, 5);
  world_run(w, 10);
  cgroup_join(w, 11, "cron", WEB);
  world_run(w, 10);
  world_run(w, 10);
  proctree_end(&w->tree, 11);
  cgroup_kill(w, "/b.service", 1);
  kill_on_host(w, 6);
  world_run(w, 10);
  assert_kills(w, "b", 1);
  assert_kills(w, "web", 0);
}

/* As with systemd's ProcSubset=pid. */
WORLD_TEST(kills_are_looked_for_with_the_limit_where_the_host_shows_none) {
  start_web(w);
  cgroup_kill(w, WEB, 5);
  world_run(w, 10);
  cgroup_kill(w, WEB, 6);
  world_run_times(w, 6, 10);
  assert_kills(w, "web.service", 1);
}

/* One in a minute, for four hours: those of an hour and an eighth at most. */
WORLD_TEST(kills_without_an_end_count_for_an_hour) {
  start_web(w);
  kill_web(w, 0);
  world_run(w, 60);
  for (unsigned i = 1; i <= 240; i++) {
    double kills;

    kill_web(w, i);
    world_run(w, 60);
    kills = world_value(w, "web.service", "oom_kill");
    assert_true(i < 60 ? kills == i : kills >= 60 && kills <= 69);
  }
  world_run(w, 3500);
  assert_true(world_value(w, "web.service", "oom_kill") > 0);
  world_run(w, 200);
  assert_kills(w, "web.service", 0);
}
