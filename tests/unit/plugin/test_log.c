/* SPDX-License-Identifier: MIT */
/* Tests lines that a run of a few intervals does not log. */
#include "test.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>

#include "log.h"

#include "measured.h"
#include "stub_daemon.h"

#define HOUR TIME_T_TO_CDTIME_T(3600)

static int make(void **state) {
  stub_clear();
  stub.now = TIME_T_TO_CDTIME_T(1000000);
  return measured_setup(state);
}

#define WORLD_TEST(name) TEST_WITH(name, make, world_teardown, struct world *w)

/* Puts ten processes that take 60 ms each. To read each once a minute takes 1 %
 * of a CPU. */
static void put_dear(struct world *w, double percent) {
  w->settings.read_budget_percent = percent;
  world_walks_take(60 * NS_PER_MS);
  for (uint32_t pid = 1; pid <= 10; pid++)
    world_put(w, measured_large(pid, "g", 20));
  measured_group(w, "g");
}

/* Runs cycles for so long, each with its lines. */
static void run(struct world *w, struct log_state *s, unsigned seconds) {
  for (unsigned i = 0; i < seconds; i += 10) {
    world_run(w, 10);
    stub.now += TIME_T_TO_CDTIME_T(10);
    log_after_cycle(s, collector_results(w->collector), &w->settings, 0);
  }
}

/* The line is repeated if an hour has passed. */
WORLD_TEST(read_budget_that_is_too_small_is_logged_once) {
  struct log_state s = {.scarce = 0};

  put_dear(w, 0.25);
  run(w, &s, 8000);
  assert_int_equal(stub.n_logs, 1);
  assert_int_equal(stub.levels[0], LOG_WARNING);
  assert_non_null(strstr(stub.logs[0], "ReadBudget 0.25 is too small"));
  assert_non_null(strstr(stub.logs[0], "a ReadBudget of 1.3 or a MaxAge of 5.2 "
                                       "times as long is enough"));
  stub.now += HOUR / 2;
  run(w, &s, 10);
  assert_int_equal(stub.n_logs, 1);
  stub.now += HOUR;
  run(w, &s, 10);
  assert_int_equal(stub.n_logs, 2);
}

WORLD_TEST(read_budget_that_suffices_is_not_mentioned) {
  struct log_state s = {.scarce = 0};

  put_dear(w, 1.25);
  run(w, &s, 2000);
  assert_int_equal(stub.n_logs, 0);
}

WORLD_TEST(longer_max_age_is_advised_if_no_read_budget_suffices) {
  struct log_state s = {.scarce = 0};

  w->settings.policy.max_age_ns = NS_PER_S / 2;
  put_dear(w, 50);
  run(w, &s, 600);
  assert_int_equal(stub.n_logs, 1);
  assert_null(strstr(stub.logs[0], "a ReadBudget of"));
  assert_non_null(
      strstr(stub.logs[0], "; a MaxAge of 3 times as long is enough"));
}

/* The tree has no pagemap. */
WORLD_TEST(a_large_process_is_named_and_all_are_counted) {
  struct log_state s = {.scarce = 0};

  w->settings.policy.max_lock_hold_ns = 25000; /* the first guess is 30 us */
  for (uint32_t pid = 10; pid < 15; pid++)
    world_put(w, measured_member(pid, "g"));
  measured_group(w, "g");
  run(w, &s, 30);
  assert_int_equal(stub.n_logs, 1);
  assert_non_null(strstr(stub.logs[0], " \"g\" (one of 5) would hold its"));
}

static void log_results(struct log_state *s, struct cycle_results *results) {
  const struct settings settings = {.proc_root = (char[]){"/proc"}};

  results->host.known = 1;
  log_after_cycle(s, results, &settings, 0);
}

static void log_denials(uint64_t rollup, uint64_t exe, const char *expected) {
  struct cycle_results results = {.snapshot_error = 0};
  struct log_state s = {.is_command = true};

  results.diags[DIAG_ROLLUP_DENIED].count = rollup;
  results.diags[DIAG_EXECUTABLE_DENIED].count = exe;
  stub.n_logs = 0;
  log_results(&s, &results);
  assert_int_equal(stub.n_logs, 1);
  assert_non_null(strstr(stub.logs[0], expected));
}

