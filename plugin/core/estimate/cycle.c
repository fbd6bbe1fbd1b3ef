#include "estimate/cycle.h"

/* Linux 6.2: f1a7941243c1 made the counters per-CPU ones; 6.17 is exact. */
#define PER_CPU_SINCE 2
#define EXACT_SINCE 17
/* percpu_counter_batch; and TASK_RSS_EVENTS_THRESH of older kernels, in faults,
 * each of which maps up to fault_around_bytes of a file. */
#define BATCH_LEAST_PAGES 32
#define THREAD_FAULTS UINT64_C(64)
#define FAULT_PAGES 16
/* A few processes map pages that statm and the rollup count differently, and
 * prove nothing: inexact counters show in nearly all processes. */
#define INEXACT_SHARE 4

void precision_init(struct precision *p, unsigned major, unsigned minor,
                    unsigned cpus) {
  uint64_t batch =
      cpus > BATCH_LEAST_PAGES / 2 ? 2 * (uint64_t)cpus : BATCH_LEAST_PAGES;

  *p = (struct precision){.n = 0};
  if (major < 6 || (major == 6 && minor < PER_CPU_SINCE))
    p->expected_thread_faults = THREAD_FAULTS;
  else if (major == 6 && minor < EXACT_SINCE)
    p->expected_pages = batch * cpus;
}

/* Doubled, because the next one may be farther off than all of them. */
static uint64_t judge(const struct precision *p) {
  uint64_t most = 0;
  size_t differing = 0;

  for (size_t i = 0; i < p->n; i++) {
    differing += p->off_pages[i] > 0;
    if (p->off_pages[i] > most)
      most = p->off_pages[i];
  }
  return differing * INEXACT_SHARE < p->n ? 0 : 2 * most;
}

void precision_learn(struct precision *p, uint64_t off_pages) {
  p->off_pages[p->next] =
      off_pages < UINT32_MAX ? (uint32_t)off_pages : UINT32_MAX;
  p->next = (p->next + 1) % COMPARISONS_KEPT;
  if (p->n < COMPARISONS_KEPT)
    p->n++;
  p->judged_pages = judge(p);
}

uint64_t precision_expected(const struct precision *p, uint32_t threads) {
  return p->expected_pages + p->expected_thread_faults * FAULT_PAGES * threads;
}

/* A process whose faults mapped more than a page each was off at its reading.
 */
uint64_t precision_pages(const struct precision *p, uint32_t threads,
                         bool is_read, uint64_t last_pages) {
  if (p->n < COMPARISONS_ENOUGH)
    return is_read ? p->expected_pages + p->expected_thread_faults * threads +
                         2 * last_pages
                   : precision_expected(p, threads);
  if (p->judged_pages == 0)
    return 0;
  return p->judged_pages > 2 * last_pages ? p->judged_pages : 2 * last_pages;
}
