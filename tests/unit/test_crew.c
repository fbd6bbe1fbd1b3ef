/* Workers that get stuck. What hangs here waits for a gate that the test opens;
 * no time passes but that until a stall is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <smaps/crew.h>

#include "few_threads.h"

#define MS UINT64_C(1000000)
#define SHORT_NS (100 * MS)
#define SLOW_NS (200 * MS)
#define LONG_NS (60000 * MS)
#define PIECES 8

struct desk {
  unsigned number;
  int hangs_at; /* -1: nowhere */
  bool is_slow; /* each piece takes three looks of SLOW_NS */
  unsigned done[PIECES];
  pthread_t by;
  sigset_t blocked;
};

static sem_t gate;
static sem_t freed;
static unsigned desks_made;

static void *new_desk(void *ctx) {
  struct desk *d = calloc(1, sizeof(*d));

  (void)ctx;
  assert_non_null(d);
  d->number = desks_made++;
  d->hangs_at = -1;
  return d;
}

static void free_desk(void *desk) {
  free(desk);
  sem_post(&freed);
}

static void work(void *ctx, size_t i) {
  static const struct timespec slow = {.tv_nsec = 3 * SLOW_NS / CREW_LOOKS};
  struct desk *d = ctx;

  d->by = pthread_self();
  pthread_sigmask(SIG_BLOCK, NULL, &d->blocked);
  if (d->is_slow)
    nanosleep(&slow, NULL);
  if (d->hangs_at == (int)i)
    while (sem_wait(&gate) != 0)
      continue;
  d->done[i]++;
}

static const struct crew_trade trade = {
    .new_desk = new_desk, .free_desk = free_desk, .work = work};

static struct crew *start(uint64_t timeout_ns, uint64_t patience_ns) {
  struct crew *c;

  assert_int_equal(crew_new(&trade, timeout_ns, patience_ns, &c), 0);
  return c;
}

static struct desk *desk_of(struct crew *c) {
  void *desk = NULL;

  assert_int_equal(crew_desk(c, &desk), 0);
  return desk;
}

/* Has the next worker get stuck in the first piece. */
static struct desk *get_stuck(struct crew *c) {
  struct desk *d = desk_of(c);
  struct crew_result result;

  d->hangs_at = 0;
  result = crew_run(c, 1);
  assert_true(result.is_stuck);
  assert_int_equal(result.done, 0);
  return d;
}

static struct desk *await_returned(struct crew *c) {
  struct desk *d;

  while (!(d = crew_next_returned(c)))
    sched_yield();
  return d;
}

static int make(void **state) {
  (void)state;
  sem_init(&gate, 0, 0);
  sem_init(&freed, 0, 0);
  desks_made = 0;
  threads_fail = 0;
  return 0;
}

/* All desks that were made are freed, at once or when the last worker comes;
 * after a test that has failed, not even then. */
static int unmake(void **state) {
  struct timespec end;

  (void)state;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 10;
  for (unsigned i = 0; i < desks_made; i++)
    if (sem_timedwait(&freed, &end) != 0)
      return -1;
  return 0;
}

static void batches_are_done_whole_by_one_thread(void **state) {
  struct crew *c = start(LONG_NS, LONG_NS);
  struct desk *first = desk_of(c);

  (void)state;
  for (unsigned n = 0; n <= PIECES; n++) {
    struct desk *d = desk_of(c);
    struct crew_result result = crew_run(c, n);

    assert_ptr_equal(d, first);
    assert_int_equal(result.done, n);
    assert_false(result.is_stuck);
    assert_false(pthread_equal(d->by, pthread_self()));
  }
  for (unsigned i = 0; i < PIECES; i++)
    assert_int_equal(first->done[i], PIECES - i);
  assert_int_equal(desks_made, 1);
  assert_false(crew_is_stuck(c));
  assert_null(crew_next_returned(c));
  crew_free(c);
}

static void no_thread_is_started_before_there_is_work(void **state) {
  struct crew *c = start(LONG_NS, LONG_NS);

  (void)state;
  assert_int_equal(desks_made, 0);
  crew_free(c);
}

