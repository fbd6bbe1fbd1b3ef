/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: JSON documents with the memory use of groups and processes, for
 * the state file and for captures. contrib/man/smaps-snapshot.5 describes them.
 */
#ifndef SMAPS_SNAPSHOT_H
#define SMAPS_SNAPSHOT_H

#include "read/read_job.h"
#include "snapshot/document.h"
#include "snapshot/json.h"
#include "snapshot/last_known.h"
#include "snapshot/resume.h"

/* Makes the document of a state: all groups and processes, no mappings, and
 * what resume_write() adds, unless `from` is NULL. Returns 0 and the text in
 * *ret, which the caller frees, or -ENOMEM or -EFBIG. */
int snapshot_make(const struct scene *s, const struct resume_owners *from,
                  struct document *ret);

/*
 * The order of calls: begin, process for each process, end. Processes may be of
 * later cycles than the beginning, each with its own scene. Errors stick to the
 * json.
 */

/* Writes the head, the rules and the groups. alarm is NULL for a state. The
 * group of that name gets the last known state, unless that is NULL. */
void snapshot_begin(struct json *j, const struct scene *s,
                    const struct alarm *alarm, const struct last_state *last);

/* close_up: the reading of its mappings, which are ranked; may be NULL. */
void snapshot_process(struct json *j, const struct scene *s,
                      const struct process *p, enum choice command_lines,
                      struct read_job *close_up);

/* Writes a process of that group that has ended. */
void snapshot_ended(struct json *j, const struct scene *s,
                    const struct last_state *last, const struct last_member *m);

/* Ends the document. A capture gets the number of members that it lacks and the
 * mappings of all its members; all is NULL for a state. */
void snapshot_end(struct json *j, const struct scene *s, uint64_t left_out,
                  struct mapping_table *all);

#endif
