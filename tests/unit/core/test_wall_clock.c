/*
 * The time of day is what documents are stamped with, and nothing else: it is
 * set forward or back before each cycle, and what the cycle does is the same as
 * by a clock that is right.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "collected.h"
#include "parsed.h"

#define HOUR 3600

/* By so much before each cycle, and how far it is set in all. */
static int64_t step_s, set_s;

static void run(struct world *w, unsigned seconds) {
  world_step(step_s);
  set_s += step_s;
  world_run(w, seconds);
}

static void under_each_clock(void (*scenario)(struct world *w)) {
  static const int64_t steps[] = {0, 5 * HOUR, -9 * HOUR, 1};

  for (size_t i = 0; i < LENGTH(steps); i++) {
    void *state;

    step_s = steps[i];
    set_s = 0;
    collected_setup(&state);
    scenario(state);
    collected_teardown(&state);
  }
}

/* --- what is decided --------------------------------------------------------
 */

#define MAX_AGE_SECONDS 60

/* The age of a reading is the time since, and none gets older than MaxAge. */
static void grow_old(struct world *w) {
  unsigned age = 0, readings = 0;

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  w->settings.policy.max_age_ns = MAX_AGE_SECONDS * NS;
  w->settings.interval_ns = 10 * NS;
  world_watch(w, process(10, "a"));
  run(w, 10);
  for (int i = 0; i < 60; i++) {
    run(w, 10);
    readings += world_counts(w)->rollup_reads == 1;
    age = world_counts(w)->rollup_reads == 1 ? 0 : age + 10;
    assert_true(fabs(world_value(w, "g", "age") - age) < 0.1);
    assert_in_range(age, 0, MAX_AGE_SECONDS);
    assert_true(world_kb(w, "g", "pss") == 120);
    assert_true(world_counts(w)->cycle_ns < NS);
  }
  assert_in_range(readings, 10, 20);
}

TEST(a_reading_ages_by_the_time_that_passes) { under_each_clock(grow_old); }

/* Another process of group %{comm} in the place of the last. */
static void put_next(struct world *w, char name) {
  static uint32_t pid;

  proctree_end(&w->tree, pid);
  world_put(w, process(++pid, (char[]){name, '\0'}));
}

/* MaxGroups is 1: one name is free, and then there is one an hour. */
static void name_groups(struct world *w) {
  w->settings.max_groups = 1;
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  for (char name = 'a'; name <= 'b'; name++) {
    put_next(w, name);
    run(w, 10);
    assert_int_equal(world_counts(w)->groups_refused, 0);
  }
  put_next(w, 'c');
  for (int seconds = 0; seconds < HOUR - 10; seconds += 10) {
    run(w, 10);
    assert_int_equal(world_counts(w)->groups_refused, 1);
  }
  run(w, 10);
  assert_int_equal(world_counts(w)->groups_refused, 0);
  world_assert_members(w, "c=1");
}

TEST(a_new_name_waits_for_an_hour_that_passes) {
  under_each_clock(name_groups);
}

static void refuse(struct world *w) {
  world_watch(w, process(10, "a"));
  opens.counted = "smaps_rollup";
  opens_refuse("smaps_rollup", EACCES);
  for (int seconds = 0; seconds < 3 * HOUR; seconds += 10) {
    run(w, 10);
    assert_int_equal(opens.opened, 1 + seconds / HOUR);
    world_assert(w, "g", "pss=nan ps_count=1 unreadable=1");
  }
}

TEST(a_refusal_is_asked_about_after_an_hour_that_passes) {
  under_each_clock(refuse);
}

static void move(struct world *w) {
  static const char *const cgroups[] = {"/system.slice/one.service",
                                        "/system.slice/two.service"};
  struct fake f = process(10, "a");
  unsigned reads = 0;

  w->settings.interval_ns = 10 * NS;
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  opens.counted = "cgroup";
  for (int i = 0; i < 6; i++) {
    f.cgroup = cgroups[i % 2];
    world_put(w, f);
    for (int seconds = 0; seconds < 60; seconds += 10)
      run(w, 10);
    world_assert_members(w, i % 2 ? "two.service=1" : "one.service=1");
    /* Once more to find the files of a new control group. */
    assert_in_range(opens.opened - reads, 1, 3);
    reads = opens.opened;
  }
}

TEST(names_are_looked_at_each_minute_that_passes) { under_each_clock(move); }

/* The same of a link. */
static void refuse_link(struct world *w) {
  struct fake f = process(16, "a");

  f.start_stack = 0;
  world_group(w, "g", "Executable", "/usr/bin/thing", NULL, NULL);
  opens.refused_link = "exe";
  for (int minute = 0; minute < 200; minute++) {
    f.switches++;
    world_put(w, f);
    run(w, 60);
    if (minute % 60 == 50)
      assert_int_equal(opens.refused, 1 + minute / 60);
  }
}

