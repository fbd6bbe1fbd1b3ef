/* SPDX-License-Identifier: MIT */
/*
 * The whole life of the plugin, in which one system call fails (faults.h): it
 * is configured and started, runs a few cycles over a tree that does not
 * change, and is shut down.
 *
 * At 25 s a cycle first the names and then the readings of processes come to be
 * due again. After a call that was refused an hour passes, because the plugin
 * tries nothing again before.
 */
#ifndef SMAPS_TESTS_FAULT_RUN_H
#define SMAPS_TESTS_FAULT_RUN_H

#include "stub_daemon.h"

#include <stdbool.h>
#include <stddef.h>

/* The call may fail in any of these cycles. One more cycle follows, in which
 * everything has to be right again. */
#define FAULT_CYCLES 4

/* The tree has so many processes. */
#define FAULT_PROCESSES 9

/* The option MaxFiles allows so many captures. */
#define FAULT_CAPTURES 2

/* Snapshots are not configured; configured, but none is due; or each cycle
 * writes a state and a capture. */
enum fault_snapshots { SNAPSHOTS_NONE, SNAPSHOTS_IDLE, SNAPSHOTS_DUE };

/* What a cycle has returned, dispatched and written. */
struct fault_cycle {
  int r;
  size_t n_values, n_logs; /* lines from LOG_WARNING up */
  struct stub_value values[STUB_VALUES_MAX / 8];
  bool has_state, has_capture; /* whole ones, of this cycle */
  unsigned files;              /* captures that there are */
};

/* Phases of a run: the configuration, the start, then the cycles. */
#define PHASE_CONFIGURE 0
#define PHASE_START 1
#define PHASE_CYCLES 2
#define PHASES (PHASE_CYCLES + FAULT_CYCLES + 1)

struct fault_run {
  enum fault_snapshots snapshots;
  unsigned ends[PHASES]; /* how many calls were made until the phase ended */
  int fault_phase;       /* the phase in which the call failed, or -1 */
  int r_configure, r_init;
  size_t n_logs; /* of configuration and start */
  struct fault_cycle cycles[FAULT_CYCLES + 1];
};

/* A process that is absent in a cycle: from its start, or from the reading. */
enum fault_absence { FROM_THE_START, FROM_THE_READING, ABSENCES };

struct fault_absentee {
  size_t process; /* below FAULT_PROCESSES */
  int cycle;
  enum fault_absence absence;
};

/* Fixtures of all tests of a file: they make the tree, and remove it. */
int fault_run_setup(void **state);
int fault_run_teardown(void **state);

/* Runs the plugin. The `at`-th call fails in the `way`-th way (faults_start());
 * absentee may be NULL. */
void fault_run(struct fault_run *r, enum fault_snapshots snapshots, unsigned at,
               unsigned way, const struct fault_absentee *absentee);

/* Finds a value of a cycle, or NULL. Most values are at the same place in each
 * cycle: the search begins at this place. */
const struct stub_value *fault_run_find(const struct fault_cycle *c,
                                        size_t place, const char *id);

/* True if the call that failed has one of these names. */
bool fault_run_failed_in(const char *const *calls, size_t n);

/*
 * Some failures look like an answer, and the plugin cannot know that it is
 * wrong. For how long does it use such an answer?
 */
enum fault_answer {
  NO_ANSWER,
  FOR_THE_FIRST_CYCLE,
  FOR_A_CYCLE,
  UNTIL_AN_EXEC
};
enum fault_answer fault_run_answer(void);

/* Complains unless a start that failed logged one error, and one that succeeded
 * logged nothing. */
void fault_run_check_start(const struct fault_run *r);

#endif
