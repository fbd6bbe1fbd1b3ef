/* SPDX-License-Identifier: MIT */
/*
 * Decides when a snapshot is due, makes it and gives it to the writer: the
 * state file every StateInterval, and a capture for each alarm, with the
 * largest members of the group and their mappings. Reading smaps costs more
 * than a rollup, so each cycle reads within a time budget, and a capture takes
 * several cycles.
 *
 * Any thread may raise an alarm; all other calls are made by the cycle's
 * thread.
 */
#ifndef SMAPS_RECORDER_H
#define SMAPS_RECORDER_H

#include <pthread.h>

#include "read/reader.h"
#include "snapshot/snapshot.h"
#include "snapshot/writer.h"

/* Alarms that may wait for their capture. Beyond that, the last of the least
 * severe ones is dropped. */
#define ALARMS_MAX 16

struct capture_member {
  uint32_t pid;
  uint64_t starttime_ticks;
  uint64_t weight; /* of last_known_weigh() */
};

/* Zero if no capture is running. */
struct capture {
  bool is_running;
  struct document document; /* of the first scene; its text comes last */
  struct json json;
  struct mapping_table all;
  struct capture_member *members; /* the largest first */
  size_t n, next;
  uint64_t left_out; /* members of the group that are not in the document */
};

struct recorder {
  const struct settings *settings;
  struct reader *reader;
  void (*written)(const struct document *w);
  struct writer *writer;  /* NULL: no snapshots are configured */
  uint64_t begin_ns;      /* of the first cycle; 0: none has run */
  uint64_t next_state_ns; /* 0: none was written yet */
  uint64_t state_ns;      /* the cycle of the last one */
  char boot_id[BOOT_ID_SIZE];
  struct resume_owners of; /* what a state remembers, in this cycle */
  bool is_recalling;     /* the state file of an earlier run is not read yet */
  struct resume *resume; /* what it has, until all is handed over */
  struct capture capture;
  uint64_t captured;     /* see recorder_has_captured() */
  pthread_mutex_t mutex; /* protects all below */
  uint64_t cycle_ns;     /* of the last cycle with captures; 0: none yet */
  struct cooldowns cooldowns;
  struct alarm alarms[ALARMS_MAX]; /* the most severe first, then the oldest */
  size_t n_alarms;
};

/* Begins a zeroed recorder. 0 or -ENOMEM. End with recorder_done(), which also
 * accepts a zeroed one. */
int recorder_init(struct recorder *r, const struct settings *settings,
                  struct reader *reader,
                  void (*written)(const struct document *w));

/* Writes the state of the last cycle, which must have succeeded, before the
 * end, if it is not the state that was written last. */
void recorder_finish(struct recorder *r, const struct scene *s);

/* Reports the captures that alarms still wait for (-ECANCELED), and waits at
 * most `timeout_ns` for the writer to finish. */
void recorder_done(struct recorder *r, uint64_t timeout_ns);

/* Asks for a capture, unless there are none of this severity, its value cools
 * down, another that waits serves it too, or too many wait. Called on any
 * thread. */
void recorder_raise(struct recorder *r, const struct alarm *alarm);

/*
 * Called in each cycle before cgroup_watch_run(), after the members were
 * counted, with all owners that are not its own: reads what the state file
 * remembers, and hands it over. The first cycle waits for the file, ReadTimeout
 * at most. A file that hangs is taken when it comes; until then no state
 * replaces it.
 */
void recorder_recall(struct recorder *r, const struct resume_owners *of);

/* True if the last recorder_run() has given the capture for the plugin's own
 * alarm with this id to the writer, which reports it. */
bool recorder_has_captured(const struct recorder *r, uint64_t id);

/*
 * Called after each cycle with its results: writes the snapshots that are due.
 * The first cycle writes none, unless has_state_at_start is set: `collectd -T`
 * runs it alone, beside a daemon whose files it is not to touch.
 *
 * Returns 0, NOTHING_DUE, or the error (-ENOMEM, -EFBIG for JSON_MAX) of a
 * document that was due. It is lost; the next is made when it is due.
 */
#define NOTHING_DUE 1
int recorder_run(struct recorder *r, const struct scene *s, uint64_t now_ns);

/* The time since the cycle whose state is in the state file, or since the first
 * cycle if none was written. Only with StateFile, after recorder_run(). */
uint64_t recorder_state_age_ns(const struct recorder *r, uint64_t now_ns);

/*
 * Reads the mappings of a process that the last cycle has seen, within
 * ReadTimeout, and makes the snapshot of it alone. Returns 0 and the document,
 * which the caller frees; -ESRCH if the process has ended or has no memory,
 * -EACCES if the kernel refuses, -ETIMEDOUT if reading it hangs; or -ENOMEM.
 */
int recorder_close_up(const struct scene *s, struct reader *reader,
                      uint32_t pid, char **ret_text, size_t *ret_len);

#endif
