/* The scribe and its thread. Nothing here waits for time to pass but where that
 * is what is tested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/scribe.h>

#include "few_threads.h"
#include "proctree.h"
#include "scarce.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS UINT64_C(1000000000)
#define WAITING_MAX 8
/* For what comes at once, unless it is broken. */
#define LONG_NS (60 * NS)
#define TOLD_MAX 32

struct told {
  enum document_kind kind;
  char subject[NAME_SIZE];
  char path[PATH_MAX];
  int error;
  pthread_t thread;
  bool has_signals; /* whether any could be delivered to it */
};

/* What done() is told; it comes back when the gate is open. */
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  struct told told[TOLD_MAX];
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

static void done(const struct written *w) {
  struct told t = {.kind = w->kind,
                   .error = w->error,
                   .thread = pthread_self(),
                   .has_signals = lets_signals_in()};

  snprintf(t.subject, sizeof(t.subject), "%s", w->subject);
  snprintf(t.path, sizeof(t.path), "%s", w->path);
  pthread_mutex_lock(&gate.mutex);
  if (gate.n < TOLD_MAX)
    gate.told[gate.n++] = t;
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

/* Until done() was told of so many. */
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

static size_t told(void) {
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

struct desk {
  struct proctree tree;
  char state_file[128], directory[128];
  struct scribe *scribe;
};

static int make(void **state) {
  static struct desk d;

  gate.n = 0;
  gate.is_closed = false;
  threads_fail = 0;
  proctree_make(&d.tree);
  snprintf(d.state_file, sizeof(d.state_file), "%s/state", d.tree.root);
  snprintf(d.directory, sizeof(d.directory), "%s/captures", d.tree.root);
  assert_int_equal(
      scribe_new(&(struct scribe_settings){.state_file = d.state_file,
                                           .directory = d.directory,
                                           .max_files = 100,
                                           .max_bytes = 1000,
                                           .done = done},
                 &d.scribe),
      0);
  *state = &d;
  return 0;
}

static int unmake(void **state) {
  struct desk *d = *state;

  set_gate(false);
  scribe_free(d->scribe, LONG_NS);
  join();
  proctree_remove(&d->tree);
  return 0;
}

static void end(struct desk *d, uint64_t patience_ns) {
  scribe_free(d->scribe, patience_ns);
  d->scribe = NULL;
}

static void give(struct desk *d, const char *subject, const char *text) {
  struct document document = {.kind =
                                  subject ? DOCUMENT_CAPTURE : DOCUMENT_STATE,
                              .text = strdup(text),
                              .len = strlen(text)};

  if (subject)
    snprintf(document.subject, sizeof(document.subject), "%s", subject);
  scribe_give(d->scribe, &document);
}

static void give_state(struct desk *d, const char *text) {
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

/* Has the thread told of a first document, and stay there. */
static void get_stuck(struct desk *d) {
  set_gate(true);
  give(d, "first", "x");
  wait_for(1);
}

/* --- writing ---------------------------------------------------------------*/

static void documents_are_written_and_told_of(void **state) {
  struct desk *d = *state;
  char path[PATH_MAX];

  give_state(d, "the state");
  give(d, "web/1", "a capture");
  wait_for(2);
  assert_int_equal(gate.told[0].kind, DOCUMENT_STATE);
  assert_int_equal(gate.told[0].error, 0);
  assert_string_equal(gate.told[0].path, d->state_file);
  assert_file(d->state_file, "the state");
  assert_int_equal(gate.told[1].kind, DOCUMENT_CAPTURE);
  assert_int_equal(gate.told[1].error, 0);
  assert_string_equal(gate.told[1].subject, "web/1");
  snprintf(path, sizeof(path), "%s/smaps-19700101T000000Z-web_1.json",
           d->directory);
  assert_string_equal(gate.told[1].path, path);
  assert_file(path, "a capture");
}

static void failures_are_told_with_the_place_that_was_meant(void **state) {
  struct desk *d = *state;

  proctree_write(&d->tree, "captures", "", 0);
  proctree_write(&d->tree, "state/x", "", 0);
  give(d, "web", "x");
  give_state(d, "x");
  wait_for(2);
  assert_int_equal(gate.told[0].error, -ENOTDIR);
  assert_string_equal(gate.told[0].path, d->directory);
  assert_string_equal(gate.told[0].subject, "web");
  assert_int_equal(gate.told[1].error, -EISDIR);
  assert_string_equal(gate.told[1].path, d->state_file);
  /* And the next one is tried all the same. */
  proctree_unlink(&d->tree, "captures");
  give(d, "web", "x");
  wait_for(3);
  assert_int_equal(gate.told[2].error, 0);
}

static void limits_are_those_of_the_settings(void **state) {
  struct desk *d = *state;
  char text[1002];

  memset(text, 'x', sizeof(text));
  text[1001] = '\0';
  give(d, "web", text);
  text[1000] = '\0';
  give(d, "web", text);
  wait_for(2);
  assert_int_equal(gate.told[0].error, -EFBIG);
  assert_int_equal(gate.told[1].error, 0);
}

static void another_thread_writes_and_has_no_signals(void **state) {
  struct desk *d = *state;

  give_state(d, "x");
  give_state(d, "y");
  wait_for(1);
  assert_false(pthread_equal(gate.told[0].thread, pthread_self()));
  assert_false(gate.told[0].has_signals);
  assert_true(lets_signals_in());
}

static void settings_may_go_when_they_are_given(void **state) {
  struct desk *d = *state;
  char state_file[128];

  memcpy(state_file, d->state_file, sizeof(state_file));
  memset(d->state_file, 'x', sizeof(d->state_file) - 1);
  memset(d->directory, 'x', sizeof(d->directory) - 1);
  give_state(d, "x");
  give(d, "web", "x");
  wait_for(2);
  assert_int_equal(gate.told[0].error, 0);
  assert_int_equal(gate.told[1].error, 0);
  assert_file(state_file, "x");
}

/* --- waiting ---------------------------------------------------------------*/

static void what_waits_is_written_in_its_order(void **state) {
  static const char *const subjects[WAITING_MAX] = {"h", "a", "g", "b",
                                                    "f", "c", "e", "d"};
  struct desk *d = *state;

  get_stuck(d);
  for (size_t i = 0; i < WAITING_MAX; i++)
    give(d, subjects[i], "x");
  assert_int_equal(told(), 1);
  set_gate(false);
  wait_for(1 + WAITING_MAX);
  for (size_t i = 0; i < WAITING_MAX; i++) {
    assert_string_equal(gate.told[1 + i].subject, subjects[i]);
    assert_int_equal(gate.told[1 + i].error, 0);
  }
}

static void more_than_can_wait_are_refused(void **state) {
  struct desk *d = *state;

  get_stuck(d);
  for (size_t i = 0; i < WAITING_MAX; i++)
    give(d, "waits", "x");
  give(d, "too much", "x");
  give_state(d, "too much");
  assert_int_equal(told(), 3);
  assert_int_equal(gate.told[1].error, -EBUSY);
  assert_int_equal(gate.told[1].kind, DOCUMENT_CAPTURE);
  assert_string_equal(gate.told[1].subject, "too much");
  assert_string_equal(gate.told[1].path, d->directory);
  assert_true(pthread_equal(gate.told[1].thread, pthread_self()));
  assert_int_equal(gate.told[2].error, -EBUSY);
  assert_string_equal(gate.told[2].path, d->state_file);
  set_gate(false);
  wait_for(3 + WAITING_MAX);
  for (size_t i = 0; i < WAITING_MAX; i++)
    assert_string_equal(gate.told[3 + i].subject, "waits");
  assert_int_not_equal(access(d->state_file, F_OK), 0);
  /* There is place again. */
  give(d, "later", "x");
  wait_for(4 + WAITING_MAX);
  assert_int_equal(gate.told[3 + WAITING_MAX].error, 0);
}

static void a_state_replaces_the_one_that_waits(void **state) {
  struct desk *d = *state;

  get_stuck(d);
  give(d, "one", "x");
  give_state(d, "old");
  give(d, "two", "x");
  for (size_t i = 4; i < WAITING_MAX; i++)
    give(d, "more", "x");
  give_state(d, "newer");
  give(d, "last", "x"); /* fills it */
  give_state(d, "newest");
  assert_int_equal(told(), 1);
  set_gate(false);
  wait_for(1 + WAITING_MAX);
  assert_int_equal(gate.told[2].kind, DOCUMENT_STATE);
  assert_int_equal(gate.told[3].kind, DOCUMENT_CAPTURE);
  end(d, LONG_NS);
  assert_int_equal(told(), 1 + WAITING_MAX);
  assert_file(d->state_file, "newest");
}

/* --- the end ---------------------------------------------------------------*/

static void at_the_end_all_is_written_that_was_given(void **state) {
  struct desk *d = *state;

  give(d, "one", "x");
  give(d, "two", "x");
  give_state(d, "the last");
  end(d, LONG_NS);
  assert_int_equal(told(), 3);
  assert_file(d->state_file, "the last");
}

static void *open_gate(void *unused) {
  (void)unused;
  set_gate(false);
  return NULL;
}

static void a_slow_disk_is_waited_for(void **state) {
  struct desk *d = *state;
  pthread_t opener;

  get_stuck(d);
  give_state(d, "the last");
  assert_int_equal(pthread_create(&opener, NULL, open_gate, NULL), 0);
  end(d, LONG_NS);
  pthread_join(opener, NULL);
  assert_int_equal(told(), 2);
  assert_file(d->state_file, "the last");
}

static uint64_t now_ns(void) {
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

/* The thread is on its own then, and must neither use what is gone nor leave
 * anything behind: the sanitizers watch. */
static void a_disk_that_hangs_is_left_behind(void **state) {
  struct desk *d = *state;
  uint64_t begin_ns = now_ns(), took_ns;

  get_stuck(d);
  give(d, "waits", "x");
  give_state(d, "waits");
  end(d, NS / 50);
  took_ns = now_ns() - begin_ns;
  assert_true(took_ns >= NS / 50);
  assert_true(took_ns < LONG_NS / 2);
  set_gate(false);
  join();
  assert_int_equal(told(), 1);
  assert_int_not_equal(access(d->state_file, F_OK), 0);
}

static void without_patience_a_disk_that_hangs_is_left_at_once(void **state) {
  struct desk *d = *state;

  get_stuck(d);
  end(d, 0);
  assert_int_equal(told(), 1);
  set_gate(false);
  join();
}

static void without_documents_there_is_no_thread(void **state) {
  struct desk *d = *state;

  end(d, LONG_NS);
  assert_false(has_thread);
  scribe_free(NULL, LONG_NS);
}

static void an_idle_thread_ends_at_once(void **state) {
  struct desk *d = *state;

  give(d, "one", "x");
  wait_for(1);
  end(d, LONG_NS);
  assert_true(has_thread);
  join();
}

/* --- want ------------------------------------------------------------------*/

static void without_a_thread_a_document_is_refused(void **state) {
  struct desk *d = *state;

  threads_fail = EAGAIN;
  give(d, "web", "x");
  assert_int_equal(told(), 1);
  assert_int_equal(gate.told[0].error, -EAGAIN);
  threads_fail = 0;
  give(d, "web", "x");
  wait_for(2);
  assert_int_equal(gate.told[1].error, 0);
}

static void without_memory_there_is_no_scribe(void **state) {
  bool has_run_out = true;

  (void)state;
  for (size_t n = 0; has_run_out; n++) {
    struct scribe *s = NULL;
    int r;

    scarce_after(n);
    r = scribe_new(&(struct scribe_settings){.state_file = "/state",
                                             .directory = "/captures",
                                             .done = done},
                   &s);
    has_run_out = scarce_end();
    assert_int_equal(r, has_run_out ? -ENOMEM : 0);
    assert_int_equal(s == NULL, has_run_out);
    scribe_free(s, 0);
    assert_true(n > 2 || has_run_out);
  }
}

static void a_scribe_may_have_one_place_only(void **state) {
  struct scribe *s;

  (void)state;
  assert_int_equal(
      scribe_new(&(struct scribe_settings){.state_file = "/x", .done = done},
                 &s),
      0);
  scribe_free(s, 0);
  assert_int_equal(
      scribe_new(&(struct scribe_settings){.directory = "/x", .done = done},
                 &s),
      0);
  scribe_free(s, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(documents_are_written_and_told_of),
      TEST(failures_are_told_with_the_place_that_was_meant),
      TEST(limits_are_those_of_the_settings),
      TEST(another_thread_writes_and_has_no_signals),
      TEST(settings_may_go_when_they_are_given),
      TEST(what_waits_is_written_in_its_order),
      TEST(more_than_can_wait_are_refused),
      TEST(a_state_replaces_the_one_that_waits),
      TEST(at_the_end_all_is_written_that_was_given),
      TEST(a_slow_disk_is_waited_for),
      TEST(a_disk_that_hangs_is_left_behind),
      TEST(without_patience_a_disk_that_hangs_is_left_at_once),
      TEST(without_documents_there_is_no_thread),
      TEST(an_idle_thread_ends_at_once),
      TEST(without_a_thread_a_document_is_refused),
      TEST(without_memory_there_is_no_scribe),
      TEST(a_scribe_may_have_one_place_only),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
