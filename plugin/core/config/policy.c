/* SPDX-License-Identifier: MIT */
#include "config/policy.h"

/* 0: not set. */
static uint64_t shorter(uint64_t a, uint64_t b) {
  return a == 0 || b < a ? b : a;
}

void policy_tighten(struct policy *p, const struct policy *other) {
  p->comes_last &= other->comes_last;
  if (other->refresh > p->refresh)
    p->refresh = other->refresh;
  p->max_age_ns = shorter(p->max_age_ns, other->max_age_ns);
  p->unsampled_lock_hold_ns =
      shorter(p->unsampled_lock_hold_ns, other->unsampled_lock_hold_ns);
  p->max_lock_hold_ns = shorter(p->max_lock_hold_ns, other->max_lock_hold_ns);
}
