#include "snapshot/writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proc/duration.h"
#include "proc/thread.h"

#define DOCUMENTS_MAX 8
/* A day, and no more than captures may take by default. */
#define HOUR_NS (3600 * NS_PER_S)
#define HISTORY_FILES 24
#define HISTORY_BYTES (UINT64_C(64) << 20)

struct writer {
  char *state_file, *directory, *history_directory;
  void (*done)(const struct write_result *result);
  /* Used by the thread only. */
  struct store store, history;
  uint64_t hour; /* of the last state that was added to the history */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  /* Protected by the mutex. */
  struct document waiting[DOCUMENTS_MAX]; /* the oldest first */
  size_t n;
  bool has_thread, wants_check;
  bool is_ending;
  bool is_left_behind; /* the owner has gone: the thread frees the writer */
  bool has_ended;
};

static void destroy(struct writer *w) {
  for (size_t i = 0; i < w->n; i++)
    free(w->waiting[i].text);
  free(w->state_file);
  free(w->directory);
  free(w->history_directory);
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->mutex);
  free(w);
}

static bool copy(const char *from, char **ret) {
  *ret = from ? strdup(from) : NULL;
  return *ret || !from;
}

int writer_new(const struct writer_settings *settings, struct writer **ret) {
  struct writer *w = calloc(1, sizeof(*w));

  if (!w)
    return -ENOMEM;
  w->done = settings->done;
  if (!copy(settings->state_file, &w->state_file) ||
      !copy(settings->directory, &w->directory) ||
      !copy(settings->history, &w->history_directory)) {
    free(w->state_file);
    free(w->directory);
    free(w);
    return -ENOMEM;
  }
  store_init(&w->store, w->directory);
  w->store.max_files = settings->max_files;
  w->store.max_bytes = settings->max_bytes;
  store_init(&w->history, w->history_directory);
  w->history.max_files = HISTORY_FILES;
  w->history.max_bytes = HISTORY_BYTES;
  pthread_mutex_init(&w->mutex, NULL);
  thread_init_condition(&w->changed);
  *ret = w;
  return 0;
}

/* --- the thread --- */

/* A state may be for the history alone. */
static const char *place_of(const struct writer *w, const struct document *d) {
  if (d->kind == DOCUMENT_CAPTURE)
    return w->directory;
  return w->state_file ? w->state_file : w->history_directory;
}

static void write_document(struct writer *w, const struct document *d,
                           char *path, size_t size, struct write_result *ret) {
  *ret = (struct write_result){.kind = d->kind,
                               .subject = d->subject,
                               .summary = &d->summary,
                               .path = place_of(w, d)};
  if (d->kind == DOCUMENT_STATE) {
    ret->error =
        w->state_file ? store_replace(w->state_file, d->text, d->len) : 0;
    return;
  }
  ret->error =
      store_add(&w->store, d->subject, d->time_ns, d->text, d->len, path, size);
  if (ret->error == 0)
    ret->path = path;
}

/* A restart does not add another one for the hour. */
static void write_history(struct writer *w, const struct document *d,
                          char *path, size_t size) {
  uint64_t hour = d->time_ns / HOUR_NS;
  struct write_result result = {.kind = DOCUMENT_HISTORY,
                                .subject = d->subject,
                                .summary = &d->summary,
                                .path = w->history_directory};

  if (!w->history_directory || hour == w->hour)
    return;
  w->hour = hour;
  result.error = store_add_once(&w->history, "state", hour * HOUR_NS, d->text,
                                d->len, path, size);
  if (result.error < 0 && result.error != -EEXIST)
    w->done(&result);
}

static bool pop_document(struct writer *w, struct document *ret) {
  while (w->n == 0 && !w->is_ending)
    pthread_cond_wait(&w->changed, &w->mutex);
  if (w->n == 0)
    return false;
  *ret = w->waiting[0];
  w->n--;
  for (size_t i = 0; i < w->n; i++)
    w->waiting[i] = w->waiting[i + 1];
  return true;
}

static void check(struct writer *w, enum document_kind kind,
                  const char *place) {
  const struct summary none = {0};

  if (place)
    w->done(&(struct write_result){.kind = kind,
                                   .subject = "",
                                   .summary = &none,
                                   .path = place,
                                   .is_check = true});
}

static void *run(void *arg) {
  struct writer *w = arg;
  char path[PATH_MAX + NAME_MAX];
  struct document d;
  struct write_result result;
  bool is_left_behind, wants_check;

  pthread_mutex_lock(&w->mutex);
  wants_check = w->wants_check;
  pthread_mutex_unlock(&w->mutex);
  if (wants_check) {
    check(w, DOCUMENT_STATE, w->state_file);
    check(w, DOCUMENT_HISTORY, w->history_directory);
    check(w, DOCUMENT_CAPTURE, w->directory);
  }
  pthread_mutex_lock(&w->mutex);
  while (!w->is_left_behind && pop_document(w, &d)) {
    pthread_mutex_unlock(&w->mutex);
    write_document(w, &d, path, sizeof(path), &result);
    w->done(&result);
    if (d.kind == DOCUMENT_STATE)
      write_history(w, &d, path, sizeof(path));
    free(d.text);
    pthread_mutex_lock(&w->mutex);
  }
  is_left_behind = w->is_left_behind;
  w->has_ended = true;
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
  w->has_thread = true;
  return 0;
}

void writer_check(struct writer *w) {
  pthread_mutex_lock(&w->mutex);
  w->wants_check = true;
  if (!w->has_thread)
    (void)start_thread(w);
  pthread_mutex_unlock(&w->mutex);
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
  int rc = w->has_thread ? 0 : start_thread(w);

  if (rc < 0)
    return rc;
  if (old) {
    free(old->text);
    *old = *d;
    return 0;
  }
  if (w->n == DOCUMENTS_MAX)
    return -EBUSY;
  assert(w->n < DOCUMENTS_MAX);
  w->waiting[w->n++] = *d;
  pthread_cond_signal(&w->changed);
  return 0;
}

void writer_submit(struct writer *w, const struct document *d) {
  int rc;

  pthread_mutex_lock(&w->mutex);
  rc = queue_document(w, d);
  pthread_mutex_unlock(&w->mutex);
  if (rc == 0)
    return;
  w->done(&(struct write_result){
      .kind = d->kind == DOCUMENT_STATE && !w->state_file ? DOCUMENT_HISTORY
                                                          : d->kind,
      .subject = d->subject,
      .summary = &d->summary,
      .path = place_of(w, d),
      .error = rc});
  free(d->text);
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
  while (w->has_thread && !w->has_ended && rc == 0)
    rc = pthread_cond_timedwait(&w->changed, &w->mutex, &deadline);
  is_ours = !w->has_thread || w->has_ended;
  w->is_left_behind = !is_ours;
  pthread_mutex_unlock(&w->mutex);
  if (is_ours)
    destroy(w);
}
