/* A world for tests of the collector, in which files cannot be opened and
 * processes end between any two system calls. */
#ifndef SMAPS_TESTS_COLLECTED_H
#define SMAPS_TESTS_COLLECTED_H

#include "world.h"

struct opens {
  /* Opening a file of this name gives `error`, the first `failures` times. */
  const char *failing;
  int error;
  unsigned failures;
  /* How often a file of this name was opened, or tried. */
  const char *counted;
  unsigned opened;
  /* openat was called so often; before that call something happens. */
  unsigned calls, happens_before;
  void (*happen)(void);
  /* Reading a link of this name is refused; and how often it was. */
  const char *refused_link;
  unsigned refused;
};
extern struct opens opens;

/* Opening a file of this name fails from now on. */
void opens_refuse(const char *name, int error);

/* The same, while a reader hangs. */
void opens_count(const char *name);
unsigned opens_counted(void);

int collected_setup(void **state);
int collected_teardown(void **state);

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, collected_setup, collected_teardown, struct world *w)

/* A process of 140 kB, of which it shares 40 kB with another. */
struct fake process(uint32_t pid, const char *comm);

/* True if group "g" is exactly that of `n` such processes, in all values. */
bool is_whole(const struct world *w, unsigned n);
/* Asserts it after a cycle. */
void expect_whole(struct world *w, unsigned seconds, unsigned n);

#endif
