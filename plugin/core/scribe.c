#include <smaps/scribe.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DOCUMENTS_MAX 8
#define NS UINT64_C(1000000000)

struct scribe {
  char *state_file, *directory;
  void (*done)(const struct written *w);
  struct store store; /* the thread's alone */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  /* Under the mutex. */
  struct document waiting[DOCUMENTS_MAX]; /* the first has waited longest */
  size_t n;
  bool has_thread;
  bool is_ending;
  bool is_left_behind; /* whoever owned it has gone: the thread frees it */
  bool has_ended;
};

static void destroy(struct scribe *s) {
  for (size_t i = 0; i < s->n; i++)
    free(s->waiting[i].text);
  free(s->state_file);
  free(s->directory);
  pthread_cond_destroy(&s->changed);
  pthread_mutex_destroy(&s->mutex);
  free(s);
}

static bool copy(const char *from, char **ret) {
  *ret = from ? strdup(from) : NULL;
  return *ret || !from;
}

int scribe_new(const struct scribe_settings *settings, struct scribe **ret) {
  struct scribe *s = calloc(1, sizeof(*s));
  pthread_condattr_t attributes;

  if (!s)
    return -ENOMEM;
  s->done = settings->done;
  if (!copy(settings->state_file, &s->state_file) ||
      !copy(settings->directory, &s->directory)) {
    free(s->state_file);
    free(s);
    return -ENOMEM;
  }
  store_init(&s->store, s->directory);
  s->store.max_files = settings->max_files;
  s->store.max_bytes = settings->max_bytes;
  pthread_mutex_init(&s->mutex, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&s->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  *ret = s;
  return 0;
}

/* --- the thread --- */

static const char *place_of(const struct scribe *s, const struct document *d) {
  return d->kind == DOCUMENT_STATE ? s->state_file : s->directory;
}

static void write_document(struct scribe *s, const struct document *d,
                           char *path, size_t size, struct written *ret) {
  *ret = (struct written){
      .kind = d->kind, .subject = d->subject, .path = place_of(s, d)};
  if (d->kind == DOCUMENT_STATE) {
    ret->error = store_replace(ret->path, d->text, d->len);
    return;
  }
  ret->error =
      store_add(&s->store, d->subject, d->time_ns, d->text, d->len, path, size);
  if (ret->error == 0)
    ret->path = path;
}

static bool take(struct scribe *s, struct document *ret) {
  while (s->n == 0 && !s->is_ending)
    pthread_cond_wait(&s->changed, &s->mutex);
  if (s->n == 0)
    return false;
  *ret = s->waiting[0];
  s->n--;
  for (size_t i = 0; i < s->n; i++)
    s->waiting[i] = s->waiting[i + 1];
  return true;
}

static void *run(void *arg) {
  struct scribe *s = arg;
  char path[PATH_MAX + NAME_MAX];
  struct document d;
  struct written w;
  bool is_left_behind;

  pthread_mutex_lock(&s->mutex);
  while (!s->is_left_behind && take(s, &d)) {
    pthread_mutex_unlock(&s->mutex);
    write_document(s, &d, path, sizeof(path), &w);
    s->done(&w);
    free(d.text);
    pthread_mutex_lock(&s->mutex);
  }
  is_left_behind = s->is_left_behind;
  s->has_ended = true;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->mutex);
  if (is_left_behind)
    destroy(s);
  return NULL;
}

/* Signals are the daemon's business. */
static int start_thread(struct scribe *s) {
  sigset_t all, before;
  pthread_t thread;
  int r;

  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  r = pthread_create(&thread, NULL, run, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (r != 0)
    return -r;
  pthread_detach(thread);
  s->has_thread = true;
  return 0;
}

/* --- those who give --- */

static struct document *find_state(struct scribe *s) {
  for (size_t i = 0; i < s->n; i++)
    if (s->waiting[i].kind == DOCUMENT_STATE)
      return &s->waiting[i];
  return NULL;
}

static int put(struct scribe *s, const struct document *d) {
  struct document *old = d->kind == DOCUMENT_STATE ? find_state(s) : NULL;
  int r = s->has_thread ? 0 : start_thread(s);

  if (r < 0)
    return r;
  if (old) {
    free(old->text);
    *old = *d;
    return 0;
  }
  if (s->n == DOCUMENTS_MAX)
    return -EBUSY;
  s->waiting[s->n++] = *d;
  pthread_cond_signal(&s->changed);
  return 0;
}

void scribe_give(struct scribe *s, const struct document *d) {
  int r;

  pthread_mutex_lock(&s->mutex);
  r = put(s, d);
  pthread_mutex_unlock(&s->mutex);
  if (r == 0)
    return;
  s->done(&(struct written){.kind = d->kind,
                            .subject = d->subject,
                            .path = place_of(s, d),
                            .error = r});
  free(d->text);
}

static struct timespec after(uint64_t ns) {
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  ns += (uint64_t)t.tv_nsec;
  t.tv_sec += (time_t)(ns / NS);
  t.tv_nsec = (long)(ns % NS);
  return t;
}

void scribe_free(struct scribe *s, uint64_t patience_ns) {
  struct timespec deadline = after(patience_ns);
  bool is_ours;
  int r = 0;

  if (!s)
    return;
  pthread_mutex_lock(&s->mutex);
  s->is_ending = true;
  pthread_cond_broadcast(&s->changed);
  while (s->has_thread && !s->has_ended && r == 0)
    r = pthread_cond_timedwait(&s->changed, &s->mutex, &deadline);
  is_ours = !s->has_thread || s->has_ended;
  s->is_left_behind = !is_ours;
  pthread_mutex_unlock(&s->mutex);
  if (is_ours)
    destroy(s);
}
