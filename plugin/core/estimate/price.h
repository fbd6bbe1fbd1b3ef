/*
 * Prices of readings in the measurer: for MaxLockHold, as read_cost.h predicts
 * them, and for ReadBudget.
 */
#ifndef SMAPS_PRICE_H
#define SMAPS_PRICE_H

#include "estimate/measure.h"

/* A guess from what can be had without looking at the page tables. */
struct read_cost price_guess(const struct measurer *m, const struct process *p);

uint32_t price_ns(const struct measurer *m, const struct process *p);

/* Its pages in swap as they are known: before a baseline, from the guess. */
uint64_t price_swapped_pages(const struct measurer *m, const struct process *p);

/* Before the first reading the budget goes by guesses as they have turned out,
 * and MaxLockHold by the guess itself. */
uint32_t price_for_budget_ns(const struct measurer *m, const struct process *p);

/* Whether it is cheap enough, or it is time to see whether it has become so. */
bool price_is_affordable(struct measurer *m, struct process *p,
                         const struct policy *policy);

/* Takes what a first reading has cost, before its price is learnt. */
void price_learn_guess(struct measurer *m, const struct process *p,
                       const struct read_job *job);

/* Charges a reading to the budget, before its price is learnt. */
void price_charge(struct measurer *m, const struct process *p,
                  const struct read_job *job);

#endif
