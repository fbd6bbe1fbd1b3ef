/* SPDX-License-Identifier: MIT */
/*
 * Processes whose reading hangs. Nothing that can hang is read of such a
 * process until its back-off (back_off.h) ends. If the same read still hangs
 * then, which costs no waiting, the back-off is repeated at the same length.
 * The process is released at once when the pid may have another process. If it
 * runs another program, its groups are unknown until the back-off ends.
 */
#ifndef SMAPS_QUARANTINE_H
#define SMAPS_QUARANTINE_H

#include "process/diag.h"
#include "read/read_job.h"

/* True if the process is quarantined. */
bool quarantine_has(const struct process *p, uint64_t now_ns);

/* Called by the reader after each job of a process. Adds the process of a job
 * that hangs, and notes its first hang. After a result, if the last hang was of
 * the same kind, the next one counts as the first. */
void quarantine_take(const struct reader_setup *setup,
                     const struct read_job *job);

#endif
