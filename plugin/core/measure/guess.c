#include "measure/guess.h"

#include <math.h>

#include "estimate/estimate.h"
#include "proc/arith.h"
#include "report/host.h"

void guess_begin(struct guess_limit *l, const struct meminfo_sample *meminfo) {
  *l = (struct guess_limit){.is_known = false};
  if (!meminfo || !meminfo->anon_pages_bytes || !meminfo->mapped_bytes)
    return;
  l->is_known = true;
  l->host_anon = (double)meminfo->anon_pages_bytes;
  l->host_mapped = (double)meminfo->mapped_bytes;
}

static double anon_of(const struct rollup *r) {
  return (double)r->bytes[ROLLUP_PSS_ANON];
}

static double mapped_of(const struct rollup *r) {
  return fmax((double)r->bytes[ROLLUP_PSS] - anon_of(r), 0);
}

void guess_measured(struct guess_limit *l, const struct rollup *r,
                    struct doubt pss_error) {
  l->is_known = l->is_known && rollup_has(r, ROLLUP_PSS_ANON);
  l->measured_anon += anon_of(r);
  l->measured_mapped += mapped_of(r);
  doubt_add(&l->measured_doubt, pss_error);
}

void guess_made(struct guess_limit *l, const struct rollup *guess) {
  l->guessed_anon += anon_of(guess);
  l->guessed_mapped += mapped_of(guess);
}

static double left(double host, double measured) {
  return fmax(host - measured, 0);
}

static double factor(double guessed, double left) {
  return guessed > left ? left / guessed : 1;
}

static void scale(struct rollup *r, enum rollup_field f, double by) {
  r->bytes[f] = amount_from((double)r->bytes[f] * by);
}

void guess_limit(const struct guess_limit *l, struct rollup *guess) {
  double anon = factor(l->guessed_anon, left(l->host_anon, l->measured_anon));
  double mapped =
      factor(l->guessed_mapped, left(l->host_mapped, l->measured_mapped));
  double pss = anon_of(guess) * anon + mapped_of(guess) * mapped;

  if (!l->is_known || (anon >= 1 && mapped >= 1))
    return;
  guess->bytes[ROLLUP_PSS] = amount_from(pss);
  scale(guess, ROLLUP_PSS_ANON, anon);
  scale(guess, ROLLUP_PRIVATE_DIRTY, anon);
  scale(guess, ROLLUP_PRIVATE_CLEAN, mapped);
  estimate_settle(guess);
}

double guess_beyond(const struct guess_limit *l, const struct doubt_sum *own) {
  double host = l->host_anon + l->host_mapped;
  struct doubt_sum others = {
      .common = fmax(l->measured_doubt.common - own->common, 0),
      .squares = fmax(l->measured_doubt.squares - own->squares, 0)};

  if (!l->is_known)
    return (double)INFINITY;
  return left(l->host_anon, l->measured_anon) +
         left(l->host_mapped, l->measured_mapped) +
         (double)doubt_of_sum(&others) + host * HOST_MOVES;
}
