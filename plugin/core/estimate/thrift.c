#include "estimate/thrift.h"

/* The part of a reading that comes in each cycle. */
#define INCOME 0.05F
/* The part of what is beyond the credit that is forgiven in each cycle. */
#define FORGIVEN 0.01F

void thrift_save(struct thrift *t, uint32_t members, uint64_t price_ns,
                 bool is_read) {
  float beyond = t->owed_ns - THRIFT_CREDIT_NS * (float)members;

  if (beyond > 0)
    t->owed_ns -= beyond * FORGIVEN / (float)members;
  t->owed_ns -= (float)price_ns * (is_read ? INCOME : 1 + INCOME);
  if (t->owed_ns < 0)
    t->owed_ns = 0;
}
