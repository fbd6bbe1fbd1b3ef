/* SPDX-License-Identifier: MIT */
/*
 * One cycle from the list of processes to the sums of the groups;
 * contrib/HACKING has the way of a process through it.
 *
 * Every read that can hang in the kernel goes through the reader (reader.h). A
 * read that hangs blocks only its worker thread (worker_pool.h), and its
 * process is put into quarantine (quarantine.h).
 *
 * The core neither logs nor knows collectd.
 */
#ifndef SMAPS_COLLECTOR_H
#define SMAPS_COLLECTOR_H

#include "match/group.h"
#include "process/diag.h"
#include "report/host.h"
#include "snapshot/document.h"
#include <smaps/counts.h>
#include <smaps/settings.h>

struct collector;

/* The results of the last cycle; of the last that did not fail, but for diags.
 */
struct cycle_results {
  struct collector_counts counts;
  struct diag diags[DIAGS]; /* by kind */
  struct metric_context context;
  struct host_account host; /* without parts unless the host is seen */
  bool averages_mapcounts;  /* kernel_averages_mapcounts(), proc/kernel.h */
  bool is_captured;         /* procfs_is_captured(), proc/procfs.h */
  /* To be sent; one with has_capture when its document is written. */
  const struct alarm *alarms;
  size_t n_alarms;
  /* 0, 1 if no snapshot was due, or the error of one that was not made. */
  int snapshot_error;
};

/* A hook that is NULL stands for the system's own. */
struct collector_hooks {
  uint64_t (*clock_ns)(void);     /* never 0 */
  uint64_t (*cpu_clock_ns)(void); /* of the calling thread */
  /* May be called on another thread. */
  int (*look_up_user)(uint32_t uid, char *ret, size_t size);
  uint64_t (*wall_clock_ns)(void); /* since the Epoch */
  /* Gets the result of each snapshot; see writer.h. Required with snapshots. */
  void (*written)(const struct document *w);
};

/*
 * Settings are finished and outlive the collector. Returns 0, a negative errno,
 * or the result of procfs_new() for the proc root. Free with collector_free(),
 * which accepts NULL.
 */
int collector_new(struct settings *settings,
                  const struct collector_hooks *hooks, struct collector **ret);
void collector_free(struct collector *c);

/*
 * Runs one cycle. A negative errno (the proc root cannot be listed, or no
 * memory is left) means that there is nothing new to publish. A problem with a
 * single process is not a failure.
 */
int collector_cycle(struct collector *c);

/* Asks for a capture, if <Capture> asks for this severity. Called on any
 * thread. Alarms about unknown groups are ignored. */
void collector_raise(struct collector *c, const struct alarm *alarm);

/* After the last cycle: what its alarms of the group have told is told again by
 * the next run of the daemon. */
void collector_tell_again(struct collector *c, const char *group);

/*
 * Makes the snapshot of the last cycle, which must have succeeded, in memory:
 * for settings with has_snapshots. Returns 0 and the text, which the caller
 * frees, or -ENOMEM or -EFBIG.
 */
int collector_snapshot(const struct collector *c, char **ret_text,
                       size_t *ret_len);

/*
 * Makes a snapshot with one process of the last cycle, and reads its mappings
 * for it: the largest TopMappings. Returns 0 and the text, which the caller
 * frees, or what recorder_close_up() (snapshot/recorder.h) does.
 */
int collector_close_up(struct collector *c, uint32_t pid, char **ret_text,
                       size_t *ret_len);

/* They belong to c and change in the next cycle. */
const struct cycle_results *collector_results(const struct collector *c);

/* The next group to report. *cursor starts at 0. NULL at the end. */
struct group *collector_next_group(const struct collector *c, size_t *cursor);

#endif