/* The daemon's threads are to take the daemon's signals. */
static void signals_are_blocked_in_workers_alone(void **state) {
  static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGCHLD, SIGALRM};
  struct crew *c = start(LONG_NS, LONG_NS);
  struct desk *d = desk_of(c);
  sigset_t own;

  (void)state;
  crew_run(c, 1);
  pthread_sigmask(SIG_BLOCK, NULL, &own);
  for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
    assert_true(sigismember(&d->blocked, signals[i]));
    assert_false(sigismember(&own, signals[i]));
  }
  crew_free(c);
}

static void what_hangs_is_left_and_the_rest_goes_to_another(void **state) {
  struct crew *c = start(SHORT_NS, LONG_NS);
  struct desk *stuck = desk_of(c), *other;
  struct crew_result result;

  (void)state;
  stuck->hangs_at = 2;
  result = crew_run(c, PIECES);
  assert_true(result.is_stuck);
  assert_int_equal(result.done, 2);
  assert_ptr_equal(crew_stuck_desk(c, 0), stuck);
  assert_null(crew_stuck_desk(c, 1));
  assert_false(crew_is_stuck(c));

  other = desk_of(c);
  assert_ptr_not_equal(other, stuck);
  result = crew_run(c, PIECES);
  assert_int_equal(result.done, PIECES);
  assert_false(result.is_stuck);
  assert_null(crew_next_returned(c));

  /* It did what it was stuck in, and nothing more. */
  sem_post(&gate);
  assert_ptr_equal(await_returned(c), stuck);
  assert_null(crew_next_returned(c));
  assert_null(crew_stuck_desk(c, 0));
  for (unsigned i = 0; i < PIECES; i++)
    assert_int_equal(stuck->done[i], i <= 2);
  crew_free(c);
}

static void who_comes_back_is_used_again(void **state) {
  struct crew *c = start(SHORT_NS, LONG_NS);
  struct desk *d = get_stuck(c);

  (void)state;
  sem_post(&gate);
  assert_ptr_equal(await_returned(c), d);
  d->hangs_at = -1;
  assert_ptr_equal(desk_of(c), d);
  assert_int_equal(crew_run(c, PIECES).done, PIECES);
  assert_int_equal(desks_made, 1);
  crew_free(c);
}

static void no_more_are_stuck_than_there_may_be(void **state) {
  struct crew *c = start(SHORT_NS, LONG_NS);
  struct desk *back;
  void *desk;

  (void)state;
  for (unsigned i = 0; i < CREW_MAX; i++) {
    assert_false(crew_is_stuck(c));
    get_stuck(c);
  }
  assert_true(crew_is_stuck(c));
  assert_int_equal(crew_desk(c, &desk), CREW_TAKES_NOTHING);
  crew_begin(c);
  assert_int_equal(crew_desk(c, &desk), CREW_TAKES_NOTHING);
  assert_int_equal(desks_made, CREW_MAX);

  sem_post(&gate);
  back = await_returned(c);
  assert_false(crew_is_stuck(c));
  back->hangs_at = -1;
  assert_ptr_equal(desk_of(c), back);
  for (unsigned i = 1; i < CREW_MAX; i++)
    sem_post(&gate);
  crew_free(c);
}

/* Of eight pieces of three looks each no stall is made, nor are all waited for:
 * there is patience for four looks, and then for one piece. */
static void slow_work_is_no_stall_and_has_an_end(void **state) {
  struct crew *c = start(SLOW_NS, 4 * SLOW_NS / CREW_LOOKS);
  struct crew_result result;
  struct desk *d = desk_of(c);
  void *desk;

  (void)state;
  d->is_slow = true;
  result = crew_run(c, PIECES);
  assert_false(result.is_stuck);
  assert_in_range(result.done, 1, PIECES - 1);
  for (unsigned i = 0; i < PIECES; i++)
    assert_int_equal(d->done[i], i < result.done);
  assert_int_equal(crew_desk(c, &desk), CREW_TAKES_NOTHING);
  assert_false(crew_is_stuck(c));

  crew_begin(c);
  assert_ptr_equal(desk_of(c), d);
  d->is_slow = false;
  assert_int_equal(crew_run(c, PIECES).done, PIECES);
  crew_free(c);
}

