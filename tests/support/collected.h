/* SPDX-License-Identifier: MIT */
/* A world for tests of the collector. Files can be made to fail when they are
 * opened, and a process can end between any two system calls. */
#ifndef SMAPS_TESTS_COLLECTED_H
#define SMAPS_TESTS_COLLECTED_H

#include "world.h"

struct opens {
  /* Opening a file of this name gives `error`, the first `failures` times; "*":
   * each file of a process. */
  const char *failing;
  int error;
  unsigned failures;
  /* Counts how often a file of this name was opened, or an open failed. */
  const char *counted;
  unsigned opened;
  /* `calls` counts calls of openat. Before the `happens_before`-th, happen() is
   * called. */
  unsigned calls, happens_before;
  void (*happen)(void);
  /* Reading a link of this name is refused, which `refused` counts. */
  const char *refused_link;
  unsigned refused;
};
extern struct opens opens;

/* Makes each open of a file of this name fail from now on. */
void opens_refuse(const char *name, int error);

/* Set and read `counted` and `opened` while a reader hangs, which may call
 * openat meanwhile. */
void opens_count(const char *name);
unsigned opens_counted(void);

int collected_setup(void **state);
int collected_teardown(void **state);

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, collected_setup, collected_teardown, struct world *w)

/* Returns a process of 140 kB, of which it shares 40 kB with another. */
struct fake collected_process(uint32_t pid, const char *comm);

/* True if the values of group "g" are exactly those of `n` such processes. */
bool collected_is_whole(const struct world *w, unsigned n);
/* Runs a cycle, and asserts that. */
void collected_expect_whole(struct world *w, unsigned seconds, unsigned n);

#endif
