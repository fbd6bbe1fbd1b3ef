/* SPDX-License-Identifier: MIT */
/* What collectors remember that one after another watch the same processes. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parsed.h"
#include "world.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, world_setup, world_teardown, struct world *w)

/* A cycle takes a 60th of the window. */
#define WINDOW_S 600
#define CYCLE_S 10
#define LEAK_KB 500 /* in a cycle */
#define LEAK_RATE (LEAK_KB * 1024.0 / CYCLE_S)

/* --- opening hangs ---------------------------------------------------------*/

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...) {
  if (flags & O_NOFOLLOW) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
  }
  return __real_open(path, flags, 0);
}

/* --- a world ---------------------------------------------------------------*/

/* The state of each process, as the next cycle finds it. */
static struct fake leak, steady;

static void begin(struct world *w) {
  w->settings.report.growth_window_ns = WINDOW_S * NS;
  leak = fake_process(10, "leak");
  leak.starttime = 10;
  leak.private_kb = 10000;
  steady = fake_process(11, "steady");
  steady.starttime = 11;
  steady.private_kb = 20000;
  world_group(w, "leak", "Comm", "leak", NULL, NULL)->text =
      strdup("Comm \"leak\"");
  world_group(w, "steady", "Comm", "steady", NULL, NULL);
}

static void run(struct world *w, unsigned cycles) {
  for (unsigned i = 0; i < cycles; i++) {
    world_put(w, leak);
    world_put(w, steady);
    world_run(w, CYCLE_S);
    leak.private_kb += LEAK_KB;
  }
}

static double growth(const struct world *w, const char *group) {
  return world_value(w, group, "growth");
}

/* Runs until the leak is published, and ends the daemon. */
static void run_until_leak(struct world *w) {
  begin(w);
  world_remember(w);
  run(w, 60);
  assert_true(fabs(growth(w, "leak") - LEAK_RATE) < 1);
  world_stop(w);
}

/* The daemon is down for so long, and the processes go on. */
static void miss(unsigned cycles) { leak.private_kb += cycles * LEAK_KB; }

static void assert_unknown(struct world *w) {
  run(w, 1);
  assert_true(isnan(growth(w, "leak")) && isnan(growth(w, "steady")));
}

/* --- growth ----------------------------------------------------------------*/

WORLD_TEST(a_leak_is_shown_in_the_first_cycle_after_a_restart) {
  run_until_leak(w);
  for (unsigned i = 0; i < 3; i++) {
    run(w, 1);
    assert_true(fabs(growth(w, "leak") - LEAK_RATE) < 1);
    assert_true(growth(w, "steady") == 0);
  }
}

/* And is still shown when all points are new. */
WORLD_TEST(a_leak_goes_on_after_many_restarts) {
  run_until_leak(w);
  for (unsigned i = 0; i < 20; i++) {
    world_put(w, leak);
    world_put(w, steady);
    world_run(w, (1 + i % 4) * CYCLE_S);
    leak.private_kb += LEAK_KB;
    run(w, 4);
    if (fabs(growth(w, "leak") / LEAK_RATE - 1) > 0.5)
      fail_msg("restart %u: %g", i, growth(w, "leak"));
    assert_true(growth(w, "steady") == 0);
    world_stop(w);
  }
}

/* Nothing restarted it. */
WORLD_TEST(a_leak_that_has_ended_meanwhile_is_not_shown_for_long) {
  run_until_leak(w);
  for (unsigned i = 0; i < 25; i++) {
    run(w, 1);
    leak.private_kb -= LEAK_KB;
  }
  assert_true(growth(w, "leak") == 0);
}

WORLD_TEST(without_a_state_file_nothing_is_remembered) {
  begin(w);
  run(w, 60);
  assert_true(growth(w, "leak") > 0);
  world_stop(w);
  assert_unknown(w);
}

WORLD_TEST(another_boot_is_forgotten) {
  run_until_leak(w);
  proctree_print(&w->tree, 0, "sys/kernel/random/boot_id", "another\n");
  assert_unknown(w);
  assert_int_equal(world_n_written(), 2); /* and nobody complains */
}

WORLD_TEST(a_captured_tree_has_no_memory) {
  run_until_leak(w);
  proctree_unlink(&w->tree, "sys/kernel/random/boot_id");
  assert_unknown(w);
}

