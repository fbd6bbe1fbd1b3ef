/* SPDX-License-Identifier: MIT */
/* Tests the writer and its thread. Only the tests of waiting let time pass. */
#include "test.h"

#include "snapshot/writer.h"

#include "few_threads.h"
#include "proctree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WAITING_MAX 8
/* For what comes at once, unless it is broken. */
#define LONG_NS (60 * NS)
#define OUTCOMES_MAX 32

struct outcome {
  enum document_kind kind;
  char subject[GROUP_NAME_SIZE];
  char path[PATH_MAX];
  int error;
  pthread_t thread;
  bool has_signals; /* whether any could be delivered to it */
};

/* The results that done() is given; it returns when the gate is open. */
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  struct outcome outcomes[OUTCOMES_MAX];
  size_t n;
  bool is_closed;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER,
          .changed = PTHREAD_COND_INITIALIZER};

static bool lets_signals_in(void) {
  sigset_t blocked;

  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  return sigismember(&blocked, SIGTERM) == 0 ||
         sigismember(&blocked, SIGINT) == 0;
}

static void done(const struct document *w) {
  struct outcome t = {.kind = w->kind,
                      .error = w->error,
                      .thread = pthread_self(),
                      .has_signals = lets_signals_in()};

  snprintf(t.subject, sizeof(t.subject), "%s", w->subject);
  snprintf(t.path, sizeof(t.path), "%s", w->path);
  pthread_mutex_lock(&gate.mutex);
  if (gate.n < OUTCOMES_MAX)
    gate.outcomes[gate.n++] = t;
  pthread_cond_broadcast(&gate.changed);
  /* A refusal comes on our own thread. */
  while (gate.is_closed && w->error != -EBUSY)
    pthread_cond_wait(&gate.changed, &gate.mutex);
  pthread_mutex_unlock(&gate.mutex);
}

static void set_gate(bool is_closed) {
  pthread_mutex_lock(&gate.mutex);
  gate.is_closed = is_closed;
  pthread_cond_broadcast(&gate.changed);
  pthread_mutex_unlock(&gate.mutex);
}

/* Waits until the writer has reported so many documents. */
static void wait_for(size_t n) {
  struct timespec deadline;
  int r = 0;

  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 30;
  pthread_mutex_lock(&gate.mutex);
  while (gate.n < n && r == 0)
    r = pthread_cond_timedwait(&gate.changed, &gate.mutex, &deadline);
  pthread_mutex_unlock(&gate.mutex);
  if (r != 0)
    fail_msg("done() is not called");
}

static size_t n_outcomes(void) {
  size_t n;

  pthread_mutex_lock(&gate.mutex);
  n = gate.n;
  pthread_mutex_unlock(&gate.mutex);
  return n;
}

/* The thread is detached, and so nobody could wait for its end; here it stays
 * joinable. */
static pthread_t thread;
static bool has_thread;

int __wrap_pthread_detach(pthread_t detached);
int __wrap_pthread_detach(pthread_t detached) {
  thread = detached;
  has_thread = true;
  return 0;
}

static void join(void) {
  if (has_thread)
    assert_int_equal(pthread_join(thread, NULL), 0);
  has_thread = false;
}

struct fixture {
  struct proctree tree;
  char state_file[128], directory[128], history[128];
  struct writer *writer;
};

static int make(void **state) {
  static struct fixture d;

  gate.n = 0;
  gate.is_closed = false;
  threads_fail = 0;
  proctree_make(&d.tree);
  snprintf(d.state_file, sizeof(d.state_file), "%s/state", d.tree.root);
  snprintf(d.directory, sizeof(d.directory), "%s/captures", d.tree.root);
  snprintf(d.history, sizeof(d.history), "%s/history", d.tree.root);
  assert_int_equal(
      writer_new(&(struct settings){.state_file = d.state_file,
                                    .state_history = d.history,
                                    .capture = {.directory = d.directory,
                                                .max_files = 100,
                                                .max_bytes = 1000}},
                 done, &d.writer),
      0);
  *state = &d;
  return 0;
}

static int unmake(void **state) {
  struct fixture *d = *state;

  set_gate(false);
  writer_free(d->writer, LONG_NS);
  join();
  proctree_remove(&d->tree);
  return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *d)

static void end(struct fixture *d, uint64_t timeout_ns) {
  writer_free(d->writer, timeout_ns);
  d->writer = NULL;
}

