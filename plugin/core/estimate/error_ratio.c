#include "estimate/error_ratio.h"

#include "proc/arith.h"

/* The worst is forgotten more slowly than the usual. */
#define FORGETTING_RATE 0.1
#define WORST_FORGETTING_RATE 0.02
/* A bound is a guess itself. */
#define WORST_MOST 2.0

static double follow(double known, double seen, double rate) {
  return seen > known ? seen : known + (seen - known) * rate;
}

static void conclude(struct error_ratio *r) {
  double ratio;

  if (r->bound <= 0)
    return;
  ratio = clamp(r->off / r->bound, r->least, 1);
  r->usual = follow(r->usual, ratio, FORGETTING_RATE);
  r->worst_seen = follow(r->worst_seen, r->cycle_worst, WORST_FORGETTING_RATE);
  if (r->lessons < ERROR_LESSONS_MOST)
    r->lessons++;
  r->off = r->bound = r->cycle_worst = 0;
}

void error_ratio_add(struct error_ratio *r, uint64_t cycle_ns, double off,
                     double bound) {
  double size = off < 0 ? -off : off;
  double ratio = bound > 0 ? size / bound : 0;

  error_ratio_conclude(r, cycle_ns);
  r->off += size;
  r->bound += bound;
  if (ratio > r->cycle_worst)
    r->cycle_worst = ratio < WORST_MOST ? ratio : WORST_MOST;
}

void error_ratio_conclude(struct error_ratio *r, uint64_t cycle_ns) {
  if (r->cycle_ns != cycle_ns)
    conclude(r);
  r->cycle_ns = cycle_ns;
}

double error_ratio_worst(const struct error_ratio *r) {
  double feared = 3 / (3 + r->lessons);

  return r->worst_seen > feared ? r->worst_seen : feared;
}
