/* SPDX-License-Identifier: MIT */
/* Workers that hang. A piece of work that hangs waits for a gate that the test
 * opens. The only time that passes is the time until the pool notices a hang.
 */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "read/worker_pool.h"

#include "few_threads.h"
#include "patience.h"

#define SHORT_NS (100 * MS)
#define SLOW_NS (200 * MS)
#define LONG_NS (60000 * MS)
#define PIECES 8

struct worker_context {
  unsigned number;
  int hangs_at; /* -1: nowhere */
  bool is_slow; /* each piece takes three polls */
  unsigned done[PIECES];
  pthread_t by;
  sigset_t blocked;
};

static sem_t gate;
static sem_t polled; /* once for each poll */
static sem_t freed;
static unsigned contexts_made;

static bool note_poll(void) {
  sem_post(&polled);
  return false;
}

static int new_context(void *ctx, void **ret) {
  struct worker_context *d = calloc(1, sizeof(*d));

  (void)ctx;
  d->number = contexts_made++;
  d->hangs_at = -1;
  *ret = d;
  return 0;
}

static void free_context(void *context) {
  free(context);
  sem_post(&freed);
}

static void work(void *ctx, size_t i) {
  struct worker_context *d = ctx;

  d->by = pthread_self();
  pthread_sigmask(SIG_BLOCK, NULL, &d->blocked);
  for (int polls = 0; d->is_slow && polls < 3; polls++)
    while (sem_wait(&polled) != 0)
      continue;
  if (d->hangs_at == (int)i)
    while (sem_wait(&gate) != 0)
      continue;
  d->done[i]++;
}

/* No piece is long. */
static unsigned no_beat(void *context) {
  (void)context;
  return 0;
}

static const struct worker_ops ops = {.new_context = new_context,
                                      .free_context = free_context,
                                      .work = work,
                                      .heartbeat = no_beat};

static struct worker_pool *start(uint64_t timeout_ns, uint64_t wait_budget_ns) {
  struct worker_pool *c;

  assert_int_equal(worker_pool_new(&ops, timeout_ns, wait_budget_ns, &c), 0);
  return c;
}

static struct worker_context *context_of(struct worker_pool *c) {
  void *context = NULL;

  assert_int_equal(worker_pool_acquire(c, &context), 0);
  return context;
}

/* Has the next worker hang in the first piece. */
static struct worker_context *hang_one(struct worker_pool *c) {
  struct worker_context *d = context_of(c);
  struct worker_pool_result result;

  d->hangs_at = 0;
  patience_waits = 0;
  result = worker_pool_run(c, 1);
  assert_true(result.is_hung);
  assert_int_equal(patience_waits, WORKER_POOL_POLLS);
  /* On a machine that is said to be slow up to five times (test.h). */
  assert_in_range(patience_wait_ns, 0, 5 * SHORT_NS / WORKER_POOL_POLLS);
  assert_int_equal(result.done, 0);
  return d;
}

static unsigned count_hung(const struct worker_pool *c) {
  unsigned n = 0;

  for (unsigned i = 0; i < WORKER_POOL_MAX; i++)
    n += worker_pool_hung_context(c, i) != NULL;
  return n;
}

static bool is_hung(const struct worker_pool *c) {
  return count_hung(c) == WORKER_POOL_MAX;
}

/* Lets one of the workers that hang go on, and waits for it. */
static void wake_one(struct worker_pool *c) {
  unsigned n = count_hung(c);

  sem_post(&gate);
  while (count_hung(c) == n)
    sched_yield();
}

static int make(void **state) {
  (void)state;
  alarm(300); /* A test that waits in vain fails. */
  sem_init(&gate, 0, 0);
  sem_init(&polled, 0, 0);
  sem_init(&freed, 0, 0);
  patience_hook = note_poll;
  contexts_made = 0;
  threads_fail = 0;
  return 0;
}

/* All contexts that were made are freed, at once or when the last worker comes;
 * after a test that has failed, not even then. */
static int unmake(void **state) {
  struct timespec end;

  (void)state;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 10;
  for (unsigned i = 0; i < contexts_made; i++)
    if (sem_timedwait(&freed, &end) != 0)
      return -1;
  return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, void *none)