WORLD_TEST(what_is_older_than_the_window_is_forgotten) {
  run_until_leak(w);
  miss(61);
  world_put(w, leak);
  world_run(w, WINDOW_S + CYCLE_S);
  assert_true(isnan(growth(w, "leak")));
}

WORLD_TEST(growth_begins_anew_if_all_members_are_others) {
  run_until_leak(w);
  leak.starttime = 5000;
  world_put(w, leak);
  world_run(w, CYCLE_S);
  assert_true(isnan(growth(w, "leak")) && growth(w, "steady") == 0);
}

WORLD_TEST(growth_begins_anew_if_the_group_is_another) {
  struct rule *r;

  run_until_leak(w);
  r = &w->settings.rules[0];
  free(r->text);
  r->text = strdup("Comm \"leak\" Children true");
  run(w, 1);
  assert_true(isnan(growth(w, "leak")) && growth(w, "steady") == 0);
}

WORLD_TEST(growth_begins_anew_if_the_window_is_another) {
  run_until_leak(w);
  for (size_t i = 0; i < 2; i++)
    w->settings.rules[i].report.growth_window_ns = 2 * WINDOW_S * NS;
  assert_unknown(w);
}

/* "%{comm}": the group is there when it has a member. */
static void begin_template(struct world *w) {
  world_group(w, "%{comm}", "Comm", "leak", NULL, NULL);
  w->settings.report.growth_window_ns = WINDOW_S * NS;
  world_remember(w);
  leak = fake_process(10, "leak");
  leak.starttime = 10;
  leak.private_kb = 10000;
  steady = fake_process(11, "steady");
  run(w, 60);
  assert_true(growth(w, "leak") > 0);
  world_stop(w);
}

static void wait_without(struct world *w, unsigned cycles) {
  proctree_end(&w->tree, 10);
  for (unsigned i = 0; i < cycles; i++) {
    world_run(w, CYCLE_S);
    assert_null(world_find(w, "leak"));
  }
}

WORLD_TEST(the_group_of_a_template_may_appear_later) {
  begin_template(w);
  wait_without(w, 5);
  miss(5);
  run(w, 1);
  assert_true(fabs(growth(w, "leak") / LEAK_RATE - 1) < 0.1);
}

WORLD_TEST(after_an_hour_nothing_waits) {
  begin_template(w);
  w->settings.report.growth_window_ns = WINDOW_S * NS;
  wait_without(w, 361);
  run(w, 1);
  assert_true(isnan(growth(w, "leak")));
}

/* --- the file --------------------------------------------------------------*/

static const char *state_path(const struct world *w) {
  return w->settings.state_file;
}

/* The file is refused with an error, and replaced by a later cycle. */
static void assert_refused(struct world *w, int error) {
  size_t n = world_n_written();

  assert_unknown(w);
  assert_int_equal(world_written(n)->kind, DOCUMENT_RESUME);
  assert_int_equal(world_written(n)->error, error);
  assert_string_equal(world_written(n)->path, state_path(w));
  run(w, 1);
  assert_int_equal(world_written(n + 1)->kind, DOCUMENT_STATE);
}

WORLD_TEST(a_damaged_file_is_refused_and_replaced) {
  int fd;

  run_until_leak(w);
  fd = open(state_path(w), O_WRONLY | O_APPEND);
  assert_int_equal(write(fd, "x\n", 2), 2);
  close(fd);
  assert_refused(w, -EBADMSG);
  assert_int_equal(world_written(world_n_written() - 1)->error, 0);
  parsed_free(parsed_file(state_path(w)));
}

WORLD_TEST(a_truncated_file_is_refused) {
  struct stat st;

  run_until_leak(w);
  assert_int_equal(stat(state_path(w), &st), 0);
  assert_int_equal(truncate(state_path(w), st.st_size - 100), 0);
  assert_refused(w, -EBADMSG);
}

WORLD_TEST(an_empty_file_is_refused) {
  run_until_leak(w);
  assert_int_equal(truncate(state_path(w), 0), 0);
  assert_refused(w, -EBADMSG);
}

WORLD_TEST(a_file_that_others_can_write_is_refused) {
  run_until_leak(w);
  assert_int_equal(chmod(state_path(w), 0646), 0);
  assert_refused(w, -EPERM);
}

