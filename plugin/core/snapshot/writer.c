/* SPDX-License-Identifier: MIT */
#include "snapshot/writer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/duration.h"
#include "base/thread.h"
#include "snapshot/resume.h"

#define DOCUMENTS_MAX 8
/* The history has a state of each 5 minutes. So many files reach over a day:
 * their steps grow to 10, 20, 40 and 80 minutes after 1.5, 3.5, 7 and 13 hours.
 * The size limit is the default of captures; with less room the steps grow. */
#define HISTORY_STEP_S UINT64_C(300)
#define HISTORY_FILES 60
#define HISTORY_BYTES (UINT64_C(64) << 20)

struct writer {
  void (*done)(const struct document *result);
  char *paths[DOCUMENT_KINDS]; /* NULL: not wanted */
  /* Used by the thread only. */
  struct store captures, history;
  uint64_t step;        /* of the last state that was added to the history */
  uint64_t failed_hour; /* of the last failure of the history */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  /* Protected by the mutex. */
  struct document waiting[DOCUMENTS_MAX]; /* the oldest first */
  size_t n;
  uint64_t state_ns;     /* of writer_state_ns() */
  bool is_running;       /* the thread */
  bool is_recalling;     /* a DOCUMENT_RESUME is not read yet */
  struct resume *resume; /* what it had, until it is taken */
  bool is_ending;
  bool is_left_behind; /* the owner has gone: the thread frees the writer */
};

static void destroy(struct writer *w) {
  for (size_t i = 0; i < w->n; i++)
    free(w->waiting[i].text);
  for (int i = 0; i < DOCUMENT_KINDS; i++)
    free(w->paths[i]);
  resume_free(w->resume);
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->mutex);
  free(w);
}

int writer_new(const struct settings *settings,
               void (*done)(const struct document *result),
               struct writer **ret) {
  const struct capture_settings *capture = &settings->capture;
  const char *const paths[] = {[DOCUMENT_STATE] = settings->state_file,
                               [DOCUMENT_RESUME] = settings->state_file,
                               [DOCUMENT_HISTORY] = settings->state_history,
                               [DOCUMENT_CAPTURE] = capture->directory,
                               [DOCUMENT_PLACE] = capture->directory};
  struct writer *w = calloc(1, sizeof(*w));

  if (!w)
    return -ENOMEM;
  w->done = done;
  pthread_mutex_init(&w->mutex, NULL);
  thread_init_condition(&w->changed);
  for (int i = 0; i < DOCUMENT_KINDS; i++)
    if (paths[i] && !(w->paths[i] = strdup(paths[i]))) {
      destroy(w);
      return -ENOMEM;
    }
  w->captures = (struct store){.directory = w->paths[DOCUMENT_CAPTURE],
                               .max_files = capture->max_files,
                               .max_bytes = capture->max_bytes};
  w->history = (struct store){.directory = w->paths[DOCUMENT_HISTORY],
                              .max_files = HISTORY_FILES,
                              .max_bytes = HISTORY_BYTES,
                              .step_s = HISTORY_STEP_S};
  *ret = w;
  return 0;
}

/* --- the thread --- */

/* path: of the file, or NULL for the place of that kind. */
static void report(const struct writer *w, enum document_kind kind,
                   const struct document *d, const char *path, int error) {
  struct document result = *d;

  result.kind = kind;
  result.path = path ? path : w->paths[kind];
  result.error = error;
  w->done(&result);
}

/* The history does not need what the state file remembers, which is the end of
 * the text: "…,"resume":[…]}\n". */
static size_t cut_resume(const struct document *d) {
  if (d->resume_at == 0)
    return d->len;
  memcpy(d->text + d->resume_at, "}\n", 2);
  return d->resume_at + 2;
}

/* Only the first state of a step is added, also after a restart. A failure is
 * reported once an hour. */
static void add_to_history(struct writer *w, const struct document *d) {
  uint64_t seconds = d->time_ns / NS_PER_S;
  uint64_t step = seconds / HISTORY_STEP_S, hour = seconds / 3600;
  int rc;

  if (!w->paths[DOCUMENT_HISTORY] || d->is_early || step == w->step)
    return;
  w->step = step;
  rc = store_add(&w->history, "state", d->time_ns, d->text, cut_resume(d), NULL,
                 0);
  if (rc >= 0 || rc == -EEXIST || hour == w->failed_hour)
    return;
  w->failed_hour = hour;
  report(w, DOCUMENT_HISTORY, d, NULL, rc);
}

static void recall(struct writer *w) {
  struct document d = {.kind = DOCUMENT_RESUME};
  struct resume *resume = NULL;
  int rc = resume_read(w->paths[d.kind], &resume);

  pthread_mutex_lock(&w->mutex);
  w->resume = resume;
  w->is_recalling = false;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->mutex);
  if (rc < 0)
    report(w, d.kind, &d, NULL, rc);
}

