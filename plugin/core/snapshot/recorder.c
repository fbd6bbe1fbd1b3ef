#include "snapshot/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proc/array.h"

int recorder_init(struct recorder *r, const struct settings *settings,
                  struct reader *reader,
                  void (*written)(const struct write_result *w)) {
  *r = (struct recorder){.settings = settings, .reader = reader};
  if (!settings->state_file && !settings->state_history &&
      !settings->capture.directory)
    return 0;
  pthread_mutex_init(&r->mutex, NULL);
  return writer_new(settings, written, &r->writer);
}

void recorder_done(struct recorder *r, uint64_t timeout_ns) {
  capture_done(&r->capture);
  last_known_done(&r->last_known);
  if (r->writer) {
    writer_free(r->writer, timeout_ns);
    pthread_mutex_destroy(&r->mutex);
  }
  free(r->cooldowns);
  *r = (struct recorder){.settings = NULL};
}

/* --- alarms --- */

static bool is_cooling(const struct recorder *r, const struct alarm *alarm,
                       uint64_t now_ns) {
  for (size_t i = 0; i < r->n_cooldowns; i++) {
    const struct alarm *a = &r->cooldowns[i].alarm;

    if (r->cooldowns[i].until_ns > now_ns && a->severity == alarm->severity &&
        strcmp(a->group, alarm->group) == 0 &&
        strcmp(a->type, alarm->type) == 0 &&
        strcmp(a->type_instance, alarm->type_instance) == 0)
      return true;
  }
  return false;
}

/* One capture serves all alarms of an interval, except that an alarm about a
 * kill gets its own, of the killed processes. */
static bool is_waiting(const struct recorder *r, const struct alarm *alarm) {
  for (size_t i = 0; i < r->n_alarms; i++) {
    const struct alarm *a = &r->alarms[i];

    if (a->severity == alarm->severity && strcmp(a->group, alarm->group) == 0 &&
        capture_is_of_kill(a) == capture_is_of_kill(alarm))
      return true;
  }
  return false;
}

/* If the queue is full, the last alarm is dropped for a more severe one. */
static void add_alarm(struct recorder *r, const struct alarm *alarm) {
  size_t i = r->n_alarms;

  if (i == ALARMS_MAX && r->alarms[--i].severity >= alarm->severity)
    return;
  r->n_alarms = i + 1;
  for (; i > 0 && r->alarms[i - 1].severity < alarm->severity; i--)
    r->alarms[i] = r->alarms[i - 1];
  r->alarms[i] = *alarm;
}

void recorder_raise(struct recorder *r, const struct alarm *alarm) {
  if (!r->writer || !r->settings->capture.directory)
    return;
  pthread_mutex_lock(&r->mutex);
  /* Its capture is made in the next cycle at the earliest. */
  if (!is_cooling(r, alarm, r->cycle_ns + r->settings->interval_ns) &&
      !is_waiting(r, alarm))
    add_alarm(r, alarm);
  pthread_mutex_unlock(&r->mutex);
}

/* In the place of a cooldown that is over, if possible. */
static int cool_down(struct recorder *r, const struct alarm *alarm,
                     uint64_t now_ns) {
  struct cooldown *cooldowns;
  size_t i = 0;

  while (i < r->n_cooldowns && r->cooldowns[i].until_ns > now_ns)
    i++;
  cooldowns =
      array_room(r->cooldowns, i, &r->cap_cooldowns, sizeof(*cooldowns));
  if (!cooldowns)
    return -ENOMEM;
  r->cooldowns = cooldowns;
  cooldowns[i] = (struct cooldown){
      .alarm = *alarm, .until_ns = now_ns + r->settings->capture.cooldown_ns};
  r->n_cooldowns += i == r->n_cooldowns;
  return 0;
}

/* --- captures --- */

/* Begins the capture of the next alarm. A value cools down even if its capture
 * fails later: trying again does not help against a full disk. Who raises an
 * alarm waits meanwhile, because it may be one that cools down then. */
static int begin_next(struct recorder *r, const struct scene *s,
                      uint64_t now_ns) {
  int rc = 0;

  pthread_mutex_lock(&r->mutex);
  r->cycle_ns = now_ns;
  while (rc == 0 && !r->capture.is_running && r->n_alarms > 0) {
    const struct alarm alarm = r->alarms[0];

    array_remove(r->alarms, &r->n_alarms, sizeof(alarm), 0);
    rc = capture_begin(&r->capture, s, &r->last_known, &alarm);
    if (rc == 0)
      rc = cool_down(r, &alarm, now_ns);
    else if (rc == -ENOENT)
      rc = 0;
  }
  pthread_mutex_unlock(&r->mutex);
  return rc;
}

/* Keeps the error of the first document that is lost in a cycle. */
static void note_error(struct recorder *r, int error) {
  if (!r->is_one_lost)
    r->error = error;
  r->is_one_lost |= error < 0;
}

static void submit_document(struct recorder *r, const struct document *d,
                            int error) {
  note_error(r, error);
  if (error == 0)
    writer_submit(r->writer, d);
}

/* A capture may take so many times the ReadBudget of an interval: it is rare,
 * and its processes may end soon. */
#define CAPTURE_TIMES_BUDGET 5

static uint64_t time_for_captures(const struct settings *s) {
  return (uint64_t)(CAPTURE_TIMES_BUDGET * s->read_budget_percent / 100 *
                    (double)s->interval_ns);
}

static void continue_capture(struct recorder *r, const struct scene *s) {
  struct document d = {.kind = DOCUMENT_CAPTURE, .time_ns = r->capture.time_ns};

  if (!capture_continue(&r->capture, s, r->reader,
                        time_for_captures(r->settings)))
    return;
  memcpy(d.subject, r->capture.alarm.group, sizeof(d.subject));
  d.summary = r->capture.summary;
  submit_document(r, &d,
                  capture_finish(&r->capture, r->settings, &d.text, &d.len));
}

static void run_captures(struct recorder *r, const struct scene *s,
                         uint64_t now_ns) {
  int rc;

  if (!r->settings->capture.directory)
    return;
  last_known_note(&r->last_known, s);
  rc = begin_next(r, s, now_ns);
  if (rc < 0)
    note_error(r, rc);
  if (r->capture.is_running)
    continue_capture(r, s);
}

/* --- the state --- */

/* A cycle may run a little early: half an interval is allowed. */
static bool is_state_due(const struct recorder *r, uint64_t now_ns) {
  return (r->settings->state_file || r->settings->state_history) &&
         now_ns + r->settings->interval_ns / 2 >= r->next_state_ns;
}

static void run_state(struct recorder *r, const struct scene *s,
                      uint64_t now_ns) {
  struct document d = {.kind = DOCUMENT_STATE, .time_ns = s->time_ns};

  if (!is_state_due(r, now_ns))
    return;
  r->next_state_ns = now_ns + r->settings->state_interval_ns;
  submit_document(r, &d, snapshot_make(s, &d.text, &d.len));
}

void recorder_run(struct recorder *r, const struct scene *s, uint64_t now_ns) {
  bool is_first = !r->has_begun;

  r->has_begun = true;
  if (!r->writer || (is_first && !r->settings->has_state_at_start))
    return;
  r->is_one_lost = false;
  run_captures(r, s, now_ns);
  run_state(r, s, now_ns);
}
