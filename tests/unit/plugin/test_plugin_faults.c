/* SPDX-License-Identifier: MIT */
/*
 * Each call into the system fails in turn, in every way in which it can fail.
 * The plugin survives it, leaks nothing, logs one line at most and publishes no
 * wrong value; and in the next cycle everything is right again.
 *
 * The first run is without a fault. Another run follows for each call that it
 * has made and for each way in which that can fail; of calls that are alike,
 * only some fail. With FAULTS_ALIKE=1 all of them do, with FAULTS_STEP=n only
 * every n-th call does.
 */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fault_run.h"
#include "faults.h"

/* --- the values to expect --- */

static struct fault_run whole;
/* The values of each cycle in which one of the processes is absent. */
static struct fault_cycle without[FAULT_PROCESSES][FAULT_CYCLES][ABSENCES];

static int prepare(void **state) {
  static struct fault_run r;

  if (fault_run_setup(state) < 0)
    return -1;
  fault_run(&whole, SNAPSHOTS_NONE, 0, 0, NULL);
  for (size_t i = 0; i < FAULT_PROCESSES; i++)
    for (int c = 0; c < FAULT_CYCLES; c++)
      for (int a = 0; a < ABSENCES; a++) {
        fault_run(&r, SNAPSHOTS_NONE, 0, 0,
                  &(struct fault_absentee){i, c, (enum fault_absence)a});
        without[i][c][a] = r.cycles[c];
      }
  return 0;
}

TEST_GROUP(prepare, fault_run_teardown)

static const struct stub_value *find(const struct fault_cycle *c,
                                     const char *id) {
  return fault_run_find(c, c->n_values, id);
}

/* True for amounts and counts of groups. The values that show how exact these
 * are may differ after a fault; so may growth, which takes longer to be known,
 * the uptime, which goes by the clock of this host, and the plugin's own
 * values.
 */
static bool is_compared(const char *id) {
  static const char *const others[] = {
      "percent-coverage",   "duration-age",
      "count-unreadable",   "memory-pss_error",
      "memory-uss_error",   "percent-pss_error",
      "percent-uss_error",  "uptime",
      "gauge-growth",       "duration-until_limit",
      "memory-freed_error", "percent-freed_error"};
  const char *slash = strchr(id, '/');

  if (strncmp(id, "smaps-", strlen("smaps-")) != 0)
    return false;
  for (size_t i = 0; i < LENGTH(others); i++)
    if (strcmp(slash + 1, others[i]) == 0)
      return false;
  return true;
}

/* Returns another value of the same group, or 0. */
static double beside(const struct fault_cycle *c, const char *id,
                     const char *name) {
  char other[128];
  const struct stub_value *v;

  snprintf(other, sizeof(other), "%.*s/%s", (int)strcspn(id, "/"), id, name);
  v = find(c, other);
  return v ? v->values[0] : 0;
}

/* Returns how far off the value may be. If the group has a guess, its error
 * says it; swap has no error, and may be anything. */
static double tolerance(const struct fault_cycle *c, const char *id) {
  const char *name = strchr(id, '/') + 1;

  if (!(beside(c, id, "count-unreadable") > 0) || strncmp(name, "ps_", 3) == 0)
    return 0;
  if (strstr(name, "swap"))
    return (double)INFINITY;
  if (strncmp(strchr(name, '-'), "-pss", 4) == 0)
    return beside(c, id,
                  *name == 'p' ? "percent-pss_error" : "memory-pss_error");
  if (strncmp(strchr(name, '-'), "-freed", 6) == 0)
    return beside(c, id,
                  *name == 'p' ? "percent-freed_error" : "memory-freed_error");
  return *name == 'p' ? beside(c, id, "percent-pss_error") +
                            beside(c, id, "percent-uss_error")
                      : beside(c, id, "memory-pss_error") +
                            beside(c, id, "memory-uss_error");
}

static bool is_same(const struct stub_value *a, const struct stub_value *b,
                    double tolerated) {
  for (size_t i = 0; i < a->n; i++)
    if (fabs(a->values[i] - b->values[i]) > tolerated)
      return false;
  return a->n == b->n;
}

/* Returns the first value that is neither NaN nor near the expected value, or
 * NULL. */
static const struct stub_value *find_wrong(const struct fault_cycle *c,
                                           const struct fault_cycle *expected) {
  for (size_t i = 0; i < c->n_values; i++) {
    const struct stub_value *v = &c->values[i];
    const struct stub_value *e = fault_run_find(expected, i, v->identifier);

    if ((e && is_same(v, e, 0)) || !is_compared(v->identifier))
      continue;
    if (!e || !is_same(v, e, tolerance(c, v->identifier)))
      return v;
  }
  return NULL;
}

static double own_value(const struct fault_cycle *c, const char *id) {
  const struct stub_value *v = find(c, id);

  return v ? v->values[0] : 0;
}

/* True if the plugin reports that a process is missing, in the log or by a
 * count. */
static bool is_reported(const struct fault_cycle *c) {
  return c->n_logs > 0 || own_value(c, "smaps/count-vanished") > 0 ||
         own_value(c, "smaps/count-denied") > 0;
}

static bool is_explained(const struct fault_cycle *c, int i) {
  if (!find_wrong(c, &whole.cycles[i]))
    return true;
  for (size_t f = 0; f < FAULT_PROCESSES; f++)
    for (int a = 0; a < ABSENCES; a++)
      if (!find_wrong(c, &without[f][i][a]))
        return is_reported(c);
  return false;
}

