#include "sampler.h"

#include "live.h"
#include "memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct sampler {
  struct probe *probe; /* the thread's */
  pthread_t thread;
  pthread_mutex_t mutex; /* protects the rest */
  pthread_cond_t asked;
  bool wants_refresh, is_ended, is_working;
  bool has_refreshed;  /* a close-up is of the last refresh */
  uint64_t wanted_pid; /* UNKNOWN: none */
  bool has_sample;     /* that was not taken; the next one waits for that */
  struct sample sample;
  int event;
};

static int make(struct sampler *s, uint64_t pid, struct document *ret,
                struct config_error *reason) {
  return pid == UNKNOWN ? live_refresh(s->probe, ret, reason)
                        : live_close_up(s->probe, pid, NULL, ret, reason);
}

/* Called with the mutex, which is free while the sample is made. */
static void work(struct sampler *s) {
  struct sample sample = {.pid = s->wants_refresh ? UNKNOWN : s->wanted_pid};

  if (s->wants_refresh)
    s->wants_refresh = false;
  else
    s->wanted_pid = UNKNOWN;
  s->is_working = true;
  pthread_mutex_unlock(&s->mutex);
  sample.has_document =
      make(s, sample.pid, &sample.document, &sample.reason) == 0;
  pthread_mutex_lock(&s->mutex);
  s->is_working = false;
  s->has_refreshed |= sample.pid == UNKNOWN && sample.has_document;
  s->sample = sample;
  s->has_sample = true;
  eventfd_write(s->event, 1);
}

static bool has_work(const struct sampler *s) {
  return s->wants_refresh || (s->wanted_pid != UNKNOWN && s->has_refreshed);
}

static void *run(void *context) {
  struct sampler *s = context;

  pthread_mutex_lock(&s->mutex);
  while (!s->is_ended) {
    if (has_work(s) && !s->has_sample)
      work(s);
    else
      pthread_cond_wait(&s->asked, &s->mutex);
  }
  pthread_mutex_unlock(&s->mutex);
  return NULL;
}

/* Signals that end the program are for the thread of the screen. */
static int start(struct sampler *s) {
  static const int ours[] = {SIGINT,  SIGTERM,  SIGHUP,
                             SIGQUIT, SIGWINCH, SIGTSTP};
  sigset_t blocked, before;
  int rc;

  sigemptyset(&blocked);
  for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
    sigaddset(&blocked, ours[i]);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  rc = pthread_create(&s->thread, NULL, run, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return -rc;
}

static void drop(struct sampler *s) {
  if (s->has_sample && s->sample.has_document)
    document_done(&s->sample.document);
  close(s->event);
  pthread_cond_destroy(&s->asked);
  pthread_mutex_destroy(&s->mutex);
  probe_free(s->probe);
  free(s);
}

int sampler_new(struct probe *probe, struct sampler **ret) {
  struct sampler *s = memory_array(NULL, 1, sizeof(*s));
  int rc;

  memset(s, 0, sizeof(*s));
  s->probe = probe;
  s->wanted_pid = UNKNOWN;
  pthread_mutex_init(&s->mutex, NULL);
  pthread_cond_init(&s->asked, NULL);
  s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  rc = s->event < 0 ? -errno : start(s);
  if (rc < 0)
    drop(s);
  else
    *ret = s;
  return rc;
}

void sampler_free(struct sampler *s) {
  bool is_working;

  pthread_mutex_lock(&s->mutex);
  s->is_ended = true;
  is_working = s->is_working;
  pthread_cond_signal(&s->asked);
  pthread_mutex_unlock(&s->mutex);
  if (is_working) {
    pthread_detach(s->thread);
    return;
  }
  pthread_join(s->thread, NULL);
  drop(s);
}

int sampler_fd(const struct sampler *s) { return s->event; }

static void ask(struct sampler *s, bool refresh, uint64_t pid) {
  pthread_mutex_lock(&s->mutex);
  s->wants_refresh |= refresh;
  s->wanted_pid = pid;
  pthread_cond_signal(&s->asked);
  pthread_mutex_unlock(&s->mutex);
}

void sampler_refresh(struct sampler *s, uint64_t pid) { ask(s, true, pid); }

void sampler_close_up(struct sampler *s, uint64_t pid) { ask(s, false, pid); }

bool sampler_is_busy(struct sampler *s) {
  bool is_busy;

  pthread_mutex_lock(&s->mutex);
  is_busy = s->is_working || has_work(s);
  pthread_mutex_unlock(&s->mutex);
  return is_busy;
}

bool sampler_take(struct sampler *s, struct sample *ret) {
  eventfd_t count;
  bool has_sample;

  pthread_mutex_lock(&s->mutex);
  has_sample = s->has_sample;
  if (has_sample) {
    *ret = s->sample;
    s->has_sample = false;
    eventfd_read(s->event, &count);
    pthread_cond_signal(&s->asked);
  }
  pthread_mutex_unlock(&s->mutex);
  return has_sample;
}
