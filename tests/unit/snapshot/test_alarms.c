/* SPDX-License-Identifier: MIT */
/* The alarms of whole cycles: their sentences, and their captures. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capturing.h"

#define ALARMS_TEST(name)                                                      \
  TEST_WITH(name, zoned_setup, world_teardown, struct world *w)

/* The world's clock says 13:45 in UTC. */
static int zoned_setup(void **state) {
  setenv("TZ", "UTC", 1);
  world_setup(state);
  ((struct world *)*state)->settings.report.alarms =
      settings_defaults.report.alarms;
  world_put(*state, fake_process(1, "init"));
  return 0;
}

/* The messages of the last cycle. */
static void expect(const struct world *w, const char *message) {
  const struct cycle_results *r = collector_results(w->collector);
  const char *found = r->n_alarms ? r->alarms[0].message : "";

  assert_true(r->n_alarms <= 1);
  assert_string_equal(found, message);
}

static struct fake service(uint32_t pid, unsigned kb) {
  struct fake f = fake_process(pid, "g");

  f.starttime = pid;
  f.private_kb = kb;
  return f;
}

/* Group "g" in a control group of 100 MB. */
static void put_cgroup(struct world *w, const char *use, unsigned kills) {
  static const char path[] = "sys/fs/cgroup/system.slice/g.service";
  char name[128], text[64];

  snprintf(name, sizeof(name), "%s/memory.current", path);
  proctree_write(&w->tree, name, use, strlen(use));
  snprintf(name, sizeof(name), "%s/memory.max", path);
  proctree_write(&w->tree, name, TEXT("104857600\n"));
  snprintf(name, sizeof(name), "%s/memory.events", path);
  snprintf(text, sizeof(text), "oom_kill %u\n", kills);
  proctree_write(&w->tree, name, text, strlen(text));
  proctree_print(&w->tree, 0, "vmstat", "oom_kill %u\n", kills);
}

static void put_member(struct world *w, unsigned kb) {
  struct fake f = service(10, kb);

  f.cgroup = "/system.slice/g.service";
  world_put(w, f);
}

static void start_limited(struct world *w) {
  put_member(w, 50000);
  put_cgroup(w, "52428800\n", 0);
  world_group(w, "g", "Unit", "g.service", NULL, NULL);
  world_run_times(w, 3, 10);
}

ALARMS_TEST(end_and_how_long_it_took) {
  const struct cycle_results *r;

  world_put(w, service(10, 1000));
  world_group(w, "g", "Comm", "g", NULL, NULL);
  world_run_times(w, 3, 10);
  proctree_end(&w->tree, 10);
  world_run(w, 10);
  expect(w, "");
  world_run(w, 10);
  expect(w, "g: no process is left");
  r = collector_results(w->collector);
  assert_int_equal(r->alarms[0].severity, SEVERITY_FAILURE);
  assert_string_equal(r->alarms[0].group, "g");
  assert_string_equal(r->alarms[0].type_instance, "ended");
  assert_true(r->alarms[0].is_own);
  assert_int_equal(r->alarms[0].since_ns, r->alarms[0].time_ns);
  assert_false(r->alarms[0].summary.has_pss);
  world_run_times(w, 120, 10);
  expect(w, "");
  world_put(w, service(11, 1000));
  world_run_times(w, 3, 10);
  expect(w, "g: over after 20m30s: no process was left");
  assert_int_equal(r->alarms[0].severity, SEVERITY_OKAY);
  assert_int_equal((r->alarms[0].time_ns - r->alarms[0].since_ns) / NS, 1230);
}

ALARMS_TEST(limit_with_its_amount) {
  start_limited(w);
  expect(w, "");
  put_cgroup(w, "96468992\n", 0);
  world_run(w, 10);
  expect(w, "g: 92 % of 100 MiB in use");
  world_run(w, 10);
  expect(w, "");
  put_cgroup(w, "52428800\n", 0);
  world_run_times(w, 3, 10);
  expect(w, "g: over after 40s: its limit was nearly reached");
}

