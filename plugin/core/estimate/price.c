#include "estimate/price.h"

#include <math.h>

#include "estimate/member.h"
#include "proc/amount.h"
#include "proc/arith.h"

/* A guess of a price can be too low or too high by this; the weight of one
 * first reading. */
#define GUESS_OFF_MOST 20.0
#define GUESS_OFF_RATE 0.1

/* Below, a few page tables make no difference. */
#define TABLES_WORTH_ASKING_PAGES (UINT64_C(64) << 20 >> 12)

/* A guess from what can be had without looking at the page tables. */
struct read_cost price_guess(const struct measurer *m,
                             const struct process *p) {
  struct read_cost_basis basis = {.resident = p->statm.resident_pages};
  struct status_sample s;

  if (p->statm.size_pages >= TABLES_WORTH_ASKING_PAGES &&
      member_read_status(m->procfs, p, &s)) {
    basis.swapped = s.vm_swap_bytes / m->estimator.page_size;
    basis.tables = s.vm_pte_bytes / m->estimator.page_size;
  }
  return read_cost_guess(&basis);
}

uint64_t price_swapped_pages(const struct measurer *m,
                             const struct process *p) {
  if (!estimator_has_baseline(p->track))
    return p->track->cost.swapped;
  return p->track->now.vm_swap_kb * UINT64_C(1024) / m->estimator.page_size;
}

uint32_t price_ns(const struct measurer *m, const struct process *p) {
  return read_cost_predict(&p->track->cost,
                           p->statm.resident_pages + price_swapped_pages(m, p));
}

/* For the budget; MaxLockHold goes by the guess itself, see read_cost.h. */
uint32_t price_for_budget_ns(const struct measurer *m,
                             const struct process *p) {
  double ns = price_ns(m, p);

  return amount_narrow(
      amount_from(p->track->cost.is_learnt ? ns : ns * m->guess_off));
}

/* Whether it is cheap enough, or it is time to see whether it has become so. */
bool price_is_affordable(struct measurer *m, struct process *p,
                         const struct policy *policy) {
  struct read_cost *cost = &p->track->cost, guess;

  if (cost->ns && price_ns(m, p) <= policy->max_lock_hold_ns)
    return true;
  if (!read_cost_may_try(cost, m->estimator.now_ns))
    return false;
  guess = price_guess(m, p);
  return read_cost_apply_guess(cost, &guess, policy, m->estimator.now_ns);
}

/* Guesses are for a fast processor with nothing beside it. A reading that may
 * have waited tells of no more than twice what was expected. */
void price_learn_guess(struct measurer *m, const struct process *p,
                       const struct read_job *job) {
  double off = (double)job->work_ns / (double)price_ns(m, p);
  double most = job->is_metered ? GUESS_OFF_MOST : 2 * m->guess_off;

  off = clamp(off, 1 / GUESS_OFF_MOST, fmin(most, GUESS_OFF_MOST));
  m->guess_off += (off - m->guess_off) * GUESS_OFF_RATE;
}

/* A short reading whose processor time was not asked for may have waited: it
 * counts as no more than twice what it was expected to cost. */
void price_charge(struct measurer *m, const struct process *p,
                  const struct read_job *job) {
  uint64_t most_ns = UINT64_C(2) * price_for_budget_ns(m, p);
  uint64_t cost_ns = job->work_ns;

  if (!job->is_metered && cost_ns > most_ns)
    cost_ns = most_ns;
  read_budget_charge(&m->budget, cost_ns + job->count_ns);
}
