#include "estimate/thrift.h"

/* The part of a reading that comes in each cycle. */
#define INCOME 0.05F

void thrift_save(struct thrift *t, uint64_t price_ns, bool is_read) {
  t->owed_ns -= (float)price_ns * (is_read ? INCOME : 1 + INCOME);
  if (t->owed_ns < 0)
    t->owed_ns = 0;
}