ALARMS_TEST(kills_with_their_number) {
  start_limited(w);
  put_cgroup(w, "52428800\n", 1);
  world_run(w, 10);
  expect(w, "");
  world_run(w, 10);
  expect(w, "g: 1 process killed for memory in the last hour");
  put_cgroup(w, "52428800\n", 3);
  world_run(w, 10);
  expect(w, "");
  world_run_times(w, 29, 10);
  expect(w, "g: 3 processes killed for memory in the last hour");
}

static void put_worker(struct world *w, uint32_t pid, unsigned kb) {
  struct fake f = service(pid, kb);

  f.cgroup = "/system.slice/g.service";
  world_put(w, f);
}

/* The victim is still listed when the kernel has counted it. Of what ends then
 * the largest is named, and of what ends later nothing. */
ALARMS_TEST(a_killed_process_is_named) {
  world_keep_captures(w);
  put_worker(w, 11, 20000);
  put_worker(w, 12, 3000);
  put_worker(w, 13, 4000);
  start_limited(w);
  put_cgroup(w, "52428800\n", 1);
  world_run(w, 10);
  expect(w, "");
  proctree_end(&w->tree, 11);
  proctree_end(&w->tree, 12);
  world_run(w, 10);
  expect(w, "g: 1 process killed for memory in the last hour, largest gone: 11 "
            "g, last seen with 19.5 MiB");
  put_cgroup(w, "52428800\n", 2);
  world_run_times(w, 29, 10);
  proctree_end(&w->tree, 13);
  world_run(w, 10);
  expect(w, "g: 2 processes killed for memory in the last hour");
}

/* systemd has stopped what was left, but some time later. */
ALARMS_TEST(an_end_after_a_kill_names_both) {
  start_limited(w);
  put_cgroup(w, "52428800\n", 1);
  world_run_times(w, 3, 10);
  proctree_end(&w->tree, 10);
  world_run_times(w, 2, 10);
  expect(w, "g: no process is left, 1 process killed for memory in the last "
            "hour");
}

/* The kill waits for its 5 minutes. */
ALARMS_TEST(a_kill_that_waits_hides_no_limit) {
  start_limited(w);
  put_cgroup(w, "52428800\n", 1);
  world_run_times(w, 3, 10);
  put_cgroup(w, "96468992\n", 2);
  world_run(w, 10);
  expect(w, "g: 92 % of 100 MiB in use");
  assert_int_equal(collector_results(w->collector)->alarms[0].severity,
                   SEVERITY_WARNING);
  assert_string_equal(collector_results(w->collector)->alarms[0].type_instance,
                      "cgroup_limit");
}

/* The kill was told: the sentence is about the limit. */
ALARMS_TEST(a_limit_after_a_kill_says_what_it_is) {
  start_limited(w);
  put_cgroup(w, "52428800\n", 1);
  world_run_times(w, 31, 10);
  put_cgroup(w, "96468992\n", 1);
  world_run(w, 10);
  expect(w, "g: 92 % of 100 MiB in use");
}

/* 6 MB in each minute of the half of an hour that a window of ten minutes and
 * a captured meminfo need; MemAvailable is 512 MiB. */
ALARMS_TEST(growth_with_its_beginning_and_its_end) {
  w->settings.report.growth_window_ns = 600 * NS;
  world_group(w, "g", "Comm", "g", NULL, NULL);
  for (unsigned i = 0; i < 60; i++) {
    const struct cycle_results *r;

    world_put(w, service(10, 50000 + 1000 * i));
    world_run(w, 10);
    r = collector_results(w->collector);
    if (r->n_alarms == 0)
      continue;
    expect(w, "g: growing by 5.86 MiB a minute since 13:45, full at 15:15 (in "
              "1h27m)");
    assert_int_equal(r->alarms[0].severity, SEVERITY_FAILURE);
    assert_int_equal(r->alarms[0].summary.largest[0].pid, 10);
    assert_int_equal(r->alarms[0].summary.pss_bytes, (50000 + 1000 * i) * KIB);
    return;
  }
  fail_msg("no alarm");
}

