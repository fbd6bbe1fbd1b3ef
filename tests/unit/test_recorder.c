/* When snapshots are made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <smaps/recorder.h>

#include "parsed.h"
#include "world.h"

static int make(void **state) {
  static struct world w;

  world_make(&w);
  w.settings.interval_ns = 10 * NS_PER_S;
  *state = &w;
  return 0;
}

static int unmake(void **state) {
  world_remove(*state);
  return 0;
}

/* A group of that name, with one process in it. */
static void put(struct world *w, uint32_t pid, const char *comm) {
  const struct fake_mapping mapping = {.private_kb = 100};

  proctree_put(&w->tree,
               &(struct fake){.pid = pid,
                              .comm = comm,
                              .starttime = 100 + pid,
                              .start_stack = 0x7ff000000000 + pid * 0x100000UL,
                              .private_kb = 100});
  proctree_put_smaps(&w->tree, pid, &mapping, 1);
  world_group(w, comm, "Comm", comm, NULL, NULL);
}

/* Groups "a", "b" … of one process each. */
static void put_letters(struct world *w, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    put(w, 10 + i, (char[]){(char)('a' + (int)i), '\0'});
}

static void cycle(struct world *w, unsigned seconds) {
  assert_int_equal(world_cycle(w, seconds), 0);
  assert_int_equal(collector_snapshot_error(w->collector), 0);
}

