/* SPDX-License-Identifier: MIT */
#include "collected.h"

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct opens opens;

WRAPPED(int, openat, int dir_fd, const char *path, int flags, ...);
WRAPPED(ssize_t, readlinkat, int dir_fd, const char *path, char *ret,
        size_t size);

static bool is_file(const char *path, const char *name) {
  const char *slash = strrchr(path, '/');

  if (name && strcmp(name, "*") == 0)
    return slash && *path != '/';
  return name && strcmp(slash ? slash + 1 : path, name) == 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void opens_count(const char *name) {
  pthread_mutex_lock(&lock);
  opens.counted = name;
  pthread_mutex_unlock(&lock);
}

unsigned opens_counted(void) {
  unsigned n;

  pthread_mutex_lock(&lock);
  n = opens.opened;
  pthread_mutex_unlock(&lock);
  return n;
}

/* Counts a call of openat. Returns true if it has to fail, and sets what
 * happens before it. Calls come from the threads of readers, too. */
static bool note_call(const char *path, void (**happen)(void)) {
  bool fails;

  pthread_mutex_lock(&lock);
  opens.calls++;
  if (opens.calls == opens.happens_before) {
    opens.happens_before = 0;
    *happen = opens.happen;
  }
  opens.opened += is_file(path, opens.counted);
  fails = opens.failures && is_file(path, opens.failing);
  opens.failures -= fails;
  pthread_mutex_unlock(&lock);
  return fails;
}

int __wrap_openat(int dir_fd, const char *path, int flags, ...) {
  void (*happen)(void) = NULL;
  bool fails = note_call(path, &happen);

  if (happen)
    happen();
  if (fails) {
    errno = opens.error;
    return -1;
  }
  /* No test here creates a file with openat, so no mode is passed on. */
  return __real_openat(dir_fd, path, flags);
}

ssize_t __wrap_readlinkat(int dir_fd, const char *path, char *ret,
                          size_t size) {
  if (!is_file(path, opens.refused_link))
    return __real_readlinkat(dir_fd, path, ret, size);
  opens.refused++;
  errno = EACCES;
  return -1;
}

void opens_refuse(const char *name, int error) {
  opens.failing = name;
  opens.error = error;
  opens.failures = UINT_MAX;
}

int collected_setup(void **state) {
  alarm(300); /* A test that waits in vain fails. */
  memset(&opens, 0, sizeof(opens));
  return world_setup(state);
}

int collected_teardown(void **state) {
  memset(&opens, 0, sizeof(opens));
  return world_teardown(state);
}

struct fake collected_process(uint32_t pid, const char *comm) {
  struct fake f = fake_process(pid, comm);

  f.exe = "/usr/bin/thing";
  f.cmdline = "thing --serve";
  f.private_kb = 100;
  f.shared_kb = 40;
  return f;
}

bool collected_is_whole(const struct world *w, unsigned n) {
  return world_value(w, "g", "ps_count") == n &&
         world_kb(w, "g", "rss") == 140 * n &&
         world_kb(w, "g", "resident") == 140 * n &&
         world_kb(w, "g", "pss") == 120 * n &&
         world_value(w, "g", "unreadable") == 0;
}

void collected_expect_whole(struct world *w, unsigned seconds, unsigned n) {
  world_run(w, seconds);
  assert_true(collected_is_whole(w, n));
}
