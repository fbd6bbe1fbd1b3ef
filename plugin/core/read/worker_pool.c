/* SPDX-License-Identifier: MIT */
#include "read/worker_pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"

enum worker_state {
  WORKER_NONE, /* no thread yet */
  WORKER_IDLE,
  WORKER_BUSY,
  WORKER_HUNG,     /* abandoned; its results are of no use */
  WORKER_ENDING,   /* to end as soon as it is idle */
  WORKER_ORPHANED, /* the pool is freed: it cleans up when it returns */
};

/* Owned by the pool until the pool is freed. The lock orders all accesses of
 * the worker to its context between two changes of `at`. */
struct worker {
  pthread_t thread;
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t changed;
  enum worker_state state;
  size_t at, n; /* the current piece, and the number of pieces */
  struct worker_ops ops;
  void *context;
};

struct worker_pool {
  struct worker_ops ops;
  uint64_t poll_ns;
  uint64_t wait_budget_ns;
  uint64_t wait_budget; /* polls left in this cycle */
  struct worker *workers[WORKER_POOL_MAX];
  unsigned current;
};

/* --- in the thread of a worker --- */

static void free_worker(struct worker *w) {
  if (w->context)
    w->ops.free_context(w->context);
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
  free(w);
}

/* Called with the lock held, and drops it during the work. An abandoned worker
 * finds no further pieces, because its n was reduced. */
static void do_batch(struct worker *w) {
  while (w->at < w->n) {
    size_t i = w->at;

    pthread_mutex_unlock(&w->lock);
    w->ops.work(w->context, i);
    pthread_mutex_lock(&w->lock);
    w->at++;
  }
}

static void *worker_main(void *ctx) {
  struct worker *w = ctx;
  bool is_orphaned;

  pthread_mutex_lock(&w->lock);
  while (w->state != WORKER_ENDING && w->state != WORKER_ORPHANED) {
    if (w->state != WORKER_BUSY) {
      pthread_cond_wait(&w->changed, &w->lock);
      continue;
    }
    do_batch(w);
    if (w->state == WORKER_BUSY || w->state == WORKER_HUNG)
      w->state = WORKER_IDLE;
    pthread_cond_broadcast(&w->changed);
  }
  is_orphaned = w->state == WORKER_ORPHANED;
  pthread_mutex_unlock(&w->lock);
  if (is_orphaned)
    free_worker(w);
  return NULL;
}

/* --- starting and ending --- */

/* The worker may outlive the pool, so it has a copy of the ops. */
static int new_worker(const struct worker_ops *ops, struct worker **ret) {
  struct worker *w = calloc(1, sizeof(*w));
  int rc;

  if (!w)
    return -ENOMEM;
  w->ops = *ops;
  w->state = WORKER_IDLE;
  pthread_mutex_init(&w->lock, NULL);
  thread_init_condition(&w->changed);
  rc = ops->new_context(ops->ctx, &w->context);
  if (rc == 0)
    rc = thread_start(&w->thread, worker_main, w);
  if (rc < 0) {
    free_worker(w);
    return rc;
  }
  pthread_setname_np(w->thread, "smaps reader");
  *ret = w;
  return 0;
}

static void end_worker(struct worker *w) {
  bool is_hung;

  if (!w)
    return;
  pthread_mutex_lock(&w->lock);
  is_hung = w->state == WORKER_HUNG;
  w->state = is_hung ? WORKER_ORPHANED : WORKER_ENDING;
  pthread_cond_broadcast(&w->changed);
  if (is_hung)
    pthread_detach(w->thread);
  pthread_mutex_unlock(&w->lock);
  if (is_hung)
    return;
  pthread_join(w->thread, NULL);
  free_worker(w);
}

int worker_pool_new(const struct worker_ops *ops, uint64_t timeout_ns,
                    uint64_t wait_budget_ns, struct worker_pool **ret) {
  struct worker_pool *pool = calloc(1, sizeof(*pool));

  if (!pool)
    return -ENOMEM;
  pool->ops = *ops;
  pool->poll_ns = timeout_ns / WORKER_POOL_POLLS;
  pool->wait_budget_ns = wait_budget_ns;
  worker_pool_begin(pool);
  *ret = pool;
  return 0;
}

