#include "snapshot/recorder.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int recorder_init(struct recorder *r, const struct settings *settings,
                  struct reader *reader,
                  void (*written)(const struct write_result *w)) {
  *r = (struct recorder){.settings = settings, .reader = reader};
  if (!settings->state_file && !settings->state_history &&
      !settings->capture.directory)
    return 0;
  pthread_mutex_init(&r->mutex, NULL);
  return writer_new(
      &(struct writer_settings){.state_file = settings->state_file,
                                .history = settings->state_history,
                                .directory = settings->capture.directory,
                                .max_files = settings->capture.max_files,
                                .max_bytes = settings->capture.max_bytes,
                                .done = written},
      &r->writer);
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

static bool is_cooling(const struct recorder *r, const struct alarm *alarm) {
  for (size_t i = 0; i < r->n_cooldowns; i++) {
    const struct cooldown *c = &r->cooldowns[i];

    if (c->severity == alarm->severity && strcmp(c->group, alarm->group) == 0 &&
        strcmp(c->type, alarm->type) == 0 &&
        strcmp(c->type_instance, alarm->type_instance) == 0)
      return true;
  }
  return false;
}

/* One capture serves all alarms of an interval. An alarm that cools down may
 * lead to none, and only that of a kill is about what was killed. */
static bool is_waiting(const struct recorder *r, const struct alarm *alarm) {
  for (size_t i = 0; i < r->n_alarms; i++) {
    const struct alarm *a = &r->alarms[i];

    if (a->severity == alarm->severity && strcmp(a->group, alarm->group) == 0 &&
        capture_is_of_kill(a) == capture_is_of_kill(alarm) && !is_cooling(r, a))
      return true;
  }
  return false;
}

static void remove_alarm(struct recorder *r, size_t i) {
  r->n_alarms--;
  memmove(&r->alarms[i], &r->alarms[i + 1],
          (r->n_alarms - i) * sizeof(*r->alarms));
}

/* True if there is a place for the alarm now. Those that come to nothing go
 * first: a threshold can repeat its alarm in each interval. */
static bool make_place(struct recorder *r, const struct alarm *alarm) {
  if (r->n_alarms == ALARMS_MAX && is_cooling(r, alarm))
    return false;
  for (size_t i = ALARMS_MAX; r->n_alarms == ALARMS_MAX && i-- > 0;)
    if (is_cooling(r, &r->alarms[i]))
      remove_alarm(r, i);
  if (r->n_alarms == ALARMS_MAX &&
      r->alarms[ALARMS_MAX - 1].severity < alarm->severity)
    r->n_alarms--;
  return r->n_alarms < ALARMS_MAX;
}

static void add_alarm(struct recorder *r, const struct alarm *alarm) {
  size_t i = r->n_alarms++;

  for (; i > 0 && r->alarms[i - 1].severity < alarm->severity; i--)
    r->alarms[i] = r->alarms[i - 1];
  r->alarms[i] = *alarm;
}

void recorder_raise(struct recorder *r, const struct alarm *alarm) {
  if (!r->writer || !r->settings->capture.directory)
    return;
  pthread_mutex_lock(&r->mutex);
  if (!is_waiting(r, alarm) && make_place(r, alarm))
    add_alarm(r, alarm);
  pthread_mutex_unlock(&r->mutex);
}

/* Takes the next alarm; those of values that cool down are dropped. */
static bool pop_alarm(struct recorder *r, struct alarm *ret) {
  bool has_any = false;

  pthread_mutex_lock(&r->mutex);
  assert(r->n_alarms <= ALARMS_MAX);
  while (!has_any && r->n_alarms > 0) {
    *ret = r->alarms[0];
    remove_alarm(r, 0);
    has_any = !is_cooling(r, ret);
  }
  pthread_mutex_unlock(&r->mutex);
  return has_any;
}

/* --- cooling down --- */

static void expire_cooldowns(struct recorder *r, uint64_t now_ns) {
  size_t kept = 0;

  pthread_mutex_lock(&r->mutex);
  for (size_t i = 0; i < r->n_cooldowns; i++)
    if (r->cooldowns[i].until_ns > now_ns)
      r->cooldowns[kept++] = r->cooldowns[i];
  r->n_cooldowns = kept;
  pthread_mutex_unlock(&r->mutex);
}

static int add_cooldown(struct recorder *r, const struct alarm *alarm,
                        uint64_t now_ns) {
  struct cooldown *c;

  if (r->n_cooldowns == r->cap_cooldowns) {
    size_t cap = r->cap_cooldowns ? r->cap_cooldowns * 2 : 16;

    c = reallocarray(r->cooldowns, cap, sizeof(*c));
    if (!c)
      return -ENOMEM;
    r->cooldowns = c;
    r->cap_cooldowns = cap;
  }
  c = &r->cooldowns[r->n_cooldowns++];
  memcpy(c->group, alarm->group, sizeof(c->group));
  memcpy(c->type, alarm->type, sizeof(c->type));
  memcpy(c->type_instance, alarm->type_instance, sizeof(c->type_instance));
  c->severity = alarm->severity;
  c->until_ns = now_ns + r->settings->capture.cooldown_ns;
  return 0;
}

static int cool_down(struct recorder *r, const struct alarm *alarm,
                     uint64_t now_ns) {
  int rc;

  pthread_mutex_lock(&r->mutex);
  rc = add_cooldown(r, alarm, now_ns);
  pthread_mutex_unlock(&r->mutex);
  return rc;
}

/* --- captures --- */

/* Begins the capture of the next alarm. A value cools down even if its capture
 * fails later: trying again does not help against a full disk. */
static int begin_next(struct recorder *r, const struct scene *s,
                      uint64_t now_ns) {
  struct alarm alarm;
  int rc = 0;

  while (rc == 0 && !r->capture.is_running && pop_alarm(r, &alarm)) {
    rc = capture_begin(&r->capture, s, &r->last_known, &alarm);
    if (rc == 0)
      rc = cool_down(r, &alarm, now_ns);
    if (rc == -ENOENT)
      rc = 0;
  }
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

/* By what ReadBudget makes in an interval. A capture is rare, and what it is
 * about may soon be gone. */
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
  int rc = 0;

  if (!r->settings->capture.directory)
    return;
  change_note(s->groups, s->cycle->kernel_fields, now_ns);
  expire_cooldowns(r, now_ns);
  if (!r->capture.is_running)
    rc = begin_next(r, s, now_ns);
  if (rc < 0)
    note_error(r, rc);
  last_known_note(&r->last_known, s);
  if (r->capture.is_running)
    continue_capture(r, s);
}

/* --- the state --- */

static void write_state(struct recorder *r, const struct scene *s) {
  struct document d = {.kind = DOCUMENT_STATE, .time_ns = s->time_ns};
  int rc = snapshot_make(s, &d.text, &d.len);

  submit_document(r, &d, rc);
}

/* A cycle may run a little early: half an interval is allowed. */
static bool is_state_due(const struct recorder *r, uint64_t now_ns) {
  return (r->settings->state_file || r->settings->state_history) &&
         now_ns + r->settings->interval_ns / 2 >= r->next_state_ns;
}

static void run_state(struct recorder *r, const struct scene *s,
                      uint64_t now_ns) {
  if (!is_state_due(r, now_ns))
    return;
  r->next_state_ns = now_ns + r->settings->state_interval_ns;
  write_state(r, s);
}

void recorder_run(struct recorder *r, const struct scene *s, uint64_t now_ns) {
  bool is_first = !r->has_begun;

  r->has_begun = true;
  if (is_first && r->writer)
    writer_check(r->writer);
  if (!r->writer || (is_first && !r->settings->has_state_at_start))
    return;
  r->is_one_lost = false;
  run_captures(r, s, now_ns);
  run_state(r, s, now_ns);
}
