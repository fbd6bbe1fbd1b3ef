#include "config/policy.h"

void policy_inherit(struct policy *p, const struct policy *from) {
  if (p->refresh == REFRESH_UNSET)
    p->refresh = from->refresh;
  if (!p->max_age_ns)
    p->max_age_ns = from->max_age_ns;
  if (!p->max_lock_hold_ns)
    p->max_lock_hold_ns = from->max_lock_hold_ns;
}

void policy_tighten(struct policy *p, const struct policy *other) {
  if (other->refresh > p->refresh)
    p->refresh = other->refresh;
  if (!p->max_age_ns || other->max_age_ns < p->max_age_ns)
    p->max_age_ns = other->max_age_ns;
  if (!p->max_lock_hold_ns || other->max_lock_hold_ns < p->max_lock_hold_ns)
    p->max_lock_hold_ns = other->max_lock_hold_ns;
}
