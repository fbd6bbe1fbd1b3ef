/* SPDX-License-Identifier: MIT */
/*
 * Updates the identity, the state and the names of each process.
 *
 * Each cycle reads only statm, which is cheapest and cannot hang. stat is read
 * when statm has changed as an exec or a new thread would change it, or when
 * another process may have the pid. Names are read only when they may have
 * changed, and only those that rules use.
 *
 * A process whose reading hangs (quarantine.h), or for which no reader is free,
 * keeps its attributes and gets a new statm. If it was never identified, or if
 * its reading fails, it is PROCESS_UNKNOWN and can be in any group.
 */
#ifndef SMAPS_IDENTIFY_H
#define SMAPS_IDENTIFY_H

#include "read/reader.h"

/*
 * Sets the state of all processes that are PROCESS_UNSEEN. Resets a process if
 * another one has its pid. Sets is_match_due if a name has changed. Returns the
 * number of processes that ended meanwhile.
 */
uint64_t identify_all(struct reader *r, const struct process_table *t);

#endif
