/* SPDX-License-Identifier: MIT */
/* When snapshots are made. */
#include "test.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/recorder.h"

#include "parsed.h"
#include "world.h"

static int make(void **state) {
  struct world *w;

  world_setup(state);
  w = *state;
  w->settings.interval_ns = 10 * NS_PER_S;
  return 0;
}

static struct world *new_world(void) {
  void *state;

  make(&state);
  return state;
}

#define WORLD_TEST(name) TEST_WITH(name, make, world_teardown, struct world *w)

static void put(struct world *w, uint32_t pid, const char *comm, unsigned kb) {
  struct fake f = fake_process(pid, comm);

  f.private_kb = kb;
  world_put_mapped(w, f, NULL);
}

/* A group of that name, with one process in it. */
static void put_group(struct world *w, uint32_t pid, const char *comm) {
  put(w, pid, comm, 100);
  world_group(w, comm, "Comm", comm, NULL, NULL);
}

/* Puts groups "a", "b" … of one process each. */
static void put_letters(struct world *w, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    put_group(w, 10 + i, (char[]){(char)('a' + (int)i), '\0'});
}

static void cycle(struct world *w, unsigned seconds) {
  world_run(w, seconds);
  assert_true(collector_results(w->collector)->snapshot_error >= 0);
}

/* The subjects of all captures, each a letter, and a '-' for each alarm that
 * waited in vain; stops the world. */
static const char *subjects(struct world *w) {
  static char text[64];
  size_t n;

  world_stop(w);
  n = world_n_written();
  assert_true(n < sizeof(text));
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(world_written(i)->kind, DOCUMENT_CAPTURE);
    if (world_written(i)->error != -ECANCELED)
      assert_int_equal(world_written(i)->error, 0);
    text[i] = world_written(i)->error ? '-' : world_written(i)->subject[0];
  }
  text[n] = '\0';
  return text;
}

/* --- the state -------------------------------------------------------------*/

/* When a state is of, in seconds since the first cycle. */
static unsigned time_of(const struct world_written *written) {
  parsed d = parsed_file(written->path);
  double time = parsed_decimal(d, "time");

  parsed_free(d);
  return (unsigned)(time - (double)(WORLD_WALL_NS / NS_PER_S));
}

/* Runs cycles, `step` seconds apart: those at the given times write a state,
 * and no other. */
static void assert_stated(struct world *w, unsigned step, const unsigned *times,
                          size_t n) {
  size_t seen = 0;

  for (unsigned now = 0; now <= times[n - 1]; now += step) {
    cycle(w, step);
    if (seen == n || times[seen] != now)
      continue;
    assert_int_equal(world_written(seen)->kind, DOCUMENT_STATE);
    assert_int_equal(world_written(seen)->error, 0);
    assert_int_equal(time_of(world_written(seen)), now);
    seen++;
  }
  world_stop(w);
  assert_int_equal(world_n_written(), n);
}

/* Half an interval early is near enough; more is not. The first cycle may be a
 * run of collectd -T. */
TEST(a_state_is_written_at_its_interval) {
  static const struct {
    const char *name;
    unsigned interval_s, step_s;
    bool lacks_the_first;
    unsigned times[4];
    size_t n;
  } cases[] = {
      {"each minute", 60, 10, false, {0, 60, 120, 180}, 4},
      {"in each cycle", 0, 10, false, {0, 10, 20, 30}, 4},
      {"not at the start", 60, 10, true, {10, 70, 130}, 3},
      {"cycles that come early", 60, 11, false, {0, 55, 110}, 3},
      {"cycles that come too early", 60, 9, false, {0, 63, 126}, 3},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct world *w;

    print_message("%s\n", cases[i].name);
    w = new_world();
    world_keep_state(w);
    w->settings.state_interval_ns = cases[i].interval_s * NS_PER_S;
    if (cases[i].lacks_the_first)
      w->settings.has_state_at_start = settings_defaults.has_state_at_start;
    put_group(w, 10, "a");
    assert_stated(w, cases[i].step_s, cases[i].times, cases[i].n);
    world_teardown((void **)&w);
  }
}

/* Runs the cycles of 10 s to 50 s after a state that was due; returns the age
 * of the state file in the last of them. */
static uint64_t run_to_age(struct world *w) {
  for (int i = 0; i < 5; i++)
    cycle(w, 10);
  return world_counts(w)->state_age_ns / NS_PER_S;
}

