/* SPDX-License-Identifier: MIT */
/* A parent and its children in a world of memory, and the estimator beside it.
 * Nothing is read but what a test asks for. */
#ifndef SMAPS_TESTS_LINEAGE_H
#define SMAPS_TESTS_LINEAGE_H

#include "estimate/estimator.h"
#include "member/address_space.h"
#include "member/member.h"
#include "memory_world.h"
#include "process/diag.h"

#define MIB_PAGES 256
#define LIBRARY 0
#define SMALL_FILE 1
#define BUFFERS 2

struct family {
  struct memory_world world;
  struct memory_view views[MEMORY_SLOTS];
  struct process *processes[MEMORY_SLOTS];
  struct process_table table;
  struct cycle cycle;
  struct sharing set;       /* of the group that they are in */
  struct sharing other_set; /* of another group */
  struct diag diags[DIAGS];
  uint64_t now_ns;
  unsigned hidden;  /* slots that cannot be looked at */
  unsigned outside; /* slots that are in no group */
  unsigned others;  /* slots that are in the other group */
};

/* Fixtures of a test: *state is the family. */
int lineage_make(void **state);
int lineage_unmake(void **state);

#define FAMILY_TEST(name)                                                      \
  TEST_WITH(name, lineage_make, lineage_unmake, struct family *f)

/* The processes become known as they are now, and nothing more. */
void lineage_update(struct family *f);

/* A cycle, so many seconds after the one before. */
void lineage_pass(struct family *f, unsigned seconds);

/* The kernel's rollup of it is taken in. */
void lineage_read(struct family *f, unsigned slot);

/* Of all processes together, in KiB. */
struct sums {
  double pss, uss, swap, error;
};
struct sums lineage_estimate(const struct family *f);
struct sums lineage_truth(const struct family *f);

void lineage_assert_near(double got, double want, double most,
                         const char *what);

/* The sums are no farther off, and Pss no farther than its error says. */
void lineage_expect_within(const struct family *f, double pss_kb,
                           double uss_kb);

/* Slot 0, with 40 MiB of its own and 1 MiB of a library; it is read. */
void lineage_start_parent(struct family *f);

#endif
