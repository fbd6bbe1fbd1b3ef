/*
 * The PID files of all rules: has them read in every cycle, and tells the
 * selectors whom they name.
 *
 * A file that hangs, or cannot be read for another reason, is left alone for a
 * while (back_off.h). Meanwhile it names whom it named, for as long as that
 * very process lives: one that comes to its pid later was never named. Then it
 * is not known whom the file names, and not nobody.
 */
#ifndef SMAPS_PID_WATCH_H
#define SMAPS_PID_WATCH_H

#include <smaps/quarantine.h>
#include <smaps/settings.h>

struct watched_file {
  const char *path; /* of the settings */
  uint32_t pid;     /* that it names; 0 for none */
  /* Of the process that had this pid when the file was read; 0 for none. */
  uint64_t starttime_ticks;
  bool is_known; /* it was read in this cycle */
  struct back_off back_off;
  uint64_t noted_ns; /* when it was a trouble last; 0 for never */
};

struct pid_watch {
  const struct settings *settings;
  struct reader *reader;
  const struct quarantine *quarantine;
  struct watched_file *files; /* each once, however many rules name it */
  size_t n;
  struct read_job *jobs; /* room for each */
};

/* -ENOMEM. */
int pid_watch_init(struct pid_watch *w, const struct settings *settings,
                   struct reader *reader, const struct quarantine *quarantine);
void pid_watch_done(struct pid_watch *w);

/*
 * Reads them, and has matched anew whom they name and do not name any more. To
 * be called when it is known who is there, and before they are matched. A file
 * that cannot be read is a trouble, at most once an hour.
 */
void pid_watch_run(struct pid_watch *w, const struct process_table *t,
                   uint64_t now_ns);

#endif
