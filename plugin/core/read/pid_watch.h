/* SPDX-License-Identifier: MIT */
/*
 * PID files. What a file says is evidence, not a proof: its process may have
 * ended and the pid be another's, the number may be from a container, or
 * somebody else may have written it (enum pid_doubt). A number that fits no
 * process here names the process that has it in a pid namespace of its own,
 * if just one such process can have written the file.
 *
 * A file that hangs, or cannot be read for another reason, is left
 * alone for a while (back_off.h). Meanwhile it names the same process as
 * before, for as long as that process lives: a later process with its pid was
 * never named. After that the pid is unknown, which is not the same as none.
 */
#ifndef SMAPS_PID_WATCH_H
#define SMAPS_PID_WATCH_H

#include "read/reader.h"
#include <smaps/settings.h>

/* Reads the files of all selectors, and makes processes due for matching that
 * are newly named or no longer named. Called after the processes are identified
 * and before they are matched. Notes each file that is unreadable or newly in
 * doubt, at most once an hour. */
void pid_watch_run(struct reader *r, const struct settings *settings,
                   const struct process_table *t);

#endif
