/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <signal.h>

#include "base/duration.h"

/* A program may clean up for these: they go to the faulting thread; if it
 * blocks them, the kernel kills the process. */
static const int defects[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

int thread_start(pthread_t *ret, void *(*run)(void *), void *ctx) {
  sigset_t all, before;
  int rc;

  sigfillset(&all);
  for (size_t i = 0; i < sizeof(defects) / sizeof(*defects); i++)
    sigdelset(&all, defects[i]);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  rc = pthread_create(ret, NULL, run, ctx);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return -rc;
}

void thread_init_condition(pthread_cond_t *c) {
  pthread_condattr_t attributes;

  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(c, &attributes);
  pthread_condattr_destroy(&attributes);
}

struct timespec thread_deadline(uint64_t ns) {
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  ns += (uint64_t)t.tv_nsec;
  t.tv_sec += (time_t)(ns / NS_PER_S);
  t.tv_nsec = (long)(ns % NS_PER_S);
  return t;
}