/* A directory in the place of the file cannot be replaced. */
WORLD_TEST(the_age_of_the_state_file_goes_on_while_it_cannot_be_written) {
  const char *path;

  world_keep_state(w);
  w->settings.state_interval_ns = 60 * NS_PER_S;
  put_group(w, 10, "a");
  cycle(w, 10);
  path = world_written(0)->path;
  assert_int_equal(run_to_age(w), 50);
  assert_int_equal(unlink(path) | mkdir(path, 0700), 0);
  cycle(w, 10); /* of 60 s */
  assert_int_equal(world_written(1)->error, -EISDIR);
  assert_int_equal(run_to_age(w), 110);
  assert_int_equal(rmdir(path), 0);
  cycle(w, 10); /* of 120 s */
  assert_int_equal(world_written(2)->error, 0);
  assert_int_equal(run_to_age(w), 50);
}

/* It is counted from the start. */
WORLD_TEST(a_state_file_that_was_never_written_has_an_age) {
  world_keep_state(w);
  w->settings.state_interval_ns = 60 * NS_PER_S;
  put_group(w, 10, "a");
  proctree_write(&w->tree, "state/x", "", 0);
  cycle(w, 10);
  assert_int_equal(world_written(0)->error, -EISDIR);
  assert_int_equal(run_to_age(w), 50);
}

WORLD_TEST(without_a_state_file_there_is_no_age) {
  world_keep_captures(w);
  put_group(w, 10, "a");
  cycle(w, 10);
  assert_int_equal(run_to_age(w), 0);
}

/* Runs cycles for 5 minutes, with steps that may be longer than the interval.
 * Returns the seconds from the first cycle to the first state of the history.
 */
static unsigned first_in_history(unsigned interval_s, unsigned step_s) {
  struct config_error reason;
  struct world *w = new_world();
  struct dirent **names;
  uint64_t seconds = 0;
  char path[128];
  int n;

  w->settings.interval_ns = interval_s * NS_PER_S;
  w->settings.state_interval_ns = 0;
  world_keep_state(w);
  snprintf(path, sizeof(path), "%s/history", w->tree.root);
  assert_int_equal(settings_set_path(&w->settings.state_history, path, &reason),
                   0);
  put_group(w, 10, "a");
  for (unsigned i = 1; (i - 1) * step_s <= 300; i++) {
    cycle(w, step_s);
    while (world_n_written() < i) /* so that none replaces it */
      sched_yield();
  }
  world_stop(w);
  n = scandir(path, &names, NULL, alphasort); /* "." and ".." come first */
  assert_true(n >= 3);
  assert_true(store_parse_name(names[2]->d_name, &seconds));
  while (n > 0)
    free(names[--n]);
  free(names);
  world_teardown((void **)&w);
  return (unsigned)(seconds - WORLD_WALL_NS / NS_PER_S);
}

/* Too little is read yet. */
TEST(history_begins_30_intervals_or_5_minutes_after_the_start) {
  assert_int_equal(first_in_history(1, 10), 30);
  assert_int_equal(first_in_history(10, 10), 300);
  assert_int_equal(first_in_history(60, 60), 300);
}

/* --- alarms ----------------------------------------------------------------*/

static void raise_about(struct world *w, const char *type_instance) {
  struct alarm alarm = {.severity = SEVERITY_FAILURE, .group = "a"};

  snprintf(alarm.type_instance, sizeof(alarm.type_instance), "%s",
           type_instance);
  collector_raise(w->collector, &alarm);
}

/* A letter is a warning about its group, a capital a failure, '!' one about a
 * kill in "a" and '?' one about another value of it, and '.' a cycle. */
static void play(struct world *w, const char *script) {
  for (; *script; script++)
    if (*script == '.')
      cycle(w, 10);
    else if (*script == '!' || *script == '?')
      raise_about(w, *script == '!' ? "oom_kill" : "other");
    else
      world_raise_as(w, (char[]){(char)tolower(*script), '\0'}, "pss",
                     isupper(*script) ? SEVERITY_FAILURE : SEVERITY_WARNING);
}

