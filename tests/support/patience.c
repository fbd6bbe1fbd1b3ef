/* SPDX-License-Identifier: MIT */
#include "patience.h"

#include "test.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHORT_NS 500000000
#define SLICE_NS 1000000
#define SLICE_MOST_NS (16 * SLICE_NS)

bool (*patience_hook)(void);
unsigned patience_waits;
uint64_t patience_wait_ns;

WRAPPED(int, pthread_cond_timedwait, pthread_cond_t *cond,
        pthread_mutex_t *lock, const struct timespec *end);

/* The text of a file of a thread; empty if it has ended. */
static const char *read_file(const char *tid, const char *name, char *ret,
                             size_t size) {
  char path[64];
  ssize_t n = -1;
  int fd;

  snprintf(path, sizeof(path), "/proc/self/task/%.16s/%s", tid, name);
  fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    n = read(fd, ret, size - 1);
    close(fd);
  }
  ret[n > 0 ? n : 0] = '\0';
  return ret;
}

static bool is_running(const char *tid) {
  char text[256];
  const char *name_end =
      strrchr(read_file(tid, "stat", text, sizeof(text)), ')');

  return name_end && strchr("RD", name_end[2]);
}

/* Returns how many nanoseconds the thread has run on a processor. */
static uint64_t run_time(const char *tid) {
  char text[128];

  return strtoull(read_file(tid, "schedstat", text, sizeof(text)), NULL, 10);
}

/* True if none runs, or has run since the last question: under valgrind one
 * thread at a time does, and the others seem to sleep. */
static bool all_others_sleep(void) {
  static uint64_t before;
  DIR *tasks = opendir("/proc/self/task");
  const struct dirent *entry;
  uint64_t now = 0;
  bool sleep = true;

  if (!tasks)
    return true;
  while ((entry = readdir(tasks))) {
    if (!isdigit((unsigned char)entry->d_name[0]) ||
        atoi(entry->d_name) == gettid())
      continue;
    sleep &= !is_running(entry->d_name);
    now += run_time(entry->d_name);
  }
  closedir(tasks);
  sleep &= now == before;
  before = now;
  return sleep;
}

static uint64_t to_ns(const struct timespec *t) {
  return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

static uint64_t now_ns(void) {
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return to_ns(&t);
}

/* A thread that waits for the lock alone is not asleep. */
static bool all_sleep_without(pthread_mutex_t *lock) {
  bool sleep;

  pthread_mutex_unlock(lock);
  sleep = all_others_sleep();
  pthread_mutex_lock(lock);
  return sleep;
}

/* Callers check their condition after ETIMEDOUT as well. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *end) {
  uint64_t now = now_ns(), until = to_ns(end), slice = SLICE_NS;

  if (patience_hook && patience_hook())
    return ETIMEDOUT;
  if (until <= now + SHORT_NS) {
    patience_waits++;
    patience_wait_ns = until > now ? until - now : 0;
    until = now + SLICE_NS;
  }
  for (;;) {
    struct timespec t = {.tv_sec = (time_t)(until / 1000000000),
                         .tv_nsec = (long)(until % 1000000000)};
    int rc = __real_pthread_cond_timedwait(cond, lock, &t);

    if (rc != ETIMEDOUT || all_sleep_without(lock))
      return rc;
    /* To ask often would take the processor from who is waited for. */
    until = now_ns() + slice;
    slice = slice < SLICE_MOST_NS ? 2 * slice : slice;
  }
}