void worker_pool_free(struct worker_pool *pool) {
  if (!pool)
    return;
  for (unsigned i = 0; i < WORKER_POOL_MAX; i++)
    end_worker(pool->workers[i]);
  free(pool);
}

/* --- choosing a worker --- */

void worker_pool_begin(struct worker_pool *pool) {
  pool->wait_budget = pool->wait_budget_ns / pool->poll_ns + 1;
}

static enum worker_state get_state(const struct worker_pool *pool, unsigned i) {
  struct worker *w = pool->workers[i];
  enum worker_state state;

  if (!w)
    return WORKER_NONE;
  pthread_mutex_lock(&w->lock);
  state = w->state;
  pthread_mutex_unlock(&w->lock);
  return state;
}

const void *worker_pool_hung_context(const struct worker_pool *pool,
                                     unsigned i) {
  return get_state(pool, i) == WORKER_HUNG ? pool->workers[i]->context : NULL;
}

/* Finds a worker in this state. Callers prefer idle workers, which need no new
 * thread. */
static bool find_worker(struct worker_pool *pool, enum worker_state state) {
  for (unsigned i = 0; i < WORKER_POOL_MAX; i++) {
    if (get_state(pool, i) != state)
      continue;
    pool->current = i;
    return true;
  }
  return false;
}

int worker_pool_acquire(struct worker_pool *pool, void **ret) {
  int rc = 0;

  if (pool->wait_budget == 0)
    return WORKER_POOL_BUSY;
  if (!find_worker(pool, WORKER_IDLE)) {
    if (!find_worker(pool, WORKER_NONE))
      return WORKER_POOL_BUSY;
    rc = new_worker(&pool->ops, &pool->workers[pool->current]);
  }
  if (rc == 0)
    *ret = pool->workers[pool->current]->context;
  return rc;
}

/* --- watching --- */

static uint64_t progress_of(const struct worker *w) {
  return (uint64_t)w->at << 32 | w->ops.heartbeat(w->context);
}

/* Returns true if the worker is done, false after poll_ns. */
static bool wait_one_poll(struct worker *w, uint64_t poll_ns) {
  struct timespec end = thread_deadline(poll_ns);
  int rc = 0;

  while (w->state == WORKER_BUSY && rc == 0)
    rc = pthread_cond_timedwait(&w->changed, &w->lock, &end);
  return w->state != WORKER_BUSY;
}

/*
 * Waits until the batch is done or a piece hangs. It counts polls without
 * progress instead of time, because the whole machine may have stood still.
 * Each poll that finds the same piece as before costs wait budget; when that is
 * used up, the current piece is the last.
 */
static void watch_batch(struct worker_pool *pool, struct worker *w) {
  unsigned polls = 0;
  uint64_t last = progress_of(w);

  while (!wait_one_poll(w, pool->poll_ns)) {
    uint64_t now = progress_of(w);

    polls = now == last ? polls + 1 : 0;
    last = now;
    if (polls > 0 && pool->wait_budget > 0)
      pool->wait_budget--;
    if (pool->wait_budget == 0)
      w->n = w->at + 1;
    if (polls == WORKER_POOL_POLLS)
      return;
  }
}

struct worker_pool_result worker_pool_run(struct worker_pool *pool, size_t n) {
  struct worker *w = pool->workers[pool->current];
  struct worker_pool_result result = {.done = 0};

  pthread_mutex_lock(&w->lock);
  assert(w->state == WORKER_IDLE);
  w->at = 0;
  w->n = n;
  w->state = WORKER_BUSY;
  pthread_cond_broadcast(&w->changed);
  watch_batch(pool, w);
  result.done = w->at;
  result.is_hung = w->state == WORKER_BUSY;
  if (result.is_hung) {
    w->state = WORKER_HUNG;
    w->n = w->at + 1;
  }
  pthread_mutex_unlock(&w->lock);
  return result;
}