/* Groups "a", "b" and "c" are there. */
TEST(alarms_lead_to_captures) {
  static const struct {
    const char *name, *script, *captures;
    unsigned cooldown_s;
  } cases[] = {
      {"alarms wait for their turn", ".cab...", "cab", 300},
      {"each cycle makes one capture", ".cab..", "ca-", 300},
      {"an alarm that waits already is dropped", ".abab.....", "ab", 0},
      {"an alarm about no group of ours costs no turn", ".xyb.", "b", 300},
      {"a failure follows a warning that cools down", ".a.A...", "aa", 300},
      {"a warning follows a failure that cools down", ".A.a...", "aa", 300},
      {"each severity counts once", ".a.AaA.aA..", "aa", 300},
      {"a failure that waits already is dropped", ".aAA....", "aa", 0},
      {"a failure of another group is another", ".a.B.A..", "aba", 300},
      {"without a cooldown each alarm counts", ".a.a.a.", "aaa", 0},
      /* Captures at 10, 20 and 30 s; at 40 s only "a" may again. */
      {"cooldowns end separately", ".a.b.c.cba.", "abca", 30},
      /* A threshold that repeats its alarm, or goes in and out of range. */
      {"one that cools down keeps out no other", ".A.A?..A?..", "aa", 300},
      {"a kill beside another alarm", ".A!!...", "aa", 300},
      {"alarms of an interval share a capture", ".A.!.!A.A!..", "aa", 300},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct world *w = new_world();

    world_keep_captures(w);
    put_letters(w, 3);
    w->settings.capture.cooldown_ns = cases[i].cooldown_s * NS_PER_S;
    play(w, cases[i].script);
    if (strcmp(subjects(w), cases[i].captures) != 0)
      fail_msg("%s: \"%s\"", cases[i].name, subjects(w));
    world_teardown((void **)&w);
  }
}

WORLD_TEST(alarms_of_severity_failure_come_first) {
  world_keep_captures(w);
  put_letters(w, 20);
  cycle(w, 10);
  for (char c = 'a'; c < 'a' + ALARMS_MAX + 1; c++)
    world_raise(w, (char[]){c, '\0'});
  world_raise_as(w, "r", "pss", SEVERITY_FAILURE);
  world_raise_as(w, "s", "pss", SEVERITY_FAILURE);
  world_raise_as(w, "t", "pss", SEVERITY_OKAY);
  for (size_t i = 0; i < ALARMS_MAX; i++) {
    cycle(w, 10);
    world_written(i);
  }
  cycle(w, 10);
  assert_string_equal(subjects(w), "rsabcdefghijklmn");
}

WORLD_TEST(without_captures_alarms_are_ignored) {
  put_letters(w, 1);
  play(w, ".a."); /* no snapshots at all */
  world_stop(w);
  world_keep_state(w);
  w->settings.state_interval_ns = 1000 * NS_PER_S;
  play(w, ".a.");
  world_written(0); /* or the next would replace it */
  world_stop(w);
  assert_int_equal(world_n_written(), 2); /* the first, and that of the end */
  for (size_t i = 0; i < 2; i++)
    assert_int_equal(world_written(i)->kind, DOCUMENT_STATE);
}

static void *raise_all(void *arg) {
  struct world *w = arg;

  for (int i = 0; i < 500; i++)
    world_raise(w, (char[]){(char)('a' + i % 7), '\0'});
  return NULL;
}

WORLD_TEST(alarms_may_be_raised_on_any_thread) {
  pthread_t threads[3];
  char seen[64];

  world_keep_captures(w);
  put_letters(w, 7); /* with the directory as many as the writer lets wait */
  cycle(w, 10);
  for (int i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, raise_all, w), 0);
  for (int i = 0; i < 5; i++)
    cycle(w, 10);
  for (int i = 0; i < 3; i++)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < 10; i++)
    cycle(w, 10);
  /* Each once: the first has not cooled down since. */
  strcpy(seen, subjects(w));
  assert_int_equal(strlen(seen), 7);
  for (char c = 'a'; c < 'a' + 7; c++)
    assert_non_null(strchr(seen, c));
}

/* --- cooling down ----------------------------------------------------------*/

/* As in a storm of alarms that are repeated in each interval. */
WORLD_TEST(many_groups_cool_down_at_once) {
  world_keep_captures(w);
  put_letters(w, 20);
  w->settings.capture.cooldown_ns = 1000 * NS_PER_S;
  cycle(w, 10);
  for (size_t i = 0; i < 25; i++) {
    for (char c = 'a'; c < 'a' + 20; c++)
      world_raise(w, (char[]){c, '\0'});
    cycle(w, 10);
    if (i < 20)
      world_written(i);
  }
  assert_string_equal(subjects(w), "abcdefghijklmnopqrst");
}

WORLD_TEST(group_is_not_captured_again_during_its_capture) {
  world_keep_captures(w);
  world_budget(w, 0);
  put_letters(w, 1);
  proctree_put(&w->tree,
               &(struct fake){.pid = 50, .comm = "a", .starttime = 1});
  proctree_put_smaps(&w->tree, 50, NULL, 0);
  play(w, ".a.a....");
  assert_string_equal(subjects(w), "a");
}

/* It does not help to try a full disk again. The directory is tried at start.
 */