static void write_state(struct writer *w, const struct document *d) {
  int rc = store_replace(w->paths[DOCUMENT_STATE], d->text, d->len);

  if (rc >= 0) {
    pthread_mutex_lock(&w->mutex);
    w->state_ns = d->cycle_ns;
    pthread_mutex_unlock(&w->mutex);
  }
  report(w, d->kind, d, NULL, rc);
}

static void write_document(struct writer *w, const struct document *d) {
  char path[PATH_MAX + NAME_MAX];
  int rc;

  if (d->kind == DOCUMENT_RESUME) {
    recall(w);
    return;
  }
  if (d->kind == DOCUMENT_PLACE) {
    rc = store_check(w->paths[DOCUMENT_PLACE], true);
    if (rc < 0)
      report(w, d->kind, d, NULL, rc);
    return;
  }
  if (d->kind == DOCUMENT_CAPTURE) {
    rc = store_add(&w->captures, d->subject, d->time_ns, d->text, d->len, path,
                   sizeof(path));
    report(w, d->kind, d, rc < 0 ? NULL : path, rc);
    return;
  }
  if (w->paths[DOCUMENT_STATE])
    write_state(w, d);
  add_to_history(w, d);
}

static bool pop_document(struct writer *w, struct document *ret) {
  while (w->n == 0 && !w->is_ending)
    pthread_cond_wait(&w->changed, &w->mutex);
  if (w->n == 0)
    return false;
  *ret = w->waiting[0];
  array_remove(w->waiting, &w->n, sizeof(*ret), 0);
  return true;
}

static void *run(void *arg) {
  struct writer *w = arg;
  struct document d;
  bool is_left_behind;

  pthread_mutex_lock(&w->mutex);
  while (!w->is_left_behind && pop_document(w, &d)) {
    pthread_mutex_unlock(&w->mutex);
    write_document(w, &d);
    free(d.text);
    pthread_mutex_lock(&w->mutex);
  }
  is_left_behind = w->is_left_behind;
  w->is_running = false;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->mutex);
  if (is_left_behind)
    destroy(w);
  return NULL;
}

static int start_thread(struct writer *w) {
  pthread_t thread;
  int rc = thread_start(&thread, run, w);

  if (rc < 0)
    return rc;
  pthread_detach(thread);
  w->is_running = true;
  return 0;
}

/* --- the queue --- */

static struct document *find_state(struct writer *w) {
  for (size_t i = 0; i < w->n; i++)
    if (w->waiting[i].kind == DOCUMENT_STATE)
      return &w->waiting[i];
  return NULL;
}

static int queue_document(struct writer *w, const struct document *d) {
  struct document *old = d->kind == DOCUMENT_STATE ? find_state(w) : NULL;
  int rc = w->is_running ? 0 : start_thread(w);

  if (rc < 0)
    return rc;
  if (old) {
    free(old->text);
    *old = *d;
    return 0;
  }
  if (w->n == DOCUMENTS_MAX)
    return -EBUSY;
  w->waiting[w->n++] = *d;
  pthread_cond_signal(&w->changed);
  return 0;
}

void writer_submit(struct writer *w, const struct document *d) {
  bool is_history = d->kind == DOCUMENT_STATE && !w->paths[DOCUMENT_STATE];
  int rc;

  pthread_mutex_lock(&w->mutex);
  rc = queue_document(w, d);
  w->is_recalling |= rc == 0 && d->kind == DOCUMENT_RESUME;
  pthread_mutex_unlock(&w->mutex);
  if (rc == 0)
    return;
  report(w, is_history ? DOCUMENT_HISTORY : d->kind, d, NULL, rc);
  free(d->text);
}

bool writer_recalled(struct writer *w, uint64_t timeout_ns,
                     struct resume **ret) {
  struct timespec deadline = thread_deadline(timeout_ns);
  bool is_read;
  int rc = 0;

  pthread_mutex_lock(&w->mutex);
  while (w->is_recalling && timeout_ns > 0 && rc == 0)
    rc = pthread_cond_timedwait(&w->changed, &w->mutex, &deadline);
  is_read = !w->is_recalling;
  *ret = w->resume;
  w->resume = NULL;
  pthread_mutex_unlock(&w->mutex);
  return is_read;
}

uint64_t writer_state_ns(struct writer *w) {
  uint64_t ns;

  pthread_mutex_lock(&w->mutex);
  ns = w->state_ns;
  pthread_mutex_unlock(&w->mutex);
  return ns;
}

void writer_free(struct writer *w, uint64_t timeout_ns) {
  struct timespec deadline = thread_deadline(timeout_ns);
  bool is_ours;
  int rc = 0;

  if (!w)
    return;
  pthread_mutex_lock(&w->mutex);
  w->is_ending = true;
  pthread_cond_broadcast(&w->changed);
  while (w->is_running && rc == 0)
    rc = pthread_cond_timedwait(&w->changed, &w->mutex, &deadline);
  is_ours = !w->is_running;
  w->is_left_behind = !is_ours;
  pthread_mutex_unlock(&w->mutex);
  if (is_ours)
    destroy(w);
}