TEST(hang_of_all_readers_is_logged_until_a_reader_is_free) {
  struct cycle_results results = {.snapshot_error = 0};
  struct log_state s = {.scarce = 0};

  stub_clear();
  results.diags[DIAG_HUNG] =
      (struct diag){.count = 4, .pid = 7, .file = "maps"};
  results.diags[DIAG_READERS_HUNG].count = 4;
  log_results(&s, &results);
  assert_int_equal(stub.n_logs, 2);
  assert_non_null(strstr(stub.logs[0], "7 \"\" (one of 4) did not end"));
  assert_non_null(strstr(stub.logs[0], "ReadTimeout: maps; the process hangs"));
  assert_non_null(strstr(stub.logs[1], "4 reads hang"));
  results.diags[DIAG_HUNG].count = 0;
  log_results(&s, &results);
  assert_int_equal(stub.n_logs, 2);
  results.diags[DIAG_READERS_HUNG].count = 0;
  log_results(&s, &results);
  assert_int_equal(stub.n_logs, 3);
  assert_non_null(strstr(stub.logs[2], "has returned"));
}

/* Each digit is a number of lines: of an interval, of one soon after, and of
 * one an hour later. */
TEST(each_problem_is_logged_at_its_own_rate) {
  static const struct {
    enum diag_kind kind;
    const char *lines;
  } cases[] = {{DIAG_NO_ROLLUP, "100"},      {DIAG_MAPCOUNT_DENIED, "100"},
               {DIAG_TOO_LARGE, "100"},      {DIAG_GROUP_REFUSED, "100"},
               {DIAG_CONTAINER_FILE, "100"}, {DIAG_ROLLUP_DENIED, "100"},
               {DIAG_MATCH_DEFERRED, "101"}, {DIAG_FAILED, "101"},
               {DIAG_HUNG, "111"},           {DIAG_PID_FILE, "111"},
               {DIAG_PID_DOUBT, "111"}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct cycle_results results = {.snapshot_error = 0};
    struct log_state s = {.scarce = 0};

    stub_clear();
    stub.now = TIME_T_TO_CDTIME_T(1000000);
    results.diags[cases[i].kind] = (struct diag){.count = 1, .file = "a"};
    for (const char *c = cases[i].lines; *c; c++) {
      stub.n_logs = 0;
      log_results(&s, &results);
      if (stub.n_logs != (size_t)(*c - '0'))
        fail_msg("%u: not \"%s\"", cases[i].kind, cases[i].lines);
      stub.now += c == cases[i].lines ? TIME_T_TO_CDTIME_T(10) : HOUR;
    }
  }
}

/* 1: none was due. */
TEST(failed_snapshot_is_logged_once_until_one_succeeds) {
  static const int errors[] = {-ENOMEM, 1, -EFBIG, 0, 1, -EFBIG};
  struct cycle_results results = {.snapshot_error = 0};
  struct log_state s = {.scarce = 0};

  for (size_t i = 0; i < LENGTH(errors); i++) {
    stub.n_logs = 0;
    results.snapshot_error = errors[i];
    log_results(&s, &results);
    assert_int_equal(stub.n_logs, i == 0 || i == 5);
  }
  assert_non_null(strstr(stub.logs[0], "larger than 256 MiB"));
}

TEST(refusals_are_counted_by_file) {
  log_denials(0, 2, "(smaps_rollup: 0, exe: 2, all files: 0; first: 0 \"\")");
}

TEST(what_a_captured_tree_lacks_is_logged_as_such) {
  struct cycle_results results = {.is_captured = true};
  struct log_state s = {.scarce = 0};

  results.diags[DIAG_ROLLUP_DENIED] =
      (struct diag){.count = 2, .pid = 12, .comm = "web"};
  stub_clear();
  log_results(&s, &results);
  assert_int_equal(stub.n_logs, 1);
  assert_string_equal(
      stub.logs[0],
      "smaps plugin: capture ProcRoot as root: it lacks files of processes "
      "(smaps_rollup: 2, exe: 0, all files: 0; first: 12 \"web\"), so their "
      "values are guessed or unknown");
}

long __real_syscall(long, ...);
long __wrap_syscall(long, ...);
long __wrap_syscall(long number, ...) {
  (void)number;
  errno = EACCES;
  return -1;
}

/* As in the domain that SELinux has for collectd. */
TEST(own_capability_is_known_where_capget_is_refused) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];

  assert_int_equal(__real_syscall(SYS_capget, &header, data), 0);
  log_denials(1, 0,
              (data[0].effective >> CAP_SYS_PTRACE) & 1
                  ? "(CAP_SYS_PTRACE is there)"
                  : "run smaps-report as root");
}