ALARMS_TEST(memory_that_becomes_unknown) {
  world_put(w, service(10, 1000));
  world_group(w, "g", "Comm", "g", NULL, NULL);
  world_run_times(w, 3, 10);
  proctree_write(&w->tree, "10/smaps_rollup", TEXT("?\n"));
  proctree_write(&w->tree, "10/statm", TEXT("?\n"));
  world_run_times(w, 3, 10);
  expect(w, "g: its memory is unknown: 1 of 1 processes cannot be read");
}

/* Other has what the rules leave, which may be nothing. */
ALARMS_TEST(other_may_end) {
  world_put(w, service(10, 1000));
  world_other(w, "rest");
  world_group(w, "init", "Comm", "init", NULL, NULL);
  world_run_times(w, 3, 10);
  world_assert_members(w, "rest=1");
  proctree_end(&w->tree, 10);
  for (int i = 0; i < 5; i++) {
    world_run(w, 10);
    expect(w, "");
  }
  world_assert_members(w, "rest=0");
}

ALARMS_TEST(alarms_can_be_turned_off) {
  struct rule *r;

  world_put(w, service(10, 1000));
  r = world_group(w, "g", "Comm", "g", NULL, NULL);
  for (int i = 0; i < ALARM_CAUSES; i++)
    r->report.alarms.causes[i] = CHOICE_NO;
  world_run_times(w, 3, 10);
  proctree_end(&w->tree, 10);
  for (int i = 0; i < 5; i++) {
    world_run(w, 10);
    expect(w, "");
  }
}

/* The rest waits for the next cycle. */
ALARMS_TEST(a_cycle_tells_ten_alarms) {
  char name[8];

  for (uint32_t i = 0; i < 25; i++) {
    struct fake f = service(10 + i, 1000);

    snprintf(name, sizeof(name), "g%u", i);
    f.comm = name;
    world_put(w, f);
    world_group(w, name, "Comm", name, NULL, NULL);
  }
  world_run_times(w, 2, 10);
  for (uint32_t i = 0; i < 25; i++)
    proctree_end(&w->tree, 10 + i);
  world_run_times(w, 2, 10);
  assert_int_equal(collector_results(w->collector)->n_alarms, 10);
  world_run(w, 10);
  assert_int_equal(collector_results(w->collector)->n_alarms, 10);
  world_run(w, 10);
  assert_int_equal(collector_results(w->collector)->n_alarms, 5);
  world_run(w, 10);
  assert_int_equal(collector_results(w->collector)->n_alarms, 0);
}

/* There is one notification for both. */
ALARMS_TEST(an_alarm_waits_for_its_capture) {
  world_keep_captures(w);
  start_limited(w);
  put_cgroup(w, "96468992\n", 0);
  proctree_write(&w->tree, "10/smaps", "", 0);
  world_run(w, 10);
  expect(w, "g: 92 % of 100 MiB in use");
  assert_true(collector_results(w->collector)->alarms[0].has_capture);
  assert_int_equal(world_written(0)->alarm.id,
                   collector_results(w->collector)->alarms[0].id);
  assert_string_equal(world_written(0)->subject, "g");
  assert_string_equal(world_written(0)->alarm.message,
                      "g: 92 % of 100 MiB in use");
  assert_true(world_written(0)->alarm.is_own);
  assert_int_equal(world_written(0)->summary.limit_bytes, 104857600);
}

/* OnNotification is "failure": there is no capture to wait for. */
ALARMS_TEST(a_severity_without_captures_is_told_at_once) {
  world_keep_captures(w);
  w->settings.capture.severities = SEVERITY_FAILURE;
  start_limited(w);
  put_cgroup(w, "96468992\n", 0);
  world_run(w, 10);
  expect(w, "g: 92 % of 100 MiB in use");
  assert_false(collector_results(w->collector)->alarms[0].has_capture);
}

/* --- over a restart of the daemon --- */

