/* A world whose collector writes its state in each cycle, and the document that
 * was read back last. */
#ifndef SMAPS_TESTS_DOCUMENTED_H
#define SMAPS_TESTS_DOCUMENTED_H

#include "parsed.h"
#include "world.h"

/* The last one that was read; freed with the next. */
extern parsed document;

/* Fixtures of a test: *state is the world. */
int documented_setup(void **state);
int documented_teardown(void **state);

/* Runs a cycle and reads its state. */
parsed next_state(struct world *w);

/* The same, of a capture of that group, which takes one cycle. */
parsed capture(struct world *w, const char *group);

/* A process of 8 MiB with two threads, 2 MiB of it shared. */
struct fake fake_member(uint32_t pid, const char *comm);

/* A group of the processes of its name. */
struct rule *add_group(struct world *w, const char *name);

/* The process of a document. */
parsed of(parsed d, uint64_t pid);

void assert_source(parsed d, uint64_t pid, const char *source);
void assert_lacks(parsed p, const char *path);

#endif
