/*
 * Decides when a snapshot is made, makes it and gives it to the scribe: the
 * state file each StateInterval, and a capture for an alarm.
 *
 * Alarms may be raised on any thread; all else is the cycle's.
 */
#ifndef SMAPS_RECORDER_H
#define SMAPS_RECORDER_H

#include <pthread.h>

#include <smaps/capture.h>
#include <smaps/scribe.h>

/* Alarms that wait for their capture; more are dropped. */
#define ALARMS_MAX 16

struct cooldown {
  char group[NAME_SIZE];
  uint64_t until_ns;
};

struct recorder {
  const struct settings *settings;
  struct reader *reader;
  struct scribe *scribe; /* NULL where no snapshots are configured */
  uint64_t next_state_ns;
  struct capture capture;
  /* 0, or why the last document that was due could not be made: it is lost,
   * and the next one is tried in its time. -ENOMEM, -EFBIG (JSON_MAX). */
  int error;
  bool is_one_lost; /* in this cycle */
  struct cooldown *cooldowns;
  size_t n_cooldowns, cap_cooldowns;
  pthread_mutex_t mutex;           /* of the two below */
  struct alarm alarms[ALARMS_MAX]; /* the first has waited longest */
  size_t n_alarms;
};

/* -ENOMEM. End with recorder_done(), which may be called for a zeroed one
 * too. */
int recorder_init(struct recorder *r, const struct settings *settings,
                  struct reader *reader,
                  void (*written)(const struct written *w));

/* Gives the scribe `patience_ns` to write what it has been given. */
void recorder_done(struct recorder *r, uint64_t patience_ns);

/* Asks for a capture; on any thread. */
void recorder_raise(struct recorder *r, const struct alarm *alarm);

/* After each cycle, with what it found: writes what is due. */
void recorder_run(struct recorder *r, const struct scene *s, uint64_t now_ns);

#endif
