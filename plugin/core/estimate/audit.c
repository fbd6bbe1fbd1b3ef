/* SPDX-License-Identifier: MIT */
#include "estimate/audit.h"

#include <math.h>

#include "base/ablate.h"
#include "base/arith.h"

/* Errors are published so many times as large as those of late, at their
 * highest; and readings are chosen by so many times what is between these and
 * their mean: a set that was wrong not long ago may be so again. */
#define PUBLISHED 6.5
#define CHOSEN 1.96

/*
 * The rate error² / bound² of each cause: before the first reading, and its
 * lower bound, because a few exact readings prove nothing. Without learning the
 * bound is the error. The bound for freed memory, which may have been shared
 * however often it was not, is large enough to be published for two members
 * whose errors are thought independent.
 */
static const struct {
  double at_first, least;
  bool is_learnt;
} causes[CAUSES] = {
    [CAUSE_FILES] = {0.105, 4e-4, true},
    [CAUSE_RELATIVES] = {0.105, 4e-4, true},
    [CAUSE_COPIES] = {0.105, 4e-4, true},
    [CAUSE_FREED] = {0.105, 2 / (PUBLISHED * PUBLISHED), true},
    [CAUSE_FORK] = {0.105, 4e-8, true},
    [CAUSE_LENT] = {0.105, 4e-8, true},
    [CAUSE_SWAP] = {0.2, 4e-4, true},
    /* 2 % in a minute; 0.01 %. */
    [CAUSE_TIME] = {6.7e-6, 6.8e-10, true},
};
_Static_assert(CAUSES == 11, "it was decided of each cause if it is learnt");

/* Uss changes by all of a page, and Pss by half of it or more. */
#define USS_MOST 2.0

/* The part that is left after a cycle with a lesson of what was known. */
#define KEPT 0.93
/* And of the highest of late. */
#define HIGH_KEPT 0.974
/* The part of what is not known yet that a cycle with a lesson shows. */
#define LEARNT 0.18

static double seen(const struct rate *r, enum audit_level level) {
  double mean = r->off / r->bound;

  if (!RULE(highest))
    return mean;
  if (level == AUDIT_CHOSEN)
    return sqrt(mean * fmax(mean, r->high));
  return level == AUDIT_PUBLISHED ? fmax(mean, r->high) : mean;
}

static double rate_of(const struct rate *r, enum audit_level level,
                      double at_first, double least) {
  if (r->bound <= 0)
    return at_first;
  return fmax(seen(r, level), least) * r->known + at_first * (1 - r->known);
}

/* The square that is to be expected of one cause. */
static double square(const struct audit *a, const struct bounds *x,
                     enum audit_level level, int k) {
  if (!causes[k].is_learnt)
    return 0;
  return x->bytes[k] * x->bytes[k] *
         rate_of(&a->rates[k], level, causes[k].at_first, causes[k].least);
}

/* Returns the sum of all. */
static double squares_of(const struct audit *a, const struct bounds *x,
                         enum audit_level level, double ret[CAUSES]) {
  double sum = 0;

  for (int k = 0; k < CAUSES; k++)
    sum += ret[k] = square(a, x, level, k);
  return sum;
}

static double sure_of(const struct bounds *x, int k) {
  return causes[k].is_learnt ? 0 : x->bytes[k];
}

static double sure(const struct bounds *x) {
  double sum = 0;

  for (int k = 0; k < CAUSES; k++)
    sum += sure_of(x, k);
  return sum;
}

static double root(double squares, enum audit_level level) {
  static const double times[] = {[AUDIT_EXPECTED] = 1,
                                 [AUDIT_CHOSEN] = CHOSEN,
                                 [AUDIT_PUBLISHED] = PUBLISHED};

  return sqrt(squares) * times[level];
}

static struct error error_of(const struct audit *a, double error, double more) {
  double common = !RULE(common_apart)
                      ? 1
                      : clamp(rate_of(&a->common, AUDIT_EXPECTED, 1, 0), 0, 1);

  return (struct error){.common = more + error * sqrt(common),
                        .independent = error * sqrt(1 - common)};
}

static double uss_rate(const struct audit *a) {
  return fmin(rate_of(&a->uss, AUDIT_EXPECTED, USS_MOST, 0), USS_MOST);
}

void audit_errors(const struct audit *a, const struct bounds *x,
                  enum audit_level level, struct audit_errors *ret) {
  double freed = USS_MOST * x->bytes[CAUSE_FREED]; /* where two shared it */
  double squares, uss_squares, error, by;

  *ret = (struct audit_errors){.pss_parts = {0}};
  squares = squares_of(a, x, level, ret->pss_parts);
  error = root(squares, level);
  by = squares > 0 ? error / squares : 0;
  for (int k = 0; k < CAUSES; k++)
    ret->pss_parts[k] = ret->pss_parts[k] * by + sure_of(x, k);
  uss_squares =
      fmax(squares * uss_rate(a), freed * freed * causes[CAUSE_FREED].least);
  ret->pss = error_of(a, error, sure(x));
  ret->uss = error_of(a, root(uss_squares, level), 2 * sure(x));
}

/* --- learning --- */

static void learn(struct rate *r, uint64_t cycle_ns, double off, double bound) {
  if (bound <= 0)
    return;
  if (r->cycle_ns != cycle_ns) {
    r->cycle_ns = cycle_ns;
    if (r->bound > 0)
      r->high = fmax(r->high * HIGH_KEPT, r->off / r->bound);
    r->off *= KEPT;
    r->bound *= KEPT;
    r->known += (1 - r->known) * LEARNT;
  }
  r->off += off;
  r->bound += bound;
}

/* Each new error, times those before it in this cycle. */
static void learn_common(struct audit *a, double off) {
  learn(&a->common, a->cycle_ns, off * a->sum, fabs(off) * a->sizes);
  a->sum += off;
  a->sizes += fabs(off);
}

/* The expected share of one cause in a squared error. */
static double part_of(double own, double others) {
  return own > 0 ? own / (own + others) : 0;
}

/* Learns what an error says of one of its causes: nothing, of one that was not
 * to be expected. own and others: the squares that were to be expected of this
 * cause and of the rest. The square of this cause, now that the error is
 * known, is part² * off² + own * (1 - part). It weighs by its part: of a cause
 * with a small one, the error shows little. */
static void learn_part(struct rate *r, uint64_t cycle_ns, double off,
                       double own, double others, double bound) {
  double part = part_of(own, others);
  double mean = part * part * off * off + own * (1 - part);

  learn(r, cycle_ns, part * mean, part * bound);
}

void audit_learn(struct audit *a, uint64_t cycle_ns, const struct bounds *x,
                 const struct audit_lesson *l) {
  double off = excess(l->pss_off, sure(x));
  double noise = l->pss_noise * l->pss_noise, squares[CAUSES], all, part;

  if (a->cycle_ns != cycle_ns) {
    a->cycle_ns = cycle_ns;
    a->sum = a->sizes = 0;
  }
  all = squares_of(a, x, AUDIT_EXPECTED, squares);
  part = part_of(all, noise);
  if (x->bytes[CAUSE_KSM] > 0)
    return;
  learn_common(a, part * off);
  learn_part(&a->uss, cycle_ns, excess(l->uss_off, 2 * sure(x)),
             all * uss_rate(a), l->uss_noise * l->uss_noise,
             part * part * off * off + all * (1 - part));
  for (int k = 0; k < CAUSES; k++) {
    double own = squares[k], most = x->bytes[k];

    learn_part(&a->rates[k], cycle_ns, fmin(fabs(off), most), own,
               all - own + noise, most * most);
  }
}