WORLD_TEST(a_capture_that_cannot_be_written_counts_too) {
  world_keep_captures(w);
  proctree_write(&w->tree, "captures", "", 0);
  put_letters(w, 1);
  play(w, ".a.a.");
  world_stop(w);
  assert_int_equal(world_n_written(), 2);
  assert_int_equal(world_written(0)->kind, DOCUMENT_PLACE);
  assert_int_equal(world_written(0)->error, -ENOTDIR);
  assert_int_equal(world_written(1)->kind, DOCUMENT_CAPTURE);
  assert_int_equal(world_written(1)->error, -ENOTDIR);
}

/* collectd -T, run by root, would make it for root alone. */
WORLD_TEST(the_first_cycle_makes_no_directory) {
  world_keep_captures(w);
  w->settings.has_state_at_start = false;
  put_letters(w, 1);
  cycle(w, 10);
  world_stop(w);
  assert_int_not_equal(access(w->settings.capture.directory, F_OK), 0);
  cycle(w, 10);
  cycle(w, 10);
  world_stop(w);
  assert_int_equal(access(w->settings.capture.directory, F_OK), 0);
}

/* --- what hangs ----------------------------------------------------------- */

#define TIMEOUT_NS (100 * NS_PER_MS)

/* Puts a member of "a", which is the larger the greater its pid is. */
static void put_member(struct world *w, uint32_t pid) {
  put(w, pid, "a", 10 * pid);
}

static void put_members(struct world *w) {
  world_keep_captures(w);
  w->settings.read_timeout_ns = TIMEOUT_NS;
  w->settings.capture.cooldown_ns = 0;
  world_group(w, "a", "Comm", "a", NULL, NULL);
  for (uint32_t pid = 10; pid < 13; pid++)
    put_member(w, pid);
}

/* One of the processes in a capture of theirs, whether it has its mappings, and
 * why not. */
static void assert_captured(parsed d, size_t i, uint32_t pid,
                            const char *put_off) {
  char path[64];

  snprintf(path, sizeof(path), "processes.%zu.pid", i);
  assert_int_equal(parsed_integer(d, path), pid);
  snprintf(path, sizeof(path), "processes.%zu.mappings", i);
  assert_int_equal(parsed_get(d, path) == NULL, put_off != NULL);
  snprintf(path, sizeof(path), "processes.%zu.deferred", i);
  if (put_off)
    assert_string_equal(parsed_string(d, path), put_off);
  else
    assert_null(parsed_get(d, path));
}

static void assert_capture_without(size_t index, uint32_t pid) {
  parsed d = parsed_file(world_written(index)->path);

  assert_int_equal(world_written(index)->error, 0);
  assert_int_equal(parsed_count(d, "processes"), 3);
  assert_int_equal(parsed_integer(d, "left_out"), 0);
  for (uint32_t i = 0; i < 3; i++)
    assert_captured(d, i, 12 - i, 12 - i == pid ? "hung" : NULL);
  assert_int_equal(parsed_integer(d, "mappings.0.pss"), 1024 * 10 * (33 - pid));
  parsed_free(d);
}

/* And is not tried again for the next one, nor is its rollup. */
WORLD_TEST(member_whose_smaps_hangs_is_captured_without_mappings) {
  const struct collector_counts *counts;

  put_members(w);
  cycle(w, 10);
  counts = world_counts(w);
  for (uint32_t i = 0; i < 2; i++) {
    if (i == 0)
      proctree_hang(&w->tree, "11/smaps");
    world_raise(w, "a");
    cycle(w, i == 0 ? 10 : 0);
    assert_capture_without(i, 11);
    assert_int_equal(counts->hung, 1);
    assert_int_equal(counts->rollup_reads, i == 0 ? 3 : 2);
    assert_int_equal(world_diag(w, DIAG_HUNG)->count, i == 0);
  }
  assert_int_equal(world_diag(w, DIAG_HUNG)->pid, 0);
  world_assert(w, "a", "ps_count=3");
  proctree_wake(&w->tree, "11/smaps");
}

/* It is read whole again once it comes back and its time is over. */
WORLD_TEST(member_whose_smaps_has_hung_is_captured_again) {
  parsed d;

  put_members(w);
  cycle(w, 10);
  proctree_hang(&w->tree, "12/smaps");
  world_raise(w, "a");
  cycle(w, 10);
  assert_capture_without(0, 12);
  proctree_wake(&w->tree, "12/smaps");
  put_member(w, 12);
  do
    cycle(w, 10);
  while (world_counts(w)->hung > 0);
  world_raise(w, "a");
  cycle(w, 10);
  d = parsed_file(world_written(1)->path);
  for (uint32_t i = 0; i < 3; i++)
    assert_captured(d, i, 12 - i, NULL);
  parsed_free(d);
}
