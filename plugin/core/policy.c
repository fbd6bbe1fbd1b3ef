#include <smaps/policy.h>

const struct policy policy_default = {.refresh = REFRESH_ADAPTIVE,
                                      .max_age_ns = 60 * NS_PER_S,
                                      .max_stall_ns = 100 * NS_PER_MS};

void policy_inherit(struct policy *p, const struct policy *from) {
  if (p->refresh == REFRESH_UNSET)
    p->refresh = from->refresh;
  if (!p->max_age_ns)
    p->max_age_ns = from->max_age_ns;
  if (!p->max_stall_ns)
    p->max_stall_ns = from->max_stall_ns;
}

void policy_tighten(struct policy *p, const struct policy *other) {
  if (other->refresh > p->refresh)
    p->refresh = other->refresh;
  if (!p->max_age_ns || other->max_age_ns < p->max_age_ns)
    p->max_age_ns = other->max_age_ns;
  if (!p->max_stall_ns || other->max_stall_ns < p->max_stall_ns)
    p->max_stall_ns = other->max_stall_ns;
}
