/*
 * Reads the PID files of all rules in every cycle and passes the pids to the
 * selectors.
 *
 * A file that hangs, or cannot be read for another reason, is left alone for a
 * while (back_off.h). Meanwhile it names the same process as before, for as
 * long as that process lives: a later process with its pid was never named.
 * After that the pid is unknown, which is not the same as none.
 */
#ifndef SMAPS_PID_WATCH_H
#define SMAPS_PID_WATCH_H

#include "read/reader.h"
#include <smaps/settings.h>

struct watched_file {
  struct selector *selector; /* owned by the settings */
  /* Start time of the process with this pid when the file was read; 0 for
   * none. */
  uint64_t starttime_ticks;
  struct back_off back_off;
  uint64_t noted_ns; /* time of the last note; 0 for never */
};

struct pid_watch {
  struct reader *reader;
  struct watched_file *files;
  size_t n;
};

/* -ENOMEM. */
int pid_watch_init(struct pid_watch *w, const struct settings *settings,
                   struct reader *reader);
void pid_watch_done(struct pid_watch *w);

/*
 * Reads the files, and makes processes due for matching that are newly named or
 * no longer named. Called after the processes are identified and before they
 * are matched. Notes each unreadable file at most once an hour.
 */
void pid_watch_run(const struct pid_watch *w, const struct process_table *t);

#endif