static void give(struct fixture *d, const char *subject, const char *text) {
  struct document document = {.kind =
                                  subject ? DOCUMENT_CAPTURE : DOCUMENT_STATE,
                              .text = strdup(text),
                              .len = strlen(text)};

  if (subject)
    snprintf(document.subject, sizeof(document.subject), "%s", subject);
  writer_submit(d->writer, &document);
}

static void give_state(struct fixture *d, const char *text) {
  give(d, NULL, text);
}

static void assert_file(const char *path, const char *text) {
  char read_back[100];
  FILE *file = fopen(path, "r");
  size_t len;

  if (!file)
    fail_msg("there is no %s", path);
  len = fread(read_back, 1, sizeof(read_back) - 1, file);
  fclose(file);
  read_back[len] = '\0';
  assert_string_equal(read_back, text);
}

/* The i-th document is of this subject, or a state or the history of it. */
static void assert_reported(size_t i, enum document_kind kind,
                            const char *subject, const char *path, int error) {
  const struct outcome *t = &gate.outcomes[i];

  assert_int_equal(t->kind, kind);
  assert_string_equal(t->subject, subject);
  assert_string_equal(t->path, path);
  assert_int_equal(t->error, error);
}

/* Makes the thread report a first document, and wait there. */
static void hang_one(struct fixture *d) {
  set_gate(true);
  give(d, "first", "x");
  wait_for(1);
}

/* --- the history -----------------------------------------------------------*/

#define HOUR (3600 * NS)

static void give_state_at(struct fixture *d, uint64_t time_ns, size_t reports) {
  struct document document = {.kind = DOCUMENT_STATE,
                              .time_ns = time_ns,
                              .text = strdup("x"),
                              .len = 1};

  writer_submit(d->writer, &document);
  wait_for(reports);
}

static unsigned count_files(const char *directory) {
  DIR *dir = opendir(directory);
  unsigned n = 0;

  assert_non_null(dir);
  for (const struct dirent *e; (e = readdir(dir));)
    n += *e->d_name != '.';
  closedir(dir);
  return n;
}

static void assert_in_history(const struct fixture *d, const char *name,
                              bool is_there) {
  char path[PATH_MAX];

  snprintf(path, sizeof(path), "%s/%s", d->history, name);
  assert_int_equal(access(path, F_OK) == 0, is_there);
}

FIXTURE_TEST(first_state_of_each_5_minutes_is_added) {
  static const unsigned seconds[] = {7201, 7300, 7499, 7500, 7799, 7801};

  for (size_t i = 0; i < LENGTH(seconds); i++)
    give_state_at(d, seconds[i] * NS, i + 1);
  end(d, LONG_NS);
  assert_int_equal(count_files(d->history), 3);
  assert_in_history(d, "smaps-19700101T020001Z-state.json", true);
  assert_in_history(d, "smaps-19700101T020500Z-state.json", true);
  assert_in_history(d, "smaps-19700101T021001Z-state.json", true);
}

FIXTURE_TEST(history_has_60_states_of_a_day) {
  for (uint64_t i = 0; i < 30 * 12; i++) {
    gate.n = 0;
    give_state_at(d, HOUR + i * HOUR / 12, 1);
  }
  end(d, LONG_NS);
  assert_int_equal(count_files(d->history), 60);
}

/* Daemons that are restarted again and again leave the states before. */
FIXTURE_TEST(restart_adds_nothing_to_the_history_of_the_step) {
  give_state_at(d, 5 * HOUR, 1);
  end(d, LONG_NS);
  join();
  gate.n = 0;
  assert_int_equal(writer_new(&(struct settings){.state_history = d->history},
                              done, &d->writer),
                   0);
  give_state_at(d, 5 * HOUR + NS, 0);
  end(d, LONG_NS);
  assert_int_equal(gate.n, 0);
  assert_int_equal(count_files(d->history), 1);
}

FIXTURE_TEST(history_that_cannot_be_kept_is_reported_once_an_hour) {
  assert_int_equal(mkdir(d->history, 0755), 0);
  assert_int_equal(chmod(d->history, 0777), 0);
  give_state_at(d, 5 * HOUR, 2);
  give_state_at(d, 5 * HOUR + NS, 3);
  give_state_at(d, 5 * HOUR + HOUR / 2, 4);
  give_state_at(d, 6 * HOUR, 6);
  assert_reported(1, DOCUMENT_HISTORY, "", d->history, -EPERM);
  assert_int_equal(gate.outcomes[2].kind, DOCUMENT_STATE);
  assert_int_equal(gate.outcomes[3].kind, DOCUMENT_STATE);
  assert_int_equal(gate.outcomes[5].kind, DOCUMENT_HISTORY);
}

