/* SPDX-License-Identifier: MIT */
#include "report/error.h"

#include <math.h>

#include "base/arith.h"

#define NAME(name, key, words) #key,
static const char *const cause_names[ALL_CAUSES] = {CAUSE_TABLE(NAME)};

const char *cause_name(enum cause cause) { return cause_names[cause]; }

struct error error_limit(struct error d, uint64_t value, uint64_t most) {
  double up = (double)most - (double)value;
  double bound = fmax((double)value, up), all = error_bytes(d);
  double by = all > bound ? bound / all : 1;

  return (struct error){d.common * by, d.independent * by};
}

void error_add(struct error_sum *sum, struct error d) {
  sum->common += d.common;
  sum->squares += d.independent * d.independent;
}

void error_divide(struct error_sum sums[ALL_CAUSES], struct error d,
                  const double parts[ALL_CAUSES]) {
  double common, squares, all = 0;

  for (int k = 0; k < ALL_CAUSES; k++)
    all += parts[k];
  if (all <= 0)
    return;
  common = d.common / all;
  squares = d.independent * d.independent / all;
  for (int k = 0; k < ALL_CAUSES; k++) {
    sums[k].common += common * parts[k];
    sums[k].squares += squares * parts[k];
  }
}

void error_remove(struct error_sum *sum, struct error d) {
  sum->common = fmax(sum->common - d.common, 0);
  sum->squares = fmax(sum->squares - d.independent * d.independent, 0);
}

uint64_t error_of_sum(const struct error_sum *sum) {
  return amount_from(sum->common + sqrt(sum->squares));
}
