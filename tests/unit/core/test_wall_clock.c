/*
 * The time of day is what documents are stamped with, and nothing else: it is
 * set forward or back before each cycle, and what the cycle does is the same as
 * by a clock that is right.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "collected.h"
#include "parsed.h"

#define HOUR 3600

/* By so much before each cycle, and how far it is set in all. */
static int64_t step_s, set_s;
static const int64_t steps[] = {0, 5 * HOUR, -9 * HOUR, 1};

static void run(struct world *w, unsigned seconds) {
  world_step(step_s);
  set_s += step_s;
  world_run(w, seconds);
}

static void under_each_clock(void (*scenario)(struct world *w)) {
  for (size_t i = 0; i < LENGTH(steps); i++) {
    void *state;

    step_s = steps[i];
    set_s = 0;
    collected_setup(&state);
    scenario(state);
    collected_teardown(&state);
  }
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

/* --- what is decided --- */

static const char *const cgroups[] = {"/system.slice/one.service",
                                      "/system.slice/two.service"};

/* What a process of each kind is like in a cycle: "a" grows old; "b" has a
 * program that is refused, and no address that would tell of an exec; "m" moves
 * to another control group each minute, and one after the other are of group
 * %{comm}, of which there may be one an hour. */
static void put_all(struct world *w, unsigned cycle) {
  struct fake b = process(16, "b"), m = process(12, "m");
  unsigned minute = cycle / 6;
  char name[16];

  b.start_stack = 0;
  b.switches = cycle;
  world_put(w, b);
  m.cgroup = cgroups[minute % 2];
  world_put(w, m);
  if (cycle % 60 == 0) {
    proctree_end(&w->tree, 40 + cycle);
    snprintf(name, sizeof(name), "n%u", minute);
    world_put(w, process(100 + cycle, name));
  }
}

static void add_groups(struct world *w) {
  world_group(w, "old", "Comm", "a", NULL, NULL);
  world_group(w, "program", "Executable", "/usr/bin/thing", "Comm", "b");
  world_group(w, "%{unit}", "Comm", "m", "Unit", "*");
  world_group(w, "%{comm}", "Comm", "n*", NULL, NULL);
  world_group(w, "pid", "PidFile", BAD_FILE, NULL, NULL);
}

/* Prints of each cycle: the files that were opened and refused, what was read,
 * refused and noted, and for how long. */
static void trace(struct world *w, const char *failing, char *ret,
                  size_t size) {
  size_t len = 0;
  uint64_t noted = 0;
  unsigned refused = 0;

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  w->settings.policy.max_age_ns = 60 * NS;
  w->settings.interval_ns = 10 * NS;
  w->settings.max_groups = 3;
  add_groups(w);
  world_put(w, process(10, "a"));
  opens.refused_link = "exe";
  if (failing)
    opens_refuse(failing, EACCES);
  for (unsigned cycle = 0; cycle < 800; cycle++) {
    put_all(w, cycle);
    opens.calls = 0;
    run(w, 10);
    len += (size_t)snprintf(
        ret + len, size - len, "%u: %u %u %d %d %d %.0f %u %u\n", cycle,
        opens.calls, opens.refused, (int)world_counts(w)->rollup_reads,
        (int)world_counts(w)->groups_refused,
        (int)world_diag(w, DIAG_PID_FILE)->count, world_value(w, "old", "age"),
        world_members(w, "one.service"), world_members(w, "two.service"));
    assert_true(len < size);
    assert_true(world_counts(w)->cycle_ns < NS);
    noted += world_diag(w, DIAG_PID_FILE)->count;
    refused += world_counts(w)->groups_refused > 0;
    if (cycle % 6 == 5)
      world_assert_members(w,
                           cycle / 6 % 2 ? "two.service=1" : "one.service=1");
  }
  /* In two hours and a quarter. */
  assert_int_equal(noted, 3);
  assert_in_range(opens.refused, 3, 99);
  assert_in_range(refused, 100, 799);
}

TEST(what_is_read_does_not_depend_on_the_time_of_day) {
  static const char *const failing[] = {NULL, "smaps_rollup"};
  static char traces[LENGTH(steps)][64000];

  for (size_t f = 0; f < LENGTH(failing); f++)
    for (size_t i = 0; i < LENGTH(steps); i++) {
      void *state;

      step_s = steps[i];
      collected_setup(&state);
      trace(state, failing[f], traces[i], sizeof(traces[i]));
      collected_teardown(&state);
      assert_string_equal(traces[i], traces[0]);
    }
}

/* --- what is written --- */

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

static void assert_called(const struct world_written *written, uint64_t time) {
  time_t when = (time_t)time;
  char name[64];
  struct tm tm;

  assert_non_null(gmtime_r(&when, &tm));
  assert_true(strftime(name, sizeof(name), "smaps-%Y%m%dT%H%M%SZ-g.json", &tm));
  assert_string_equal(strrchr(written->path, '/') + 1, name);
}

/* An alarm in each cycle. The group cools down for 300 seconds, and two files
 * are kept: the one just written is among them, whatever it is called. */
static void capture(struct world *w) {
  size_t n = 0;

  w->settings.interval_ns = 10 * NS;
  w->settings.capture.max_files = 2;
  world_keep_captures(w);
  world_put_mapped(w, process(10, "a"), NULL);
  world_group(w, "g", "Comm", "*", NULL, NULL);
  world_run(w, 10);
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