/* The subjects of all captures, each a letter; stops the world. */
static const char *subjects(struct world *w) {
  static char text[64];
  size_t n;

  world_stop(w);
  n = world_n_written();
  assert_true(n < sizeof(text));
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(world_written(i)->kind, DOCUMENT_CAPTURE);
    assert_int_equal(world_written(i)->error, 0);
    text[i] = world_written(i)->subject[0];
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

static void a_state_is_written_at_its_interval(void **state) {
  struct world *w = *state;

  world_keep_state(w);
  put(w, 10, "a");
  assert_stated(w, 10, (unsigned[]){0, 60, 120, 180}, 4);
}

static void a_state_can_be_written_in_each_cycle(void **state) {
  struct world *w = *state;

  world_keep_state(w);
  w->settings.state_interval_ns = 0;
  put(w, 10, "a");
  assert_stated(w, 10, (unsigned[]){0, 10, 20, 30}, 4);
}

/* Half an interval early is near enough; more is not. */
static void a_cycle_that_comes_early_is_taken(void **state) {
  struct world *w = *state;

  world_keep_state(w);
  put(w, 10, "a");
  assert_stated(w, 11, (unsigned[]){0, 55, 110}, 3);
}

static void a_cycle_that_comes_too_early_is_not(void **state) {
  struct world *w = *state;

  world_keep_state(w);
  put(w, 10, "a");
  assert_stated(w, 9, (unsigned[]){0, 63, 126}, 3);
}

static void without_a_state_file_there_is_no_state(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  w->settings.state_interval_ns = 0;
  put(w, 10, "a");
  for (int i = 0; i < 3; i++)
    cycle(w, 10);
  assert_string_equal(subjects(w), "");
}

/* --- alarms ----------------------------------------------------------------*/

static void alarms_wait_for_their_turn(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  put_letters(w, 3);
  cycle(w, 10);
  world_raise(w, "c");
  world_raise(w, "a");
  world_raise(w, "b");
  for (int i = 0; i < 3; i++)
    cycle(w, 10);
  assert_string_equal(subjects(w), "cab");
}

static void one_capture_is_made_at_a_time(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  put_letters(w, 3);
  cycle(w, 10);
  world_raise(w, "c");
  world_raise(w, "a");
  world_raise(w, "b");
  cycle(w, 10);
  cycle(w, 10);
  assert_string_equal(subjects(w), "ca");
}

static void an_alarm_that_waits_already_is_dropped(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  w->settings.capture.cooldown_ns = 0;
  put_letters(w, 2);
  cycle(w, 10);
  world_raise(w, "a");
  world_raise(w, "b");
  world_raise(w, "a");
  world_raise(w, "b");
  for (int i = 0; i < 5; i++)
    cycle(w, 10);
  assert_string_equal(subjects(w), "ab");
}

static void as_many_alarms_wait_as_may(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  put_letters(w, 20);
  cycle(w, 10);
  for (char c = 'a'; c < 'a' + 20; c++)
    world_raise(w, (char[]){c, '\0'});
  for (size_t i = 0; i < 20; i++) {
    cycle(w, 10);
    if (i < ALARMS_MAX) /* lest they are too many for the scribe */
      world_written(i);
  }
  /* There is place again. */
  world_raise(w, "t");
  cycle(w, 10);
  assert_int_equal(ALARMS_MAX, 16);
  assert_string_equal(subjects(w), "abcdefghijklmnop"
                                   "t");
}

static void an_alarm_about_nothing_of_ours_costs_no_turn(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  put_letters(w, 2);
  cycle(w, 10);
  world_raise(w, "x");
  world_raise(w, "y");
  world_raise(w, "b");
  cycle(w, 10);
  assert_string_equal(subjects(w), "b");
}

static void without_captures_alarms_come_to_nothing(void **state) {
  struct world *w = *state;

  put_letters(w, 1);
  cycle(w, 10);
  world_raise(w, "a"); /* no snapshots at all */
  cycle(w, 10);
  world_stop(w);
  world_keep_state(w);
  w->settings.state_interval_ns = 1000 * NS_PER_S;
  cycle(w, 10);
  world_raise(w, "a");
  cycle(w, 10);
  world_stop(w);
  assert_int_equal(world_n_written(), 1);
  assert_int_equal(world_written(0)->kind, DOCUMENT_STATE);
}

static void *raise_all(void *arg) {
  struct world *w = arg;

  for (int i = 0; i < 500; i++)
    world_raise(w, (char[]){(char)('a' + i % 8), '\0'});
  return NULL;
}

static void alarms_may_be_raised_on_any_thread(void **state) {
  pthread_t threads[3];
  struct world *w = *state;
  char seen[64];

  world_keep_captures(w);
  put_letters(w, 8);
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
  assert_int_equal(strlen(seen), 8);
  for (char c = 'a'; c < 'a' + 8; c++)
    assert_non_null(strchr(seen, c));
}

/* --- cooling down ----------------------------------------------------------*/

static void a_group_cools_down_after_its_capture(void **state) {
  struct world *w = *state;

  world_keep_captures(w); /* 300 s */
  put_letters(w, 1);
  cycle(w, 10);
  world_raise(w, "a");
  cycle(w, 10);
  for (int i = 0; i < 29; i++) {
    world_raise(w, "a");
    cycle(w, 10);
  }
  world_raise(w, "a");
  cycle(w, 9);
  world_raise(w, "a");
  cycle(w, 1);
  assert_string_equal(subjects(w), "aa");
  assert_int_equal(time_of(world_written(0)), 10);
  assert_int_equal(time_of(world_written(1)), 310);
}

static void other_groups_are_not_kept_waiting(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  put_letters(w, 2);
  cycle(w, 10);
  world_raise(w, "a");
  cycle(w, 10);
  world_raise(w, "a");
  world_raise(w, "b");
  cycle(w, 10);
  assert_string_equal(subjects(w), "ab");
}

static void without_a_cooldown_each_alarm_counts(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  w->settings.capture.cooldown_ns = 0;
  put_letters(w, 1);
  cycle(w, 10);
  for (int i = 0; i < 3; i++) {
    world_raise(w, "a");
    cycle(w, 10);
  }
  assert_string_equal(subjects(w), "aaa");
}

/* Sixteen is where the room for them grows. */
static void any_number_of_groups_can_cool_down(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  w->settings.capture.cooldown_ns = 10000 * NS_PER_S;
  put_letters(w, 20);
  cycle(w, 10);
  for (int round = 0; round < 2; round++)
    for (char c = 'a'; c < 'a' + 20; c++) {
      world_raise(w, (char[]){c, '\0'});
      cycle(w, 10);
      if (round == 0)
        world_written((size_t)(c - 'a'));
    }
  assert_string_equal(subjects(w), "abcdefghijklmnopqrst");
}

/* One that is over goes, and leaves those alone that are not. */
static void cooldowns_end_one_by_one(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  w->settings.capture.cooldown_ns = 30 * NS_PER_S;
  put_letters(w, 3);
  cycle(w, 10);
  for (char c = 'a'; c < 'd'; c++) { /* at 10, 20, 30 */
    world_raise(w, (char[]){c, '\0'});
    cycle(w, 10);
  }
  world_raise(w, "c");
  world_raise(w, "b");
  world_raise(w, "a");
  cycle(w, 10); /* 40: only a may */
  assert_string_equal(subjects(w), "abca");
}

static void a_group_is_not_captured_again_while_it_is(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  w->settings.read_budget_ns = 0;
  put_letters(w, 1);
  proctree_put(&w->tree,
               &(struct fake){.pid = 50, .comm = "a", .starttime = 1});
  proctree_put_smaps(&w->tree, 50, NULL, 0);
  cycle(w, 10);
  world_raise(w, "a");
  cycle(w, 10);
  world_raise(w, "a");
  for (int i = 0; i < 4; i++)
    cycle(w, 10);
  assert_string_equal(subjects(w), "a");
}

/* A full disk is no better for trying. */
static void a_capture_that_cannot_be_written_counts_too(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  proctree_write(&w->tree, "captures", "", 0);
  put_letters(w, 1);
  cycle(w, 10);
  world_raise(w, "a");
  cycle(w, 10);
  world_raise(w, "a");
  cycle(w, 10);
  world_stop(w);
  assert_int_equal(world_n_written(), 1);
  assert_int_equal(world_written(0)->error, -ENOTDIR);
}

/* --- what hangs ----------------------------------------------------------- */

#define TIMEOUT_NS (100 * NS_PER_MS)

/* A member of "a", the larger the greater its pid. */
static void put_member(struct world *w, uint32_t pid) {
  const struct fake_mapping mapping = {.name = "[heap]",
                                       .private_kb = 10 * pid};

  proctree_put(&w->tree,
               &(struct fake){.pid = pid,
                              .comm = "a",
                              .starttime = 100 + pid,
                              .start_stack = 0x7ff000000000 + pid * 0x100000UL,
                              .private_kb = 10 * pid});
  proctree_put_smaps(&w->tree, pid, &mapping, 1);
}

static void put_members(struct world *w) {
  world_keep_captures(w);
  w->settings.stall_timeout_ns = TIMEOUT_NS;
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
  snprintf(path, sizeof(path), "processes.%zu.put_off", i);
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
    assert_captured(d, i, 12 - i, 12 - i == pid ? "stalled" : NULL);
  assert_int_equal(parsed_integer(d, "mappings.0.pss"), 1024 * 10 * (33 - pid));
  parsed_free(d);
}

/* And is not tried again for the next one, nor is its rollup. */
static void one_whose_smaps_hangs_is_captured_without_mappings(void **state) {
  const struct collector_counts *counts;
  struct world *w = *state;

  put_members(w);
  cycle(w, 10);
  counts = collector_counts(w->collector);
  for (uint32_t i = 0; i < 2; i++) {
    if (i == 0)
      proctree_hang(&w->tree, "11/smaps");
    world_raise(w, "a");
    cycle(w, i == 0 ? 10 : 0);
    assert_capture_without(i, 11);
    assert_int_equal(counts->stalled, 1);
    assert_int_equal(counts->rollup_reads, i == 0 ? 3 : 2);
    assert_int_equal(collector_trouble(w->collector, TROUBLE_STALLED)->count,
                     i == 0);
  }
  assert_int_equal(collector_trouble(w->collector, TROUBLE_STALLED)->pid, 0);
  assert_true(world_value(w, "a", "ps_count") == 3);
  proctree_wake(&w->tree, "11/smaps");
}

/* It is read whole again once it comes back and its time is over. */
static void one_whose_smaps_has_hung_is_captured_again(void **state) {
  struct world *w = *state;
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
  while (collector_counts(w->collector)->stalled > 0);
  world_raise(w, "a");
  cycle(w, 10);
  d = parsed_file(world_written(1)->path);
  for (uint32_t i = 0; i < 3; i++)
    assert_captured(d, i, 12 - i, NULL);
  parsed_free(d);
}

/* --- together --------------------------------------------------------------*/

static void a_state_and_a_capture_can_be_of_one_cycle(void **state) {
  struct world *w = *state;

  world_keep_captures(w);
  world_keep_state(w);
  w->settings.state_interval_ns = 0;
  put_letters(w, 1);
  cycle(w, 10);
  world_written(0);
  world_raise(w, "a");
  cycle(w, 10);
  world_stop(w);
  assert_int_equal(world_n_written(), 3);
  assert_int_equal(world_written(1)->kind, DOCUMENT_CAPTURE);
  assert_int_equal(world_written(2)->kind, DOCUMENT_STATE);
  assert_int_equal(time_of(world_written(1)), time_of(world_written(2)));
}

/* Of a number that JSON's readers cannot hold. The next one is tried. */
static void a_document_that_cannot_be_made_is_told_and_lost(void **state) {
  static const char broken[] = "MemTotal:  18014398509481983 kB\n";
  static const char whole[] = "MemTotal:  1048576 kB\n";
  struct world *w = *state;

  world_keep_captures(w);
  world_keep_state(w);
  w->settings.state_interval_ns = 20 * NS_PER_S;
  w->settings.capture.cooldown_ns = 0;
  proctree_write(&w->tree, "meminfo", broken, sizeof(broken) - 1);
  put_letters(w, 1);
  assert_int_equal(world_cycle(w, 10), 0);
  assert_int_equal(collector_snapshot_error(w->collector), -EINVAL);
  world_raise(w, "a");
  assert_int_equal(world_cycle(w, 10), 0);
  assert_int_equal(collector_snapshot_error(w->collector), -EINVAL);
  proctree_write(&w->tree, "meminfo", whole, sizeof(whole) - 1);
  world_raise(w, "a");
  cycle(w, 10);
  world_stop(w);
  assert_int_equal(world_n_written(), 2);
  assert_int_equal(world_written(0)->error, 0);
  assert_int_equal(world_written(1)->error, 0);
}

static void ending_one_that_never_began_is_fine(void **state) {
  struct world *w = *state;
  struct recorder r = {0};

  recorder_done(&r, 0);
  assert_int_equal(recorder_init(&r, &w->settings, NULL, NULL), 0);
  recorder_raise(&r, &(struct alarm){.group = "a"});
  recorder_run(&r, NULL, 0);
  recorder_done(&r, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_state_is_written_at_its_interval),
      TEST(a_state_can_be_written_in_each_cycle),
      TEST(a_cycle_that_comes_early_is_taken),
      TEST(a_cycle_that_comes_too_early_is_not),
      TEST(without_a_state_file_there_is_no_state),
      TEST(alarms_wait_for_their_turn),
      TEST(one_capture_is_made_at_a_time),
      TEST(an_alarm_that_waits_already_is_dropped),
      TEST(as_many_alarms_wait_as_may),
      TEST(an_alarm_about_nothing_of_ours_costs_no_turn),
      TEST(without_captures_alarms_come_to_nothing),
      TEST(alarms_may_be_raised_on_any_thread),
      TEST(a_group_cools_down_after_its_capture),
      TEST(other_groups_are_not_kept_waiting),
      TEST(without_a_cooldown_each_alarm_counts),
      TEST(any_number_of_groups_can_cool_down),
      TEST(cooldowns_end_one_by_one),
      TEST(a_group_is_not_captured_again_while_it_is),
      TEST(a_capture_that_cannot_be_written_counts_too),
      TEST(one_whose_smaps_hangs_is_captured_without_mappings),
      TEST(one_whose_smaps_has_hung_is_captured_again),
      TEST(a_state_and_a_capture_can_be_of_one_cycle),
      TEST(a_document_that_cannot_be_made_is_told_and_lost),
      TEST(ending_one_that_never_began_is_fine),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