static bool is_whole(const struct fault_cycle *c, int i) {
  for (size_t v = 0; v < whole.cycles[i].n_values; v++) {
    const struct stub_value *expected = &whole.cycles[i].values[v];
    const struct stub_value *found = fault_run_find(c, v, expected->identifier);

    if (!is_compared(expected->identifier))
      continue;
    if (!found || !is_same(found, expected, 0) || isnan(found->values[0]))
      return false;
  }
  return !find_wrong(c, &whole.cycles[i]);
}

/* --- the sweep --- */

/* True if the plugin may still use the wrong answer that it got. */
static bool uses_an_answer(const struct fault_run *r, int i) {
  if (r->fault_phase < PHASE_CYCLES + i)
    return fault_run_answer() == UNTIL_AN_EXEC;
  return fault_run_answer() >= (i == 0 ? FOR_THE_FIRST_CYCLE : FOR_A_CYCLE);
}

/* True if there was no memory for something. The plugin cannot start then. */
static bool lacks_memory(void) {
  static const char *const calls[] = {"malloc", "calloc",    "realloc",
                                      "strdup", "newlocale", "regcomp"};

  return fault_run_failed_in(calls, LENGTH(calls));
}

static void check_start(const struct fault_run *r) {
  if (r->fault_phase <= PHASE_START && lacks_memory() && r->r_configure == 0 &&
      r->r_init == 0)
    faults_complain("start: starts without the memory");
  fault_run_check_start(r);
}

static void check_cycle(const struct fault_run *r, int i) {
  const struct fault_cycle *c = &r->cycles[i];
  const struct stub_value *wrong;

  if (c->n_logs > 1)
    faults_complain("cycle %d: %zu log lines", i, c->n_logs);
  if (c->r != 0 && c->n_values > 0)
    faults_complain("cycle %d: failed and dispatched %zu values", i,
                    c->n_values);
  if (r->fault_phase <= PHASE_CYCLES + i && uses_an_answer(r, i))
    return;
  if (r->fault_phase == PHASE_CYCLES + i && is_explained(c, i))
    return;
  if (r->fault_phase != PHASE_CYCLES + i && is_whole(c, i))
    return;
  wrong = find_wrong(c, &whole.cycles[i]);
  faults_complain("cycle %d: result %d, not %s: %s is %g (%zu log lines: %s)",
                  i, c->r,
                  r->fault_phase == PHASE_CYCLES + i ? "explained" : "whole",
                  wrong ? wrong->identifier : "something missing or",
                  wrong ? wrong->values[0] : (double)NAN, c->n_logs,
                  c->n_logs ? stub.logs[0] : "");
}

/* --- the tests --- */

static void try(unsigned at, unsigned way) {
  static struct fault_run r;

  fault_run(&r, SNAPSHOTS_NONE, at, way, NULL);
  if (!faults_made())
    return;
  check_start(&r);
  for (int i = 0; r.r_init == 0 && i <= FAULT_CYCLES; i++)
    check_cycle(&r, i);
}

static void sweep(unsigned from, unsigned to) {
  fault_run(&whole, SNAPSHOTS_NONE, 0, 0, NULL);
  faults_sweep(from, to, NULL, try);
}

TEST(without_a_fault_all_values_are_published) {
  static const char *const calls[] = {
      "malloc",    "calloc",  "reallocarray", "strdup",    "fdopendir",
      "readdir",   "open",    "openat",       "read",      "close",
      "fstat",     "fstatat", "readlinkat",   "regcomp",   "regexec",
      "newlocale", "kcmp",    "uname",        "getpwuid_r"};

  fault_run(&whole, SNAPSHOTS_NONE, 0, 0, NULL);
  for (size_t i = 0; i < LENGTH(calls); i++)
    if (faults_calls_of(calls[i]) == 0)
      fail_msg("%s is never called", calls[i]);
  assert_int_equal(whole.r_init, 0);
  assert_int_equal(whole.n_logs, 0);
  for (int i = 0; i <= FAULT_CYCLES; i++) {
    const struct fault_cycle *c = &whole.cycles[i];

    assert_int_equal(c->n_logs, 0);
    assert_true(is_whole(c, i));
    /* The memory is that of 10 and 20; 11 has none of its own. */
    assert_true(own_value(c, "smaps-web/ps_count") == 3);
    assert_true(own_value(c, "smaps-web/memory-uss") == 1600 * 1024);
    assert_true(own_value(c, "smaps-db.service-main/memory-swap") == 20 * 1024);
    assert_true(own_value(c, "smaps-pid/memory-pss") == 70 * 1024);
    assert_true(own_value(c, "smaps-leaders/memory-pss") == 220 * 1024);
    assert_true(own_value(c, "smaps-other/memory-pss") == 40 * 1024);
    assert_true(own_value(c, "smaps-user-seven/ps_count") == 1);
  }
}

TEST(any_fault_in_the_configuration_is_survived) {
  sweep(0, whole.ends[PHASE_CONFIGURE]);
}

TEST(any_fault_in_the_start_is_survived) {
  sweep(whole.ends[PHASE_CONFIGURE], whole.ends[PHASE_START]);
}

TEST(any_fault_in_a_cycle_is_survived) {
  sweep(whole.ends[PHASE_START], whole.ends[PHASE_CYCLES + FAULT_CYCLES - 1]);
}
