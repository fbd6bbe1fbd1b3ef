/*
 * Processes whose reading hangs. Such a process is left alone: nothing that can
 * hang is asked of it, for as long as back_off.h has it. Where the read hangs
 * still when that time is over, which costs nothing to see, it goes on for the
 * same time. It is free at once when it has become another process or runs
 * another program.
 */
#ifndef SMAPS_QUARANTINE_H
#define SMAPS_QUARANTINE_H

#include <smaps/reader.h>
#include <smaps/trouble.h>

struct quarantine {
  struct procfs *procfs;
  struct trouble *troubles; /* by kind */
  uint64_t stall_timeout_ns;
  uint64_t (*clock_ns)(void);
};

/* Takes in a process whose job has the result READ_STALLED or READ_HANGING. One
 * that was never in here is a trouble. */
void quarantine_take(const struct quarantine *q, const struct read_job *job);

/* Whether it is in there. */
bool quarantine_has(const struct process *p, uint64_t now_ns);

/* Whether it runs another program than when it was taken in, or last asked: by
 * comm and by its statm, which cannot hang. */
bool quarantine_has_changed(const struct quarantine *q, struct process *p,
                            const struct statm_sample *before);

/* A read of that kind went well: the next stall is like a first one, if it was
 * such a read that hung. */
void quarantine_forgive(struct process *p, enum read_kind kind);

/* The one or the other, after a job. True where nothing came of it: the read
 * hangs, or no thread was free for it. */
bool quarantine_check(const struct quarantine *q, const struct read_job *job);

/* It may be tried again at once. */
void quarantine_release(struct process *p);

#endif
