/*
 * Threads for work that may hang in the kernel, where no signal and no timeout
 * reaches: the one thing that can be done with such a thread is to leave it
 * alone. So the work is handed out in batches to a thread that is watched; one
 * that gets stuck is given up, and the next batch goes to another, of which
 * there is a fixed number. A stuck one that comes back is used again.
 *
 * Knows nothing of what is read. Whatever the work touches belongs to the desk
 * of its worker and to nobody else, because a stuck worker can come back at any
 * time, also when the crew is gone.
 *
 * The threads keep the priority of whoever made the crew, and it must not be
 * lowered: a reader of smaps_rollup that is not scheduled holds the mmap lock
 * of its target all the while. With SCHED_IDLE on a busy machine 8.9 s were
 * measured.
 */
#ifndef SMAPS_CREW_H
#define SMAPS_CREW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many may be stuck at a time. */
#define CREW_MAX 4

/* How often, in the time that a piece of work may take, it is looked after. */
#define CREW_LOOKS 10

/* What the workers do. */
struct crew_trade {
  /* Makes a desk, NULL when out of memory; and frees it, in the thread of a
   * worker where that is the last to leave. */
  void *(*new_desk)(void *ctx);
  void (*free_desk)(void *desk);
  /* Does the i-th piece of the batch that lies on the desk. */
  void (*work)(void *desk, size_t i);
  /* Differs whenever it is asked while a long piece goes on; asked in another
   * thread than that of the work. NULL where no piece is long. */
  unsigned (*beats)(void *desk);
  void *ctx;
};

struct crew;

/*
 * timeout_ns: how long a piece may take. This is measured by looking CREW_LOOKS
 * times whether it is the same still, so it may be a tenth more; and a machine
 * that stood still meanwhile, ourselves with it, is no stall.
 *
 * patience_ns: how long a cycle may wait in all for pieces that are slow, that
 * is, take longer than a tenth of that. When it is at an end the piece at hand
 * is the last one of the cycle, and may be waited for another timeout_ns.
 *
 * No thread is started yet. Returns 0 or -ENOMEM.
 */
int crew_new(const struct crew_trade *trade, uint64_t timeout_ns,
             uint64_t patience_ns, struct crew **ret);

/* Waits for no stuck worker: that one takes its desk with it when it comes
 * back. Takes NULL. */
void crew_free(struct crew *c);

/* To be called each cycle: the patience is new. */
void crew_begin(struct crew *c);

/* A worker that was stuck and has come back: its desk, once; NULL for none. */
void *crew_next_returned(struct crew *c);

/* The desk of the i-th worker, if that one is stuck, else NULL. */
const void *crew_stuck_desk(const struct crew *c, unsigned i);

/* Whether all are stuck. */
bool crew_is_stuck(const struct crew *c);

/* No worker is free, or the patience of this cycle is at its end. */
#define CREW_TAKES_NOTHING 1

/*
 * The desk at which the next batch will be done, to lay it there. 0, or
 * CREW_TAKES_NOTHING, or the negative errno of starting a thread.
 */
int crew_desk(struct crew *c, void **ret);

struct crew_result {
  size_t done;   /* pieces, from the first */
  bool is_stuck; /* in the next piece; the desk is not to be touched there */
};

/* Has the batch done that lies on the desk of crew_desk(). The rest of a batch
 * that was not done whole is not begun. */
struct crew_result crew_run(struct crew *c, size_t n);

#endif
