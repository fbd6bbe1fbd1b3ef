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
  /* The mean cost of first readings, divided by their guess; 1 at first. */
  double guess_off;
};

/* The predicted time of a reading; 0 if nothing is known. */
uint64_t price_known_ns(const struct prices *prices, const struct process *p);

/* True if a walk of its page tables is predicted to exceed its MaxLockHold. */
bool price_is_too_large(const struct prices *prices, const struct process *p);

uint32_t price_ns(const struct prices *prices, const struct process *p);

/* The known number of its pages in swap: before a baseline, from the guess. */
uint64_t price_swapped_pages(const struct prices *prices,
                             const struct process *p);

/* The price for the budget. Before the first reading it is the guess, corrected
 * by guess_off; MaxLockHold uses the guess itself. */
uint32_t price_for_budget_ns(const struct prices *prices,
                             const struct process *p);

/* True if the reading is cheap enough, or if it is time to try it again. */
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