WORLD_TEST(a_file_that_its_group_can_write_is_refused) {
  run_until_leak(w);
  assert_int_equal(chmod(state_path(w), 0660), 0);
  assert_refused(w, -EPERM);
}

WORLD_TEST(a_file_of_another_user_is_refused) {
  if (geteuid() != 0)
    skip();
  run_until_leak(w);
  assert_int_equal(chown(state_path(w), 12345, 0), 0);
  assert_refused(w, -EPERM);
}

WORLD_TEST(a_symbolic_link_is_refused) {
  char other[256];

  run_until_leak(w);
  snprintf(other, sizeof(other), "%s.other", state_path(w));
  assert_int_equal(rename(state_path(w), other), 0);
  assert_int_equal(symlink(other, state_path(w)), 0);
  assert_refused(w, -EPERM);
}

WORLD_TEST(a_pipe_is_refused_and_does_not_hang) {
  run_until_leak(w);
  assert_int_equal(unlink(state_path(w)), 0);
  assert_int_equal(mkfifo(state_path(w), 0600), 0);
  assert_refused(w, -EPERM);
}

/* The state of an earlier version, which says nothing, or of no run at all. */
WORLD_TEST(a_state_without_memory_counts_as_nothing) {
  size_t n;

  for (unsigned i = 0; i < 2; i++) {
    if (i == 0) {
      begin(w);
      world_remember(w);
      proctree_write(&w->tree, "state", TEXT("{\"format\":\"smaps\"}\n"));
    }
    n = world_n_written();
    assert_unknown(w);
    run(w, 1);
    assert_int_equal(world_written(n)->kind, DOCUMENT_STATE);
    world_stop(w);
    unlink(state_path(w));
  }
}

/* The document is much longer than what it remembers. */
WORLD_TEST(a_state_of_many_processes_remembers) {
  begin(w);
  world_remember(w);
  for (uint32_t pid = 100; pid < 500; pid++)
    world_put(w, fake_process(pid, "other"));
  run(w, 60);
  world_stop(w);
  run(w, 1);
  assert_true(growth(w, "leak") > 0);
}

/* Runs cycles at once until the file was taken, and a state replaces it. */
static void run_until_taken(struct world *w, size_t n_written) {
  for (unsigned i = 0; i < 10000 && world_n_written() == n_written; i++) {
    usleep(1000);
    world_run(w, 0);
  }
  assert_int_equal(world_written(n_written)->kind, DOCUMENT_STATE);
}

/* The first cycle waits for ReadTimeout, and the others do not. No state
 * replaces the file before it is read. */
WORLD_TEST(a_file_that_hangs_is_taken_when_it_comes) {
  size_t n;
  parsed d;

  run_until_leak(w);
  n = world_n_written();
  w->settings.read_timeout_ns = 100 * MS;
  pthread_mutex_lock(&gate);
  run(w, 3);
  assert_true(isnan(growth(w, "leak")));
  assert_int_equal(world_n_written(), n);
  pthread_mutex_unlock(&gate);
  run_until_taken(w, n);
  assert_true(fabs(growth(w, "leak") - LEAK_RATE) < 1);
  assert_true(growth(w, "steady") == 0);
  d = parsed_file(state_path(w));
  assert_true(strlen(parsed_string(d, "resume.1")) > 500); /* 60 points */
  parsed_free(d);
}

/* The leak has ended, as this run knows by itself. */
WORLD_TEST(a_file_that_comes_late_is_no_better_than_what_is_known) {
  size_t n;

  run_until_leak(w);
  n = world_n_written();
  w->settings.read_timeout_ns = 100 * MS;
  pthread_mutex_lock(&gate);
  for (unsigned i = 0; i < 30; i++) {
    run(w, 1);
    leak.private_kb -= LEAK_KB;
  }
  assert_true(growth(w, "leak") == 0);
  pthread_mutex_unlock(&gate);
  run_until_taken(w, n);
  assert_true(growth(w, "leak") == 0);
}

WORLD_TEST(the_end_does_not_wait_for_a_file_that_hangs) {
  run_until_leak(w);
  w->settings.read_timeout_ns = 100 * MS;
  pthread_mutex_lock(&gate);
  run(w, 1);
  world_stop(w);
  pthread_mutex_unlock(&gate);
}

