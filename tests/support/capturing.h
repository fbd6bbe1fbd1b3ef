/* SPDX-License-Identifier: MIT */
/* A world with captures: each test makes one, mostly of the group "g". */
#ifndef SMAPS_TESTS_CAPTURING_H
#define SMAPS_TESTS_CAPTURING_H

#include "parsed.h"
#include "world.h"

/* The last capture that was read; freed after the test. */
extern parsed capturing_document;

/* Fixtures of a test: *state is the world. */
int capturing_setup(void **state);
int capturing_teardown(void **state);

#define CAPTURING_TEST(name)                                                   \
  TEST_WITH(name, capturing_setup, capturing_teardown, struct world *w)

/* Writes a process of `kb`, all of it its own and in a mapping of its name. */
void capturing_put(struct world *w, uint32_t pid, const char *comm,
                   unsigned kb);

/* Adds a group of the processes of its name. */
void capturing_group(struct world *w, const char *name);

/* Writes processes 10 to 9 + n, the last the largest, and adds group "g". */
void capturing_put_many(struct world *w, uint32_t n);

/* Runs a cycle of 10 s. */
void capturing_cycle(struct world *w);

/* Runs a cycle, and raises an alarm for the next. */
void capturing_raise(struct world *w, const char *name);

/* Waits for the first capture, and reads it. */
parsed capturing_read(void);

/* Asserts the processes in their order, "11 14", and how many were left out. */
void capturing_assert_members(parsed d, const char *pids, uint64_t left_out);

/* Makes the capture of a group, which is made in one cycle, and reads it. */
parsed capturing_run(struct world *w, const char *name);

#endif