FIXTURE_TEST(early_state_is_not_in_the_history) {
  struct document early = {.kind = DOCUMENT_STATE,
                           .time_ns = 5 * HOUR,
                           .is_early = true,
                           .text = strdup("early"),
                           .len = 5};

  writer_submit(d->writer, &early);
  wait_for(1);
  assert_file(d->state_file, "early");
  give_state_at(d, 5 * HOUR + NS, 2);
  end(d, LONG_NS);
  assert_int_equal(count_files(d->history), 1);
  assert_in_history(d, "smaps-19700101T050001Z-state.json", true);
}

/* --- writing ---------------------------------------------------------------*/

FIXTURE_TEST(failures_are_reported_with_the_intended_path) {
  proctree_write(&d->tree, "captures", "", 0);
  proctree_write(&d->tree, "state/x", "", 0);
  give(d, "web", "x");
  give_state(d, "x");
  wait_for(2);
  assert_reported(0, DOCUMENT_CAPTURE, "web", d->directory, -ENOTDIR);
  assert_reported(1, DOCUMENT_STATE, "", d->state_file, -EISDIR);
  /* And the next one is tried all the same. */
  proctree_unlink(&d->tree, "captures");
  give(d, "web", "x");
  wait_for(3);
  assert_int_equal(gate.outcomes[2].error, 0);
}

/* --- waiting ---------------------------------------------------------------*/

FIXTURE_TEST(waiting_documents_keep_their_order_and_more_are_refused) {
  hang_one(d);
  for (size_t i = 0; i < WAITING_MAX; i++)
    give(d, (char[]){(char)('h' - i), '\0'}, "x");
  give(d, "too much", "x");
  give_state(d, "too much");
  assert_int_equal(n_outcomes(), 3);
  assert_reported(1, DOCUMENT_CAPTURE, "too much", d->directory, -EBUSY);
  assert_true(pthread_equal(gate.outcomes[1].thread, pthread_self()));
  assert_reported(2, DOCUMENT_STATE, "", d->state_file, -EBUSY);
  set_gate(false);
  wait_for(3 + WAITING_MAX);
  for (size_t i = 0; i < WAITING_MAX; i++)
    assert_int_equal(gate.outcomes[3 + i].subject[0], 'h' - (int)i);
  assert_int_not_equal(access(d->state_file, F_OK), 0);
  /* There is place again. */
  give(d, "later", "x");
  wait_for(4 + WAITING_MAX);
  assert_int_equal(gate.outcomes[3 + WAITING_MAX].error, 0);
}

FIXTURE_TEST(a_state_replaces_a_waiting_state) {
  hang_one(d);
  give(d, "one", "x");
  give_state(d, "old");
  give(d, "two", "x");
  for (size_t i = 4; i < WAITING_MAX; i++)
    give(d, "more", "x");
  give_state(d, "newer");
  give(d, "last", "x"); /* fills it */
  give_state(d, "newest");
  assert_int_equal(n_outcomes(), 1);
  set_gate(false);
  wait_for(1 + WAITING_MAX);
  assert_int_equal(gate.outcomes[2].kind, DOCUMENT_STATE);
  assert_int_equal(gate.outcomes[3].kind, DOCUMENT_CAPTURE);
  end(d, LONG_NS);
  assert_int_equal(n_outcomes(), 1 + WAITING_MAX);
  assert_file(d->state_file, "newest");
}

/* --- the end ---------------------------------------------------------------*/

static uint64_t now_ns(void) {
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

/* The thread is on its own then, and must neither use what is gone nor leave
 * anything behind: the sanitizers watch. */
FIXTURE_TEST(a_hung_disk_does_not_delay_the_end) {
  uint64_t begin_ns = now_ns(), took_ns;

  hang_one(d);
  give(d, "waits", "x");
  give_state(d, "waits");
  end(d, NS / 50);
  took_ns = now_ns() - begin_ns;
  assert_true(took_ns >= NS / 50);
  assert_true(took_ns < LONG_NS / 2);
  set_gate(false);
  join();
  assert_int_equal(n_outcomes(), 1);
  assert_int_not_equal(access(d->state_file, F_OK), 0);
}

FIXTURE_TEST(another_thread_writes_and_has_no_signals) {
  give_state(d, "x");
  wait_for(1);
  assert_false(pthread_equal(gate.outcomes[0].thread, pthread_self()));
  assert_false(gate.outcomes[0].has_signals);
  assert_true(lets_signals_in());
  end(d, LONG_NS);
  assert_true(has_thread);
  join();
}