/* What was told is not told again, and its end has the whole time. */
ALARMS_TEST(alarm_goes_on_after_a_restart) {
  world_remember(w);
  world_put(w, service(10, 1000));
  world_group(w, "g", "Comm", "g", NULL, NULL);
  world_run_times(w, 3, 10);
  proctree_end(&w->tree, 10);
  world_run_times(w, 2, 10);
  expect(w, "g: no process is left");
  world_stop(w);
  for (int i = 0; i < 10; i++) {
    world_run(w, 10);
    expect(w, "");
  }
  world_put(w, service(11, 1000));
  world_run_times(w, 3, 10);
  expect(w, "g: over after 2m10s: no process was left");
}

ALARMS_TEST(service_that_ends_while_the_daemon_is_down_is_told) {
  world_remember(w);
  world_put(w, service(10, 1000));
  world_group(w, "g", "Comm", "g", NULL, NULL);
  world_run_times(w, 3, 10);
  world_stop(w);
  proctree_end(&w->tree, 10);
  world_run_times(w, 2, 10);
  expect(w, "");
  world_run(w, 10);
  expect(w, "g: no process is left");
}

ALARMS_TEST(kill_is_told_once_over_a_restart) {
  world_remember(w);
  start_limited(w);
  put_cgroup(w, "52428800\n", 1);
  world_run_times(w, 2, 10);
  expect(w, "g: 1 process killed for memory in the last hour");
  world_stop(w);
  for (int i = 0; i < 60; i++) {
    world_run(w, 10);
    expect(w, "");
  }
}

/* After 5 minutes, as without a restart. */
ALARMS_TEST(further_kill_while_the_daemon_is_down_is_told) {
  world_remember(w);
  start_limited(w);
  put_cgroup(w, "52428800\n", 1);
  world_run_times(w, 2, 10);
  expect(w, "g: 1 process killed for memory in the last hour");
  world_stop(w);
  put_cgroup(w, "52428800\n", 2);
  for (int i = 0; i < 29; i++) {
    world_run(w, 10);
    expect(w, "");
  }
  world_run(w, 10);
  expect(w, "g: 2 processes killed for memory in the last hour");
}

ALARMS_TEST(kill_while_the_daemon_is_down_is_told) {
  world_remember(w);
  start_limited(w);
  world_stop(w);
  put_cgroup(w, "52428800\n", 1);
  world_run_times(w, 2, 10);
  expect(w, "g: 1 process killed for memory in the last hour");
}

/* A template has no group while no process is there. */
ALARMS_TEST(kill_is_told_when_the_service_is_back) {
  world_remember(w);
  put_member(w, 50000);
  put_cgroup(w, "52428800\n", 0);
  world_group(w, "%{unit}", "Unit", "*.service", NULL, NULL);
  world_run_times(w, 3, 10);
  world_stop(w);
  proctree_end(&w->tree, 10);
  put_cgroup(w, "52428800\n", 1);
  for (int i = 0; i < 4; i++) {
    world_run(w, 10);
    expect(w, "");
  }
  put_member(w, 50000);
  world_run(w, 10);
  expect(w, "");
  world_run(w, 10);
  expect(w, "g.service: 1 process killed for memory in the last hour");
  world_run_times(w, 2, 10);
  expect(w, "");
}

/* It is not told yet. */
ALARMS_TEST(kill_just_before_a_restart_is_told) {
  world_remember(w);
  start_limited(w);
  put_cgroup(w, "52428800\n", 1);
  world_run(w, 10);
  expect(w, "");
  world_stop(w);
  world_run_times(w, 2, 10);
  expect(w, "g: 1 process killed for memory in the last hour");
}

/* What waits for its capture may not have reached a program any more. */
ALARMS_TEST(alarm_that_is_to_be_told_again_is_told_after_a_restart) {
  world_remember(w);
  start_limited(w);
  put_cgroup(w, "96468992\n", 0);
  world_run(w, 10);
  expect(w, "g: 92 % of 100 MiB in use");
  collector_tell_again(w->collector, "g");
  world_stop(w);
  world_run(w, 10);
  expect(w, "");
  world_run(w, 10);
  expect(w, "g: 92 % of 100 MiB in use");
}
