#include "config/policy.h"

uint64_t policy_unsampled_lock_hold_ns(const struct policy *p) {
  return p->unsampled_lock_hold_ns ? p->unsampled_lock_hold_ns
                                   : p->max_lock_hold_ns;
}

void policy_inherit(struct policy *p, const struct policy *from) {
  if (p->refresh == REFRESH_UNSET)
    p->refresh = from->refresh;
  if (!p->max_age_ns)
    p->max_age_ns = from->max_age_ns;
  if (p->max_lock_hold_ns)
    return;
  p->max_lock_hold_ns = from->max_lock_hold_ns;
  p->unsampled_lock_hold_ns = from->unsampled_lock_hold_ns;
}

/* 0: not set. */
static uint64_t shorter(uint64_t a, uint64_t b) {
  return a == 0 || b < a ? b : a;
}

void policy_tighten(struct policy *p, const struct policy *other) {
  p->comes_last &= other->comes_last;
  if (other->refresh > p->refresh)
    p->refresh = other->refresh;
  p->max_age_ns = shorter(p->max_age_ns, other->max_age_ns);
  p->unsampled_lock_hold_ns = shorter(policy_unsampled_lock_hold_ns(p),
                                      policy_unsampled_lock_hold_ns(other));
  p->max_lock_hold_ns = shorter(p->max_lock_hold_ns, other->max_lock_hold_ns);
}