FIXTURE_TEST(batches_are_done_whole_by_one_thread) {
  struct worker_pool *c = start(LONG_NS, LONG_NS);
  struct worker_context *first = context_of(c);

  for (unsigned n = 0; n <= PIECES; n++) {
    struct worker_context *d = context_of(c);
    struct worker_pool_result result = worker_pool_run(c, n);

    assert_ptr_equal(d, first);
    assert_int_equal(result.done, n);
    assert_false(result.is_hung);
    assert_false(pthread_equal(d->by, pthread_self()));
  }
  for (unsigned i = 0; i < PIECES; i++)
    assert_int_equal(first->done[i], PIECES - i);
  assert_int_equal(contexts_made, 1);
  assert_false(is_hung(c));
  worker_pool_free(c);
}

/* The daemon's threads are to take the daemon's signals. */
FIXTURE_TEST(signals_are_blocked_in_workers_alone) {
  static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGCHLD, SIGALRM};
  struct worker_pool *c = start(LONG_NS, LONG_NS);
  struct worker_context *d = context_of(c);
  sigset_t own;

  worker_pool_run(c, 1);
  pthread_sigmask(SIG_BLOCK, NULL, &own);
  for (size_t i = 0; i < LENGTH(signals); i++) {
    assert_true(sigismember(&d->blocked, signals[i]));
    assert_false(sigismember(&own, signals[i]));
  }
  worker_pool_free(c);
}

FIXTURE_TEST(hung_worker_is_left_and_the_rest_goes_to_another) {
  struct worker_pool *c = start(SHORT_NS, LONG_NS);
  struct worker_context *hung = context_of(c), *other;
  struct worker_pool_result result;

  hung->hangs_at = 2;
  result = worker_pool_run(c, PIECES);
  assert_true(result.is_hung);
  assert_int_equal(result.done, 2);
  assert_ptr_equal(worker_pool_hung_context(c, 0), hung);
  assert_null(worker_pool_hung_context(c, 1));
  assert_false(is_hung(c));

  other = context_of(c);
  assert_ptr_not_equal(other, hung);
  result = worker_pool_run(c, PIECES);
  assert_int_equal(result.done, PIECES);
  assert_false(result.is_hung);

  /* It did what it hung in, and nothing more. */
  wake_one(c);
  assert_null(worker_pool_hung_context(c, 0));
  for (unsigned i = 0; i < PIECES; i++)
    assert_int_equal(hung->done[i], i <= 2);
  worker_pool_free(c);
}

FIXTURE_TEST(returned_worker_is_used_again) {
  struct worker_pool *c = start(SHORT_NS, LONG_NS);
  struct worker_context *d = hang_one(c);

  wake_one(c);
  d->hangs_at = -1;
  assert_ptr_equal(context_of(c), d);
  assert_int_equal(worker_pool_run(c, PIECES).done, PIECES);
  assert_int_equal(contexts_made, 1);
  worker_pool_free(c);
}

FIXTURE_TEST(number_of_hung_workers_is_limited) {
  struct worker_pool *c = start(SHORT_NS, LONG_NS);
  struct worker_context *back;
  void *context;

  for (unsigned i = 0; i < WORKER_POOL_MAX; i++) {
    assert_false(is_hung(c));
    hang_one(c);
  }
  assert_true(is_hung(c));
  assert_int_equal(worker_pool_acquire(c, &context), WORKER_POOL_BUSY);
  worker_pool_begin(c);
  assert_int_equal(worker_pool_acquire(c, &context), WORKER_POOL_BUSY);
  assert_int_equal(contexts_made, WORKER_POOL_MAX);

  wake_one(c);
  assert_false(is_hung(c));
  back = context_of(c);
  back->hangs_at = -1;
  assert_int_equal(worker_pool_run(c, PIECES).done, PIECES);
  for (unsigned i = 1; i < WORKER_POOL_MAX; i++)
    sem_post(&gate);
  worker_pool_free(c);
}

/* Eight pieces of three polls each are not a hang, and the pool does not wait
 * for all: there is wait budget for four polls, and then for one piece. */
