#include "sampler.h"

#include "live.h"
#include "memory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct sampler {
  /* The thread's while it is busy. */
  struct probe *probe;
  struct sample sample;
  /* The caller's. */
  pthread_t thread;
  bool is_busy;
  /* Of a socket, the caller's first: a byte to the thread asks for the sample,
   * one back says that it was made. */
  int ends[2];
};

/* Ends when the caller shuts its end down. */
static void *run(void *context) {
  struct sampler *s = context;
  struct sample *made = &s->sample;
  char byte;

  while (recv(s->ends[1], &byte, 1, 0) == 1) {
    int rc = made->pid == UNKNOWN
                 ? live_refresh(s->probe, &made->document, &made->reason)
                 : live_close_up(s->probe, made->pid, NULL, &made->document,
                                 &made->reason);

    made->has_document = rc == 0;
    send(s->ends[1], &byte, 1, MSG_NOSIGNAL);
  }
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
  close(s->ends[0]);
  close(s->ends[1]);
  probe_free(s->probe);
  free(s);
}

int sampler_new(struct probe *probe, struct sampler **ret) {
  struct sampler *s = memory_array(NULL, 1, sizeof(*s));
  int rc;

  *s = (struct sampler){.probe = probe, .ends = {-1, -1}};
  rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->ends) < 0
           ? -errno
           : start(s);
  if (rc < 0)
    drop(s);
  else
    *ret = s;
  return rc;
}

void sampler_free(struct sampler *s) {
  struct sample last;

  if (sampler_take(s, &last) && last.has_document)
    document_done(&last.document);
  if (s->is_busy)
    return;
  shutdown(s->ends[0], SHUT_RDWR);
  pthread_join(s->thread, NULL);
  drop(s);
}

int sampler_fd(const struct sampler *s) { return s->ends[0]; }

void sampler_ask(struct sampler *s, uint64_t pid) {
  s->sample = (struct sample){.pid = pid};
  s->is_busy = send(s->ends[0], "", 1, MSG_NOSIGNAL) == 1;
}

bool sampler_is_busy(const struct sampler *s) { return s->is_busy; }

bool sampler_take(struct sampler *s, struct sample *ret) {
  char byte;

  if (recv(s->ends[0], &byte, 1, MSG_DONTWAIT) != 1)
    return false;
  s->is_busy = false;
  *ret = s->sample;
  return true;
}