/* Together they take two dozen looks, of which ten at one piece are a stall. */
static void time_is_that_of_a_piece_and_not_of_the_batch(void **state) {
  struct crew *c = start(SLOW_NS, LONG_NS);
  struct crew_result result;

  (void)state;
  desk_of(c)->is_slow = true;
  result = crew_run(c, PIECES);
  assert_false(result.is_stuck);
  assert_int_equal(result.done, PIECES);
  crew_free(c);
}

/* A stall takes ten looks; after that there is no patience for another. */
static void stalls_cost_patience_too(void **state) {
  struct crew *c = start(SHORT_NS, SHORT_NS / 2);
  void *desk;

  (void)state;
  get_stuck(c);
  assert_int_equal(crew_desk(c, &desk), CREW_TAKES_NOTHING);
  assert_false(crew_is_stuck(c));
  crew_begin(c);
  desk_of(c);
  sem_post(&gate);
  crew_free(c);
}

/* It takes its desk along: unmake() waits for that. */
static void end_does_not_wait_for_who_is_stuck(void **state) {
  struct crew *c = start(SHORT_NS, LONG_NS);

  (void)state;
  get_stuck(c);
  assert_int_equal(crew_run((desk_of(c), c), PIECES).done, PIECES);
  crew_free(c);
  /* The free one has gone with the crew. */
  assert_int_equal(sem_trywait(&freed), 0);
  assert_int_equal(sem_trywait(&freed), -1);
  sem_post(&freed);
  sem_post(&gate);
}

static void end_takes_along_who_has_come_back(void **state) {
  struct crew *c = start(SHORT_NS, LONG_NS);

  (void)state;
  get_stuck(c);
  sem_post(&gate);
  crew_free(c);
}

static void thread_that_cannot_be_started_is_an_error(void **state) {
  struct crew *c = start(LONG_NS, LONG_NS);
  void *desk;

  (void)state;
  threads_fail = EAGAIN;
  for (int i = 0; i < 2 * CREW_MAX; i++)
    assert_int_equal(crew_desk(c, &desk), -EAGAIN);
  assert_false(crew_is_stuck(c));
  threads_fail = 0;
  desk_of(c);
  assert_int_equal(crew_run(c, PIECES).done, PIECES);
  crew_free(c);
}

/* Beats like a heart while the worker is in a piece, and lets it go on after
 * more looks than would be a stall. */
static unsigned beats;

static unsigned beat(void *desk) {
  (void)desk;
  if (++beats == 2 * CREW_LOOKS)
    sem_post(&gate);
  return beats;
}

static void a_long_piece_that_goes_on_is_no_stall(void **state) {
  struct crew_trade beating = trade;
  struct crew_result result;
  struct crew *c;
  struct desk *d;

  (void)state;
  beats = 0;
  beating.beats = beat;
  assert_int_equal(crew_new(&beating, SHORT_NS, SHORT_NS, &c), 0);
  d = desk_of(c);
  d->hangs_at = 2;
  result = crew_run(c, PIECES);
  assert_false(result.is_stuck);
  assert_int_equal(result.done, PIECES); /* nor does it cost patience */
  assert_int_equal(d->done[2], 1);
  crew_free(c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(batches_are_done_whole_by_one_thread),
      TEST(no_thread_is_started_before_there_is_work),
      TEST(signals_are_blocked_in_workers_alone),
      TEST(what_hangs_is_left_and_the_rest_goes_to_another),
      TEST(who_comes_back_is_used_again),
      TEST(no_more_are_stuck_than_there_may_be),
      TEST(slow_work_is_no_stall_and_has_an_end),
      TEST(time_is_that_of_a_piece_and_not_of_the_batch),
      TEST(stalls_cost_patience_too),
      TEST(end_does_not_wait_for_who_is_stuck),
      TEST(end_takes_along_who_has_come_back),
      TEST(thread_that_cannot_be_started_is_an_error),
      TEST(a_long_piece_that_goes_on_is_no_stall),
  };

  alarm(300); /* what waits in vain fails */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
