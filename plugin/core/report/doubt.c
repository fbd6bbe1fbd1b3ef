#include "report/doubt.h"

#include <math.h>

#include "proc/amount.h"

void doubt_add(struct doubt_sum *sum, struct doubt d) {
  sum->common += d.common;
  sum->squares += d.independent * d.independent;
}

void doubt_remove(struct doubt_sum *sum, struct doubt d) {
  sum->common = fmax(sum->common - d.common, 0);
  sum->squares = fmax(sum->squares - d.independent * d.independent, 0);
}

uint64_t doubt_of_sum(const struct doubt_sum *sum) {
  return amount_from(sum->common + sqrt(sum->squares));
}
