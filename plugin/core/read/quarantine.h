/*
 * Processes whose reading hangs. Nothing that can hang is read of such a
 * process until its back-off (back_off.h) ends. If the same read still hangs
 * then, which costs no waiting, the back-off is repeated at the same length.
 * The process is released at once when the pid has another process or the
 * process runs another program.
 */
#ifndef SMAPS_QUARANTINE_H
#define SMAPS_QUARANTINE_H

#include "diag.h"
#include "read/reader.h"

struct quarantine {
  struct procfs *procfs;
  struct diag *diags; /* indexed by kind */
  uint64_t read_timeout_ns;
  uint64_t (*clock_ns)(void);
};

/* True if the process is quarantined. */
bool quarantine_has(const struct process *p, uint64_t now_ns);

/* True if the process runs another program than at the last call, or when it
 * was added: judged by comm and statm, which cannot hang. */
bool quarantine_has_changed(const struct quarantine *q, struct process *p,
                            const struct statm_sample *before);

/*
 * Adds the process of a job that hangs, and notes its first hang. After another
 * result, if the last hang was of the same kind, the next one counts as the
 * first. True if the job has no result: the read hangs, or no thread was free
 * for it.
 */
bool quarantine_check(const struct quarantine *q, const struct read_job *job);

#endif
