/* SPDX-License-Identifier: MIT */
/* Makes a reader over a proc tree with one process, and feeds files while it
 * reads them. Programs that use this are linked with patience.o and
 * few_threads.o. */
#ifndef SMAPS_TESTS_READING_H
#define SMAPS_TESTS_READING_H

#include <pthread.h>
#include <semaphore.h>

#include "proctree.h"
#include "read/reader.h"

/* A question to the reader's clock takes so long. */
#define TOOK_NS 7000

#define PAGES(kb) (KIB * (kb) / (uint64_t)sysconf(_SC_PAGESIZE))

struct reading_world {
  struct proctree tree;
  struct procfs *procfs;
  struct diag diags[DIAGS];
  struct reader reader;
  struct process p; /* pid 10, alike in the tree */
};

/* Fixtures for TEST_WITH(): there is one world at a time. */
int reading_make(void **state);
int reading_unmake(void **state);

/* Makes the reader anew, with this limit. */
void reading_restart(struct reading_world *f, uint64_t read_timeout_ns);

/* Makes the tree one of our own pid namespace, and not a captured one. */
void reading_make_own(struct reading_world *f);

/* Returns a server of 8 MiB, of which 2 MiB are shared. */
struct fake reading_server(uint32_t pid);

void reading_put(const struct reading_world *f, struct fake fake);
void reading_write(const struct reading_world *f, const char *path,
                   const char *text);

/* Makes stat of pid 10 show so many page faults. */
void reading_put_faults(const struct reading_world *f, unsigned faults);

/* Gives the process three pages of its own. */
void reading_put_pages(const struct reading_world *f, uint32_t pid);

/* Runs a read of process 10. */
struct read_job reading_run(struct reading_world *f, enum read_kind kind);

/*
 * Feeds a file that hangs, on a thread of its own. What happens meanwhile
 * happens after the reader has opened the file and before it has the text.
 */
struct feeder {
  struct reading_world *f;
  const char *path;
  char text[512];
  void (*meanwhile)(const struct reading_world *f);
  sem_t *begin; /* waited for; NULL: nothing */
  pthread_t thread;
};

void reading_run_fed(struct feeder *d, struct read_job *jobs, size_t n);

uint64_t reading_rss_kb(const struct read_job *job);

#endif
