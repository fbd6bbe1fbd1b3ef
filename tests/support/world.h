/* SPDX-License-Identifier: MIT */
/* A world has a proc tree, a collector that watches it, and a clock of its own.
 */
#ifndef SMAPS_TESTS_WORLD_H
#define SMAPS_TESTS_WORLD_H

#include <limits.h>
#include <smaps/collector.h>

#include "proctree.h"

struct world {
  struct proctree tree;
  struct settings settings;
  struct collector *collector;
};

/* The result of a snapshot, as the collector has reported it. */
struct world_written {
  enum document_kind kind;
  char subject[GROUP_NAME_SIZE];
  char path[PATH_MAX];
  struct summary summary; /* of a capture */
  struct alarm alarm;     /* that it was made for */
  int error;
};

/* Makes an empty tree and no rule. Every member is read in every cycle, MaxAge
 * is a minute, all values are reported, and there are no alarms; a test may
 * change the settings before the first cycle. */
void world_make(struct world *w);
void world_remove(struct world *w);

/* The same as fixtures of a test: *state is the world. */
int world_setup(void **state);
int world_teardown(void **state);

/*
 * Adds a group (or, with name NULL, an Ignore) with up to two selectors; option
 * NULL for none. The rule that is returned can be changed until the first
 * cycle.
 */
struct rule *world_group(struct world *w, const char *name, const char *option,
                         const char *pattern, const char *option2,
                         const char *pattern2);
void world_other(struct world *w, const char *name);

/* Writes the files of a process. */
void world_put(const struct world *w, struct fake f);
/* Writes them, and adds a group "g" that takes every process. */
void world_watch(struct world *w, struct fake f);
/* Does both, and runs the first cycle. */
void world_start(struct world *w, struct fake f);
/* Makes the tree one of our own pid namespace: pid 1 is not hidden, and the
 * core may ask the kernel who shares memory. */
void world_make_own(const struct world *w);
/* Writes a process with a smaps of one mapping, which has all of its private
 * memory. */
void world_put_mapped(const struct world *w, struct fake f, const char *name);

/* Runs a cycle, `seconds` after the last one; the collector is made for the
 * first. Returns what collector_cycle() does. */
int world_cycle(struct world *w, unsigned seconds);
/* Runs a cycle that has to succeed. */
void world_run(struct world *w, unsigned seconds);
void world_run_times(struct world *w, unsigned n, unsigned seconds);
/* Runs a cycle that has to read so many rollups. */
void world_run_reading(struct world *w, unsigned seconds, uint64_t n);
/* Runs a cycle in which so many processes have to hang. */
void world_run_hung(struct world *w, unsigned seconds, uint64_t n);
/* Runs cycles until no reader hangs: one that was woken takes its time to
 * return. */
void world_run_until_none_hangs(struct world *w);

/* The time of day at the first cycle's beginning; it goes on with the cycles.
 */
#define WORLD_WALL_NS (UINT64_C(1795268701) * 1000000000)
/* Sets only the clock of that time forward or back. */
void world_step(int64_t seconds);

/* Makes the collector write snapshots: the state to "state" in the tree, from
 * the first cycle on, and captures to "captures" in it. To be called before the
 * first cycle. */
void world_keep_state(struct world *w);
void world_keep_captures(struct world *w);

/* Raises an alarm about a value of a group; the second raises a warning about
 * its PSS. */
void world_raise_as(struct world *w, const char *group,
                    const char *type_instance, enum severity severity);
void world_raise(struct world *w, const char *group);

/* Waits for the result of the snapshot with that index, 0 for the first. */
const struct world_written *world_written(size_t index);
/* Returns how many results there are. Once the world is stopped there is one
 * for each snapshot. */
size_t world_n_written(void);
/* Frees the collector. */
void world_stop(struct world *w);
/* Lets the state file remember, from the second cycle and until the end of a
 * collector: it is the same boot for all. To be called before the first cycle.
 */
void world_remember(struct world *w);

/* Lets readings take so long in each cycle, and saves nothing for the next;
 * with 0 only due processes are read. To be called before the first cycle. */
void world_budget(struct world *w, uint64_t ns);
/* Lets a cycle read a single small process for its error. */
void world_budget_for_one(struct world *w);

/* Sets how long each reading takes from now on; with 0 it takes a microsecond.
 */
void world_walks_take(uint64_t ns);
/* Makes each reading wait so long for the processor besides. */
void world_walks_wait(uint64_t ns);

/* Takes processor time, of the thread that calls it. */
void world_spend(uint64_t ns);

/* Lets time pass; a microsecond passes by each question to the clock. */
void world_pass(uint64_t ns);

/* Finds a reported group of the last cycle, or NULL. */
const struct group *world_find(const struct world *w, const char *name);

/* Counts the groups that the last cycle reports. */
size_t world_groups(const struct world *w);

/* Counts the members of a group; 0 if it is not reported. */
unsigned world_members(const struct world *w, const char *name);

/* Asserts how many members groups have: "web=2 rest=0". */
void world_assert_members(const struct world *w, const char *members);

/* Returns a value of a group as it is published, by its name in Report; the
 * second in kB. */
double world_value(const struct world *w, const char *group,
                   const char *metric);
double world_kb(const struct world *w, const char *group, const char *metric);

/* Asserts values of a group: "pss=120k age=0 uss=nan", where 120k is 120 kB.
 * The other arguments are printed into the text, as by printf(). */
void world_assert(const struct world *w, const char *group, const char *values,
                  ...) __attribute__((format(printf, 3, 4)));
/* Runs a cycle, and then does the same. */
void world_expect(struct world *w, unsigned seconds, const char *group,
                  const char *values, ...)
    __attribute__((format(printf, 4, 5)));

/* Return counts and problems of the last cycle. */
const struct collector_counts *world_counts(const struct world *w);
const struct diag *world_diag(const struct world *w, enum diag_kind kind);

#endif
