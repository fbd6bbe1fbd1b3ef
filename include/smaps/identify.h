/*
 * Brings what is known of a process up to date: is it the one that we know,
 * does it live, has it run another program since, and if so what is it called
 * now.
 *
 * statm alone is read each cycle: it costs least and cannot hang. stat is asked
 * when statm has moved as an exec or a new thread would make it, or the pid may
 * be another process's; the names only when they can have changed, and only
 * those that some rule looks at: a command line may be 2 MB, and reading it
 * brings swapped-out memory back. So once a minute only what has run since can
 * have another one.
 *
 * One whose reading hangs (quarantine.h), or for which no reader is free, stays
 * what it was, with a new statm; if it was never identified it is
 * PROCESS_UNKNOWN, as is one whose reading fails, and can be in any group.
 */
#ifndef SMAPS_IDENTIFY_H
#define SMAPS_IDENTIFY_H

#include <smaps/quarantine.h>

struct identifier {
  struct procfs *procfs;
  struct reader *reader;
  struct quarantine *quarantine;
  uint64_t interval_ns;
  bool rules_need_executable; /* and not only snapshots */
  struct trouble *troubles;   /* by kind */
  void (*gone)(void *ctx, struct process *p);
  void *gone_ctx;
  uint64_t vanished; /* processes that ended while they were looked at */
};

/*
 * Sets the state of all processes that were not looked at yet. Where a pid has
 * come to another process, gone() is called for the old one. is_match_due is
 * set where a name has changed.
 */
void identify_all(struct identifier *in, struct process_table *t,
                  uint64_t now_ns);

/* Notes a trouble with a process, and the first of its kind as the example. */
void identify_note(struct trouble *troubles, enum trouble_kind kind,
                   const struct process *p, int error, const char *file);

#endif