FIXTURE_TEST(slow_work_is_not_hung_and_has_an_end) {
  struct worker_pool *c = start(SLOW_NS, 4 * SLOW_NS / WORKER_POOL_POLLS);
  struct worker_pool_result result;
  struct worker_context *d = context_of(c);
  void *context;

  d->is_slow = true;
  result = worker_pool_run(c, PIECES);
  assert_false(result.is_hung);
  assert_in_range(result.done, 1, PIECES - 1);
  for (unsigned i = 0; i < PIECES; i++)
    assert_int_equal(d->done[i], i < result.done);
  assert_int_equal(worker_pool_acquire(c, &context), WORKER_POOL_BUSY);
  assert_false(is_hung(c));

  worker_pool_begin(c);
  assert_ptr_equal(context_of(c), d);
  d->is_slow = false;
  assert_int_equal(worker_pool_run(c, PIECES).done, PIECES);
  worker_pool_free(c);
}

/* A hang takes ten polls; after that there is no wait budget for another. */
FIXTURE_TEST(hung_work_costs_wait_budget_too) {
  struct worker_pool *c = start(SHORT_NS, SHORT_NS / 2);
  void *context;

  hang_one(c);
  assert_int_equal(worker_pool_acquire(c, &context), WORKER_POOL_BUSY);
  assert_false(is_hung(c));
  worker_pool_begin(c);
  context_of(c);
  sem_post(&gate);
  worker_pool_free(c);
}

/* It takes its context along: unmake() waits for that. */
FIXTURE_TEST(end_does_not_wait_for_a_hung_worker) {
  struct worker_pool *c = start(SHORT_NS, LONG_NS);

  hang_one(c);
  assert_int_equal(worker_pool_run((context_of(c), c), PIECES).done, PIECES);
  worker_pool_free(c);
  /* The free one has gone with the pool. */
  assert_int_equal(sem_trywait(&freed), 0);
  assert_int_equal(sem_trywait(&freed), -1);
  sem_post(&freed);
  sem_post(&gate);
}

FIXTURE_TEST(end_frees_a_worker_that_has_returned) {
  struct worker_pool *c = start(SHORT_NS, LONG_NS);

  hang_one(c);
  sem_post(&gate);
  worker_pool_free(c);
}

FIXTURE_TEST(thread_that_cannot_be_started_is_an_error) {
  struct worker_pool *c = start(LONG_NS, LONG_NS);
  void *context;

  threads_fail = EAGAIN;
  for (int i = 0; i < 2 * WORKER_POOL_MAX; i++)
    assert_int_equal(worker_pool_acquire(c, &context), -EAGAIN);
  assert_false(is_hung(c));
  threads_fail = 0;
  context_of(c);
  assert_int_equal(worker_pool_run(c, PIECES).done, PIECES);
  worker_pool_free(c);
}

static int fail_context(void *ctx, void **ret) {
  (void)ctx;
  (void)ret;
  return -EMFILE;
}

FIXTURE_TEST(context_that_cannot_be_made_is_an_error) {
  struct worker_ops failing = ops;
  struct worker_pool *c;
  void *context;

  failing.new_context = fail_context;
  assert_int_equal(worker_pool_new(&failing, LONG_NS, LONG_NS, &c), 0);
  assert_int_equal(worker_pool_acquire(c, &context), -EMFILE);
  worker_pool_free(c);
}

/* Beats like a heart while the worker is in a piece, and lets it go on after
 * more polls than would be a hang. */
static unsigned heartbeat;

static unsigned beat(void *context) {
  (void)context;
  if (++heartbeat == 2 * WORKER_POOL_POLLS)
    sem_post(&gate);
  return heartbeat;
}

FIXTURE_TEST(a_long_piece_that_goes_on_is_not_hung) {
  struct worker_ops beating = ops;
  struct worker_pool_result result;
  struct worker_pool *c;
  struct worker_context *d;

  heartbeat = 0;
  beating.heartbeat = beat;
  assert_int_equal(worker_pool_new(&beating, SHORT_NS, SHORT_NS, &c), 0);
  d = context_of(c);
  d->hangs_at = 2;
  result = worker_pool_run(c, PIECES);
  assert_false(result.is_hung);
  assert_int_equal(result.done, PIECES); /* nor does it cost wait budget */
  assert_int_equal(d->done[2], 1);
  worker_pool_free(c);
}
