/* SPDX-License-Identifier: MIT */
/*
 * Each call that belongs to snapshots fails in turn, in every way in which it
 * can fail (see test_plugin_faults.c). Each cycle writes a state and a capture.
 * The values of groups stay the same, no half file is left, and the plugin logs
 * one complaint at most.
 *
 * Calls are made in two lanes: by the thread of the cycle, which makes the
 * documents, and by the thread that writes them.
 */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "fault_run.h"
#include "faults.h"

TEST_GROUP(fault_run_setup, fault_run_teardown)

/* Runs without a fault: with snapshots, and with none that is due. */
static struct fault_run whole, bare;
static unsigned lane; /* in which a call fails */

/* --- the documents to expect --- */

/* True for values of groups, except the uptime, which goes by the clock of this
 * host. */
static bool is_of_a_group(const char *identifier) {
  return strncmp(identifier, "smaps-", strlen("smaps-")) == 0 &&
         !strstr(identifier, "/uptime");
}

static bool is_equal(const struct stub_value *a, const struct stub_value *b) {
  for (size_t i = 0; i < a->n; i++)
    if (a->values[i] != b->values[i] &&
        !(isnan(a->values[i]) && isnan(b->values[i])))
      return false;
  return a->n == b->n;
}

static bool has_same_values(const struct fault_cycle *c,
                            const struct fault_cycle *expected) {
  for (size_t i = 0; i < expected->n_values; i++) {
    const struct stub_value *e = &expected->values[i];
    const struct stub_value *found = fault_run_find(c, i, e->identifier);

    if (is_of_a_group(e->identifier) && (!found || !is_equal(found, e)))
      return false;
  }
  return true;
}

/* True if a capture may lack something and nothing is logged: the files of a
 * process that could not be read, as if the kernel had refused them; or the
 * path in the notification, while the file is in the directory. */
static bool may_be_silent(void) {
  static const char *const calls[] = {
      "openat", "open",   "read",    "close",  "fstat",
      "malloc", "calloc", "realloc", "strdup", "reallocarray"};

  return fault_run_failed_in(calls, LENGTH(calls));
}

/* Returns how many captures may be there. The answer that an old one is gone
 * already keeps the plugin from removing it. */
static unsigned allowed_files(void) {
  bool is_gone =
      faults_error() == ENOENT && (strncmp(faults_made(), "fstatat", 7) == 0 ||
                                   strncmp(faults_made(), "unlinkat", 8) == 0);

  return FAULT_CAPTURES + is_gone;
}

static void check_documents(const struct fault_run *r, int i) {
  const struct fault_cycle *c = &r->cycles[i];
  bool is_whole = c->has_state && c->has_capture;
  bool is_lost = !c->has_state || c->files < whole.cycles[i].files;

  if (c->r != 0 || (!has_same_values(c, &whole.cycles[i]) &&
                    fault_run_answer() != UNTIL_AN_EXEC))
    faults_complain("cycle %d: values are not the same", i);
  if (c->n_logs > 1 || (c->n_logs && r->fault_phase != PHASE_CYCLES + i))
    faults_complain("cycle %d: %zu complaints: %s", i, c->n_logs, stub.logs[0]);
  if (c->files >
      (r->fault_phase == PHASE_CYCLES + i ? allowed_files() : FAULT_CAPTURES))
    faults_complain("cycle %d: %u files", i, c->files);
  if (r->fault_phase != PHASE_CYCLES + i && !is_whole)
    faults_complain("cycle %d: state %d, capture %d", i, c->has_state,
                    c->has_capture);
  if (r->fault_phase != PHASE_CYCLES + i || is_whole || c->n_logs == 1)
    return;
  if (is_lost || lane == 1 || !may_be_silent())
    faults_complain("cycle %d: state %d, capture %d, and nothing is logged", i,
                    c->has_state, c->has_capture);
}

/* True if the call belongs to snapshots. A cycle reads the processes, makes
 * snapshots, and submits its values. In the lane of its thread the calls in the
 * middle belong to snapshots; a cycle in which none is due makes the others. */
static bool is_for_snapshots(unsigned at) {
  for (int i = 0; lane == 0 && i < FAULT_CYCLES; i++) {
    unsigned begin = whole.ends[PHASE_CYCLES + i - 1],
             end = whole.ends[PHASE_CYCLES + i];
    unsigned submits = (unsigned)whole.cycles[i].n_values;
    unsigned reads =
        bare.ends[PHASE_CYCLES + i] - bare.ends[PHASE_CYCLES + i - 1] - submits;

    if (at > begin && at <= end)
      return at > begin + reads && at <= end - submits;
  }
  return true; /* a call of the start */
}

/* --- the tests --- */

static void try(unsigned at, unsigned way) {
  static struct fault_run r;

  fault_run(&r, SNAPSHOTS_DUE, at, way, NULL);
  if (!faults_made())
    return;
  fault_run_check_start(&r);
  for (int i = 0; r.r_init == 0 && i <= FAULT_CYCLES; i++)
    check_documents(&r, i);
}

/* Sweeps the calls of the lane that are made before the last cycle. */
static void sweep(unsigned which) {
  unsigned n;

  lane = which;
  faults_watch(lane);
  fault_run(&bare, SNAPSHOTS_IDLE, 0, 0, NULL);
  fault_run(&whole, SNAPSHOTS_DUE, 0, 0, NULL);
  n = whole.ends[PHASE_CYCLES + FAULT_CYCLES - 1];
  assert_in_range(faults_sweep(0, n, is_for_snapshots, try), 80, n);
}

TEST(without_a_fault_all_documents_are_written) {
  static const char *const calls[] = {
      "realloc",  "scandir",  "write",
      "fsync",    "fchmod",   "mkdir",
      "renameat", "unlinkat", "plugin_register_notification"};
  static struct fault_run r;

  fault_run(&r, SNAPSHOTS_DUE, 0, 0, NULL);
  for (size_t i = 0; i < LENGTH(calls); i++)
    if (faults_calls_of(calls[i]) == 0)
      fail_msg("%s is never called", calls[i]);
  assert_int_equal(r.r_init, 0);
  for (int i = 0; i <= FAULT_CYCLES; i++) {
    assert_int_equal(r.cycles[i].n_logs, 0);
    assert_true(r.cycles[i].has_state && r.cycles[i].has_capture);
    assert_int_equal(r.cycles[i].files, i == 0 ? 1 : FAULT_CAPTURES);
  }
}

TEST(any_fault_while_snapshots_are_made_is_survived) { sweep(0); }

TEST(any_fault_while_snapshots_are_written_is_survived) { sweep(1); }
