#include <smaps/crew.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

enum worker_state {
  WORKER_NONE, /* no thread yet */
  WORKER_IDLE,
  WORKER_BUSY,
  WORKER_STUCK,    /* given up; whatever it does is of no use any more */
  WORKER_RETURNED, /* it was stuck, and has come back */
  WORKER_ENDING,   /* to end when it is idle, and so on the spot */
  WORKER_LEFT,     /* the crew is gone: to clean up when it comes back */
};

/* Owned by the crew, until that is gone. What the worker does to the desk it
 * does between two changes of `at`, which the lock makes known. */
struct worker {
  pthread_t thread;
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t changed;
  enum worker_state state;
  size_t at, n; /* the piece at hand, and how many there are to do */
  const struct crew_trade *trade;
  void *desk;
};

struct crew {
  struct crew_trade trade;
  uint64_t look_ns;
  uint64_t patience_ns;
  uint64_t patience; /* looks that are left in this cycle */
  struct worker *workers[CREW_MAX];
  unsigned current;
};

/* --- in the thread of a worker --- */

static void free_worker(struct worker *w) {
  if (w->desk)
    w->trade->free_desk(w->desk);
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
  free((void *)(uintptr_t)w->trade);
  free(w);
}

/* With the lock held, but for the work itself. Who was given up finds that
 * there are no further pieces. */
static void do_batch(struct worker *w) {
  while (w->at < w->n) {
    size_t i = w->at;

    pthread_mutex_unlock(&w->lock);
    w->trade->work(w->desk, i);
    pthread_mutex_lock(&w->lock);
    w->at++;
  }
}

static void finish_batch(struct worker *w) {
  if (w->state == WORKER_BUSY)
    w->state = WORKER_IDLE;
  else if (w->state == WORKER_STUCK)
    w->state = WORKER_RETURNED;
  pthread_cond_broadcast(&w->changed);
}

static void *worker_main(void *ctx) {
  struct worker *w = ctx;
  bool is_left;

  pthread_mutex_lock(&w->lock);
  while (w->state != WORKER_ENDING && w->state != WORKER_LEFT) {
    if (w->state != WORKER_BUSY) {
      pthread_cond_wait(&w->changed, &w->lock);
      continue;
    }
    do_batch(w);
    finish_batch(w);
  }
  is_left = w->state == WORKER_LEFT;
  pthread_mutex_unlock(&w->lock);
  if (is_left)
    free_worker(w);
  return NULL;
}

/* --- starting and ending --- */

/* Its signals are the daemon's, and not for this thread to take. */
static int start_thread(struct worker *w) {
  sigset_t all, before;
  int r;

  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  r = pthread_create(&w->thread, NULL, worker_main, w);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (r != 0)
    return -r;
  pthread_setname_np(w->thread, "smaps reader");
  return 0;
}

static void init_lock(struct worker *w) {
  pthread_condattr_t attr;

  pthread_mutex_init(&w->lock, NULL);
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&w->changed, &attr);
  pthread_condattr_destroy(&attr);
}

/* It may outlive the crew, so that it has a trade of its own. */
static int new_worker(const struct crew_trade *trade, struct worker **ret) {
  struct worker *w = calloc(1, sizeof(*w));
  struct crew_trade *own = malloc(sizeof(*own));
  int r;

  if (!w || !own) {
    free(w);
    free(own);
    return -ENOMEM;
  }
  *own = *trade;
  w->trade = own;
  w->state = WORKER_IDLE;
  init_lock(w);
  w->desk = trade->new_desk(trade->ctx);
  r = w->desk ? start_thread(w) : -ENOMEM;
  if (r < 0) {
    free_worker(w);
    return r;
  }
  *ret = w;
  return 0;
}

static void end_worker(struct worker *w) {
  bool is_stuck;

  if (!w)
    return;
  pthread_mutex_lock(&w->lock);
  is_stuck = w->state == WORKER_STUCK;
  w->state = is_stuck ? WORKER_LEFT : WORKER_ENDING;
  pthread_cond_broadcast(&w->changed);
  if (is_stuck)
    pthread_detach(w->thread);
  pthread_mutex_unlock(&w->lock);
  if (is_stuck)
    return;
  pthread_join(w->thread, NULL);
  free_worker(w);
}

int crew_new(const struct crew_trade *trade, uint64_t timeout_ns,
             uint64_t patience_ns, struct crew **ret) {
  struct crew *c = calloc(1, sizeof(*c));

  if (!c)
    return -ENOMEM;
  c->trade = *trade;
  c->look_ns = timeout_ns / CREW_LOOKS;
  c->patience_ns = patience_ns;
  crew_begin(c);
  *ret = c;
  return 0;
}

