#include "schedule/price.h"

#include <math.h>

#include "proc/arith.h"

/* A guessed price can be too low or too high by this factor; and the weight of
 * one first reading in its mean. */
#define GUESS_OFF_MOST 20.0
#define GUESS_OFF_RATE 0.1

/* The page tables of smaller processes make no difference. */
#define TABLES_WORTH_ASKING_PAGES (UINT64_C(64) << 20 >> 12)

/* Guesses the price from files whose reading walks no page tables. */
static struct read_cost guess_of(const struct prices *prices,
                                 const struct process *p) {
  uint64_t swapped = 0, tables = 0;
  struct status_sample s;

  if (p->statm.size_pages >= TABLES_WORTH_ASKING_PAGES &&
      member_read_status(prices->procfs, p, &s)) {
    swapped = s.vm_swap_bytes / prices->cycle->page_size;
    tables = s.vm_pte_bytes / prices->cycle->page_size;
  }
  return read_cost_guess(p->statm.resident_pages, swapped, tables);
}

uint64_t price_swapped_pages(const struct prices *prices,
                             const struct process *p) {
  if (!track_has_baseline(&p->member->track))
    return p->member->cost.swapped;
  return p->member->track.now.vm_swap_kb * UINT64_C(1024) /
         prices->cycle->page_size;
}

uint32_t price_ns(const struct prices *prices, const struct process *p) {
  return read_cost_predict(&p->member->cost,
                           p->statm.resident_pages +
                               price_swapped_pages(prices, p));
}

uint64_t price_known_ns(const struct prices *prices, const struct process *p) {
  return p->member && p->member->cost.ns ? price_ns(prices, p) : 0;
}

bool price_is_too_large(const struct prices *prices, const struct process *p) {
  uint64_t ns =
      p->member->cost.ns ? price_ns(prices, p) : guess_of(prices, p).ns;

  return ns > member_policy(p).max_lock_hold_ns;
}

/* The price for the budget. MaxLockHold uses the guess itself, see read_cost.h.
 */
uint32_t price_for_budget_ns(const struct prices *prices,
                             const struct process *p) {
  double ns = price_ns(prices, p);

  return amount_narrow(
      amount_from(p->member->cost.is_learnt ? ns : ns * prices->guess_off));
}

/* True if the reading is cheap enough, or if it is time to try it again. */
bool price_is_affordable(const struct prices *prices, struct process *p,
                         const struct policy *policy) {
  struct read_cost *cost = &p->member->cost, guess;

  if (cost->ns && price_ns(prices, p) <= policy->max_lock_hold_ns)
    return true;
  if (!read_cost_may_try(cost, prices->cycle->now_ns))
    return false;
  guess = guess_of(prices, p);
  return read_cost_apply_guess(cost, &guess, policy, prices->cycle->now_ns);
}

/* Guesses are for a fast processor with nothing beside it. A reading that may
 * have waited counts as at most twice what was expected. */
void price_learn_guess(struct prices *prices, const struct process *p,
                       const struct read_job *job) {
  double off = (double)job->work_ns / (double)price_ns(prices, p);
  double most = job->is_metered ? GUESS_OFF_MOST : 2 * prices->guess_off;

  off = clamp(off, 1 / GUESS_OFF_MOST, fmin(most, GUESS_OFF_MOST));
  prices->guess_off += (off - prices->guess_off) * GUESS_OFF_RATE;
}

/* A short reading whose processor time was not asked for may have waited: it
 * counts as no more than twice what it was expected to cost. */
uint64_t price_of_reading_ns(const struct prices *prices,
                             const struct process *p,
                             const struct read_job *job) {
  uint64_t most_ns = UINT64_C(2) * price_for_budget_ns(prices, p);
  uint64_t cost_ns = job->work_ns;

  if (!job->is_metered && cost_ns > most_ns)
    cost_ns = most_ns;
  return cost_ns + job->count_ns;
}
