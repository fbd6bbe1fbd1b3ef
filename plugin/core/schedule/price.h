/*
 * Prices of readings: for MaxLockHold, as read_cost.h predicts them, and for
 * ReadBudget.
 */
#ifndef SMAPS_PRICE_H
#define SMAPS_PRICE_H

#include "estimate/cycle.h"
#include "estimate/member.h"
#include "read/reader.h"

struct prices {
  const struct cycle *cycle;
  struct procfs *procfs;
  /* How many times the guess first readings have cost, on average; 1 at
   * first. */
  double guess_off;
};

/* The time that a reading is predicted to take; 0 where nothing is known. */
uint64_t price_known_ns(const struct prices *prices, const struct process *p);

/* Whether a walk of its page tables is predicted to take longer than its
 * MaxLockHold. */
bool price_is_too_large(const struct prices *prices, const struct process *p);

uint32_t price_ns(const struct prices *prices, const struct process *p);

/* Its pages in swap as they are known: before a baseline, from the guess. */
uint64_t price_swapped_pages(const struct prices *prices,
                             const struct process *p);

/* Before the first reading the budget goes by guesses as they have turned out,
 * and MaxLockHold by the guess itself. */
uint32_t price_for_budget_ns(const struct prices *prices,
                             const struct process *p);

/* Whether it is cheap enough, or it is time to see whether it has become so. */
bool price_is_affordable(const struct prices *prices, struct process *p,
                         const struct policy *policy);

/* Takes what a first reading has cost, before its price is learnt. */
void price_learn_guess(struct prices *prices, const struct process *p,
                       const struct read_job *job);

/* What a reading costs the budget, before its price is learnt. */
uint64_t price_of_reading_ns(const struct prices *prices,
                             const struct process *p,
                             const struct read_job *job);

#endif
