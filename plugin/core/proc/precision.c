/* SPDX-License-Identifier: MIT */
#include "proc/precision.h"

#include "base/arith.h"

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
/* So many comparisons make a judgement; after so many, it begins anew. */
#define COMPARISONS_ENOUGH 16
#define COMPARISONS_MOST 64

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
void precision_learn(struct precision *p, uint64_t off_pages) {
  if (p->n == COMPARISONS_MOST)
    p->n = p->differing = p->most_pages = 0;
  p->n++;
  p->differing += off_pages > 0;
  p->most_pages = (uint32_t)max(p->most_pages, amount_narrow(off_pages));
  if (p->n < COMPARISONS_ENOUGH)
    return;
  p->is_judged = true;
  p->judged_pages =
      p->differing * INEXACT_SHARE < p->n ? 0 : UINT64_C(2) * p->most_pages;
}

uint64_t precision_expected(const struct precision *p, uint32_t threads) {
  return p->expected_pages + p->expected_thread_faults * FAULT_PAGES * threads;
}

/* A process whose faults mapped more than a page each was off at its reading.
 */
uint64_t precision_pages(const struct precision *p, uint32_t threads,
                         bool is_read, uint64_t last_pages) {
  if (!p->is_judged)
    return is_read ? p->expected_pages + p->expected_thread_faults * threads +
                         2 * last_pages
                   : precision_expected(p, threads);
  if (p->judged_pages == 0)
    return 0;
  return max(p->judged_pages, 2 * last_pages);
}
