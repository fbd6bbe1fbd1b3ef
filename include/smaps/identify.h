/*
 * Looks at one process: is it the one that we know, does it live, has it run
 * another program since, and if so what is it called now.
 *
 * statm alone is read each cycle: it costs least and cannot hang. stat is asked
 * when statm has moved as an exec or a new thread would make it, or the pid may
 * be another process's; the names only when they can have changed, and only
 * those that some rule looks at: a command line may be 2 MB, and reading it
 * brings swapped-out memory back.
 */
#ifndef SMAPS_IDENTIFY_H
#define SMAPS_IDENTIFY_H

#include <limits.h>

#include <smaps/cmdline.h>
#include <smaps/process.h>
#include <smaps/trouble.h>
#include <smaps/user.h>

struct identifier {
  struct procfs *procfs;
  struct user_cache *users;
  struct trouble *troubles; /* by kind */
  unsigned attributes;      /* bit per attribute to read */
  void (*gone)(void *ctx, struct process *p);
  void *gone_ctx;
  uint64_t vanished; /* processes that ended while they were looked at */

  /* The values of the process at hand. */
  char comm[64];
  char command_line[CMDLINE_MAX + 1];
  char executable[PATH_MAX];
};

/*
 * Looks at the process and sets its state. Where the pid has come to another
 * process, gone() is called for the old one. is_match_due is set where a name
 * has changed.
 */
void identify_process(struct identifier *in, struct process *p,
                      uint64_t now_ns);

/*
 * Opens what a process's memory is read through: its directory, or that of a
 * live thread where the main thread has exited. As procfs_open_process(), and
 * PROCFS_GONE where the pid has come to another process.
 */
int identify_open_memory(struct procfs *procfs, const struct process *p,
                         int *ret_fd);

/* Notes a trouble with a process, and the first of its kind as the example. */
void identify_note(struct trouble *troubles, enum trouble_kind kind,
                   const struct process *p, int error, const char *file);

#endif