TEST(an_executable_is_asked_for_after_an_hour_that_passes) {
  under_each_clock(refuse_link);
}

#define BAD_FILE "/run/bad.pid"

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
  va_list args;
  mode_t mode;

  va_start(args, flags);
  mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  va_end(args);
  if (strcmp(path, BAD_FILE) != 0)
    return __real_open(path, flags, mode);
  errno = EIO;
  return -1;
}

static void note(struct world *w) {
  world_put(w, process(10, "a"));
  world_group(w, "g", "PidFile", BAD_FILE, NULL, NULL);
  for (int i = 0; i < 3; i++) {
    run(w, 2 * HOUR);
    assert_int_equal(world_diag(w, DIAG_PID_FILE)->count, 1);
  }
  for (int seconds = 0; seconds < HOUR - 20; seconds += 20) {
    run(w, 20);
    assert_int_equal(world_diag(w, DIAG_PID_FILE)->count, 0);
  }
}

TEST(a_pid_file_is_noted_after_an_hour_that_passes) { under_each_clock(note); }

/* --- what is written --------------------------------------------------------
 */

/* The clock says so much, to the second. */
static uint64_t clock_s(unsigned seconds) {
  return WORLD_WALL_NS / NS + (uint64_t)seconds + (uint64_t)set_s;
}

static void assert_time(const struct world_written *written, uint64_t time) {
  parsed d = parsed_file(written->path);

  assert_int_equal(written->error, 0);
  assert_true((uint64_t)parsed_decimal(d, "time") == time);
  parsed_free(d);
}

/* The first cycle is at 0 seconds; a state is written each minute. */
static void write_states(struct world *w) {
  size_t n = 0;

  w->settings.interval_ns = 10 * NS;
  world_keep_state(w);
  world_watch(w, process(10, "a"));
  for (unsigned seconds = 0; seconds < 600; seconds += 10) {
    run(w, 10);
    if (seconds % 60 == 0)
      assert_time(world_written(n++), clock_s(seconds));
  }
  world_stop(w);
  assert_int_equal(world_n_written(), n);
}

TEST(a_state_is_written_at_its_interval_and_says_the_time) {
  under_each_clock(write_states);
}

/* And runs the first cycle. */
static void keep_captures(struct world *w) {
  world_keep_captures(w);
  world_put_mapped(w, process(10, "a"), NULL);
  world_group(w, "g", "Comm", "*", NULL, NULL);
  world_run(w, 10);
}

static const char *name_of(const struct world_written *written) {
  return strrchr(written->path, '/') + 1;
}

static void assert_called(const struct world_written *written, uint64_t time) {
  time_t when = (time_t)time;
  char name[64];
  struct tm tm;

  assert_non_null(gmtime_r(&when, &tm));
  assert_true(strftime(name, sizeof(name), "smaps-%Y%m%dT%H%M%SZ-g.json", &tm));
  assert_string_equal(name_of(written), name);
}

/* An alarm in each cycle. The group cools down for 300 seconds, and two files
 * are kept: the one just written is among them, whatever it is called. */
static void capture(struct world *w) {
  size_t n = 0;

  w->settings.interval_ns = 10 * NS;
  w->settings.capture.max_files = 2;
  keep_captures(w);
  for (unsigned seconds = 10; seconds <= 1510; seconds += 10) {
    world_raise(w, "g");
    run(w, 10);
    if (seconds % 300 != 10)
      continue;
    assert_time(world_written(n), clock_s(seconds));
    assert_called(world_written(n++), clock_s(seconds));
  }
  world_stop(w);
  assert_int_equal(world_n_written(), n);
}

TEST(a_capture_is_called_by_the_time_and_cools_down_as_it_passes) {
  under_each_clock(capture);
}

/* The clock is set back to where it was at the last capture. */
WORLD_TEST(a_second_that_comes_again_has_a_name_of_its_own) {
  static const char *const names[] = {"smaps-20261121T134511Z-g.json",
                                      "smaps-20261121T134511Z-g.1.json",
                                      "smaps-20261121T134511Z-g.2.json"};

  w->settings.capture.cooldown_ns = 0;
  keep_captures(w);
  for (size_t i = 0; i < LENGTH(names); i++) {
    world_raise(w, "g");
    world_run(w, 10);
    world_step(-10);
    assert_string_equal(name_of(world_written(i)), names[i]);
  }
  for (size_t i = 0; i < LENGTH(names); i++)
    assert_time(world_written(i), WORLD_WALL_NS / NS + 10);
}