/* --- other documents -------------------------------------------------------*/

WORLD_TEST(neither_history_nor_captures_have_it) {
  char path[256], command[300];
  const struct world_written *capture;
  parsed d;
  FILE *f;

  begin(w);
  world_remember(w);
  world_keep_captures(w);
  snprintf(path, sizeof(path), "%s/history", w->tree.root);
  w->settings.state_history = strdup(path);
  world_put_mapped(w, leak, NULL);
  world_put_mapped(w, steady, NULL);
  world_run_times(w, 2, CYCLE_S);
  world_raise(w, "leak");
  world_run(w, CYCLE_S);
  capture = world_written(1);
  world_run(w, 400); /* the history has no state of the first minutes */
  world_stop(w);
  assert_int_equal(capture->kind, DOCUMENT_CAPTURE);
  d = parsed_file(capture->path);
  assert_null(parsed_get(d, "resume"));
  assert_null(parsed_get(d, "state_interval"));
  parsed_free(d);
  d = parsed_file(state_path(w));
  assert_true(parsed_count(d, "resume") >= 3);
  assert_true(parsed_decimal(d, "state_interval") ==
              (double)w->settings.state_interval_ns / 1e9);
  parsed_free(d);
  snprintf(command, sizeof(command), "ls %s/*.json", path);
  f = popen(command, "r");
  assert_true(fscanf(f, "%255s", path) == 1);
  pclose(f);
  d = parsed_file(path);
  assert_null(parsed_get(d, "resume"));
  assert_null(parsed_get(d, "state_interval"));
  assert_int_equal(parsed_count(d, "processes"), 2);
  parsed_free(d);
}

/* --- captures --------------------------------------------------------------*/

/* Of all runs, the last of which ends. */
static size_t count_captures(struct world *w) {
  size_t n = 0;

  world_stop(w);
  for (size_t i = 0; i < world_n_written(); i++)
    n += world_written(i)->kind == DOCUMENT_CAPTURE;
  return n;
}

/* The leak, after an alarm about it. */
static void run_captured(struct world *w) {
  begin(w);
  world_remember(w);
  world_keep_captures(w);
  world_put_mapped(w, leak, NULL);
  world_put_mapped(w, steady, NULL);
  world_run_times(w, 2, CYCLE_S);
  world_raise(w, "leak");
  world_run(w, CYCLE_S);
  assert_int_equal(count_captures(w), 1);
}

static void raise_and_run(struct world *w, const char *value) {
  world_raise_as(w, "leak", value, SEVERITY_WARNING);
  world_run(w, CYCLE_S);
}

/* An alarm that cools down causes no second capture, and one about another
 * value does. */
WORLD_TEST(a_value_goes_on_to_cool_down) {
  run_captured(w);
  world_run(w, CYCLE_S);
  raise_and_run(w, "pss");
  assert_int_equal(count_captures(w), 1);
  world_run(w, CYCLE_S);
  raise_and_run(w, "uss");
  assert_int_equal(count_captures(w), 2);
  world_run(w, 300);
  raise_and_run(w, "pss");
  assert_int_equal(count_captures(w), 3);
}

/* Cooldown has become shorter. */
WORLD_TEST(no_value_cools_down_for_longer_than_cooldown) {
  run_captured(w);
  w->settings.capture.cooldown_ns = 30 * NS;
  world_run(w, CYCLE_S);
  world_run(w, 40);
  raise_and_run(w, "pss");
  assert_int_equal(count_captures(w), 2);
}

/* The change since the oldest point, for the line of the capture. */
WORLD_TEST(a_capture_shows_the_change_since_before_the_restart) {
  const struct world_written *capture;

  run_until_leak(w);
  world_keep_captures(w);
  world_put_mapped(w, leak, NULL);
  world_put_mapped(w, steady, NULL);
  world_run_times(w, 2, CYCLE_S);
  world_raise(w, "leak");
  world_run(w, CYCLE_S);
  capture = world_written(3);
  assert_int_equal(capture->kind, DOCUMENT_CAPTURE);
  assert_true(capture->summary.change.age_ns > 500 * NS);
  assert_true(capture->summary.change.bytes > (int64_t)(50 * LEAK_KB * KIB));
}
