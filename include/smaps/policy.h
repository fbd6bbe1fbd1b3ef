/* How much reading a group is worth: Refresh, MaxAge and MaxStall. */
#ifndef SMAPS_POLICY_H
#define SMAPS_POLICY_H

#include <stdint.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

enum refresh {
  REFRESH_UNSET,
  REFRESH_NEVER,    /* statm only */
  REFRESH_ADAPTIVE, /* a rollup where it changes the answer */
  REFRESH_ALWAYS,   /* a rollup of every member in every interval */
};

struct policy {
  enum refresh refresh;
  uint64_t max_age_ns;   /* an estimate may stand so long on one reading */
  uint64_t max_stall_ns; /* a walk may be predicted to take so long */
};

extern const struct policy policy_default;
#define READ_BUDGET_DEFAULT_NS (50 * NS_PER_MS)
#define STALL_TIMEOUT_DEFAULT_NS NS_PER_S

/* Fills what is unset (0) from a policy that is set higher up. */
void policy_inherit(struct policy *p, const struct policy *from);

/* Makes p the stricter of the two, for a process that is in two groups. */
void policy_tighten(struct policy *p, const struct policy *other);

#endif
