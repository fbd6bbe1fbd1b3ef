/* Processes with names, parents and units: for the tests of what rules do. */
#ifndef SMAPS_TESTS_MATCHED_H
#define SMAPS_TESTS_MATCHED_H

#include "world.h"

/* A process of 100 kB. Start times follow the pids. */
struct fake named(uint32_t pid, uint32_t ppid, const char *comm);

/* Writes such a process. */
void put(struct world *w, uint32_t pid, uint32_t ppid, const char *comm);
/* Writes several: "pid ppid comm, ...". */
void put_all(struct world *w, const char *processes);
/* Writes one that has called exec: the program shows in its size. */
void exec(struct world *w, uint32_t pid, uint32_t ppid, const char *comm);
/* Writes a daemon in a control group. */
void put_in_unit(struct world *w, uint32_t pid, const char *cgroup,
                 unsigned uid);

/* Adds rules for servers with their descendants, and for the rest. */
void group_servers(struct world *w);

/* How many processes wait to be matched, after the last cycle. */
unsigned unidentified(const struct world *w);

#endif
