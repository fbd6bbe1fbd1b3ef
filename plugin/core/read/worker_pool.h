/* SPDX-License-Identifier: MIT */
/*
 * Threads for work that may hang in the kernel, where no signal and no timeout
 * reaches: a hung thread can only be left alone. So work is handed out in
 * batches to a thread that is watched. A thread that hangs is abandoned, and
 * the next batch goes to another one, up to a fixed number. A hung thread that
 * returns is used again.
 *
 * The pool knows nothing about the work. All data of the work belongs to the
 * worker's context and to nothing else, because a hung worker can return at any
 * time, even after the pool is freed.
 *
 * The threads keep the priority of the thread that made the pool, and it must
 * not be lowered: a reader of smaps_rollup that is not scheduled still holds
 * the mmap lock of its target. With SCHED_IDLE on a busy machine, 8.9 s were
 * measured.
 */
#ifndef SMAPS_WORKER_POOL_H
#define SMAPS_WORKER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of workers, all of which may hang. */
#define WORKER_POOL_MAX 4

/* How often a piece of work is polled within its timeout. */
#define WORKER_POOL_POLLS 10

/* The work that a pool does. */
struct worker_ops {
  /* Makes a context: 0 or a negative errno. free_context() runs in the thread
   * of a worker that returns after the pool is freed. */
  int (*new_context)(void *ctx, void **ret);
  void (*free_context)(void *context);
  /* Does the i-th piece of the batch in the context. */
  void (*work)(void *context, size_t i);
  /* Heartbeat: changes while a long piece makes progress. Called from another
   * thread than work(). */
  unsigned (*heartbeat)(void *context);
  void *ctx;
};

struct worker_pool;

/*
 * timeout_ns: how long a piece may take. It is polled WORKER_POOL_POLLS times,
 * so the real timeout may be a tenth longer; if the whole machine stands still,
 * we do too, and that does not count as a hang.
 *
 * wait_budget_ns: how long a cycle may wait in all for slow pieces, which take
 * longer than a tenth of timeout_ns. When it is used up, the current piece is
 * the last one of the cycle, and may be waited for another timeout_ns.
 *
 * Does not start a thread yet. Returns 0 or -ENOMEM.
 */
int worker_pool_new(const struct worker_ops *ops, uint64_t timeout_ns,
                    uint64_t wait_budget_ns, struct worker_pool **ret);

/* Does not wait for hung workers: such a worker frees its context when it
 * returns. Accepts NULL. */
void worker_pool_free(struct worker_pool *pool);

/* Starts a cycle: restores the wait budget. */
void worker_pool_begin(struct worker_pool *pool);

/* The context of the i-th worker if it hangs, else NULL. The worker may return
 * at any time, and then uses the context no more. */
const void *worker_pool_hung_context(const struct worker_pool *pool,
                                     unsigned i);

/* No worker is free, or the wait budget of this cycle is used up. */
#define WORKER_POOL_BUSY 1

/*
 * Gets the context that takes the next batch; the work of a worker that hung
 * and has returned is still in it. Returns 0, WORKER_POOL_BUSY, or the negative
 * errno of starting a thread.
 */
int worker_pool_acquire(struct worker_pool *pool, void **ret);

struct worker_pool_result {
  size_t done;  /* number of pieces done */
  bool is_hung; /* in piece `done`, whose data must not be touched */
};

/* Runs the batch of n pieces in the context from worker_pool_acquire(). If it
 * stops early, the remaining pieces are not begun. */
struct worker_pool_result worker_pool_run(struct worker_pool *pool, size_t n);

#endif