void crew_free(struct crew *c) {
  if (!c)
    return;
  for (unsigned i = 0; i < CREW_MAX; i++)
    end_worker(c->workers[i]);
  free(c);
}

/* --- who does what --- */

void crew_begin(struct crew *c) {
  c->patience = c->patience_ns / c->look_ns + 1;
}

static enum worker_state state_of(const struct crew *c, unsigned i) {
  struct worker *w = c->workers[i];
  enum worker_state state;

  if (!w)
    return WORKER_NONE;
  pthread_mutex_lock(&w->lock);
  state = w->state;
  pthread_mutex_unlock(&w->lock);
  return state;
}

void *crew_next_returned(struct crew *c) {
  for (unsigned i = 0; i < CREW_MAX; i++) {
    struct worker *w = c->workers[i];

    if (state_of(c, i) != WORKER_RETURNED)
      continue;
    pthread_mutex_lock(&w->lock);
    w->state = WORKER_IDLE;
    pthread_mutex_unlock(&w->lock);
    return w->desk;
  }
  return NULL;
}

const void *crew_stuck_desk(const struct crew *c, unsigned i) {
  return state_of(c, i) == WORKER_STUCK ? c->workers[i]->desk : NULL;
}

bool crew_is_stuck(const struct crew *c) {
  for (unsigned i = 0; i < CREW_MAX; i++)
    if (state_of(c, i) != WORKER_STUCK)
      return false;
  return true;
}

/* One that has a thread before one that would need one. */
static bool find_worker(struct crew *c, enum worker_state state) {
  for (unsigned i = 0; i < CREW_MAX; i++) {
    if (state_of(c, i) != state)
      continue;
    c->current = i;
    return true;
  }
  return false;
}

int crew_desk(struct crew *c, void **ret) {
  int r = 0;

  if (c->patience == 0)
    return CREW_TAKES_NOTHING;
  if (!find_worker(c, WORKER_IDLE)) {
    if (!find_worker(c, WORKER_NONE))
      return CREW_TAKES_NOTHING;
    r = new_worker(&c->trade, &c->workers[c->current]);
  }
  if (r == 0)
    *ret = c->workers[c->current]->desk;
  return r;
}

/* --- watching --- */

static struct timespec after(struct timespec t, uint64_t ns) {
  ns += (uint64_t)t.tv_nsec;
  t.tv_sec += (time_t)(ns / NS_PER_S);
  t.tv_nsec = (long)(ns % NS_PER_S);
  return t;
}

/* How far it has come. */
struct progress {
  size_t at;
  unsigned beats;
};

static struct progress look_at(const struct worker *w) {
  return (struct progress){
      .at = w->at, .beats = w->trade->beats ? w->trade->beats(w->desk) : 0};
}

static bool is_same(const struct progress *a, const struct progress *b) {
  return a->at == b->at && a->beats == b->beats;
}

/* False when the time of one look is over and the worker is not done. */
static bool wait_a_look(struct worker *w, uint64_t look_ns) {
  struct timespec end;
  int r = 0;

  clock_gettime(CLOCK_MONOTONIC, &end);
  end = after(end, look_ns);
  while (w->state == WORKER_BUSY && r == 0)
    r = pthread_cond_timedwait(&w->changed, &w->lock, &end);
  return w->state != WORKER_BUSY;
}

/*
 * Waits until the batch is done or a piece is stuck. What is counted is looks
 * at a piece that does not go on, and not time: with us the whole machine may
 * have stood still. Patience is lost by every look that finds the same piece as
 * the one before; without any, the piece at hand is the last.
 */
static void watch(struct crew *c, struct worker *w) {
  unsigned looks = 0;
  struct progress last = look_at(w);

  while (!wait_a_look(w, c->look_ns)) {
    struct progress now = look_at(w);

    looks = is_same(&now, &last) ? looks + 1 : 0;
    last = now;
    if (looks > 0 && c->patience > 0)
      c->patience--;
    if (c->patience == 0)
      w->n = w->at + 1;
    if (looks == CREW_LOOKS)
      return;
  }
}

struct crew_result crew_run(struct crew *c, size_t n) {
  struct worker *w = c->workers[c->current];
  struct crew_result result = {.done = 0};

  pthread_mutex_lock(&w->lock);
  w->at = 0;
  w->n = n;
  w->state = WORKER_BUSY;
  pthread_cond_broadcast(&w->changed);
  watch(c, w);
  result.done = w->at;
  result.is_stuck = w->state == WORKER_BUSY;
  if (result.is_stuck) {
    w->state = WORKER_STUCK;
    w->n = w->at + 1;
  }
  pthread_mutex_unlock(&w->lock);
  return result;
}
