/* SPDX-License-Identifier: MIT */
#include "sample/sampled.h"

#include <math.h>

#include "base/arith.h"

/* An estimate weighs at most as much as three samples. So in the long run it
 * rests on seven of them: (2 - gain) / gain. */
#define GAIN_LEAST 0.25
/* The weight of one sample in the mean of the lag. */
#define LAG_RATE 0.25
/* Standard deviations that 99 of 100 samples do not exceed. */
#define PUBLISHED 2.6
#define APART 3.0
/* With n pages seen, NONE_SEEN / n of all may differ from these, with 99 %
 * certainty: the rule of three. */
#define NONE_SEEN 4.6
/* Each sample keeps this part of what the earlier ones have shown of rare
 * pages: about ten of them count. */
#define RARE_KEPT 0.9
/* A sample with so many times the error of the estimate has met new pages. */
#define NEWS 4

/* --- a sample --- */

struct part {
  double mean, deviation, rare; /* 0 to 1 */
};

/* The mean of a part of each page, such as its share, which is at most `most`.
 * Without any page the mean can be anything from 0 to `most`. */
static struct part part_of(double sum, double squares, double most,
                           const struct page_sums *s) {
  double n = s->found.pages;
  double mean, variance, rare;

  if (n < 1)
    return (struct part){.mean = most / 2, .deviation = most / 2};
  mean = sum / n;
  variance = fmax(squares / n - mean * mean, 0);
  rare = NONE_SEEN / PUBLISHED / n / sqrt(fmax(s->alike, 1)) *
         fmax(mean, most - mean);
  return (struct part){.mean = mean,
                       .deviation = sqrt(variance / n),
                       .rare = fmin(rare, most / 2)};
}

double sampled_spread(const struct sampled_deviation *d) {
  return fmax(d->noise, d->rare);
}

/* A page that two or more processes share costs at most half a page. */
static double most_share(const struct page_sums *s) {
  return s->are_shared ? 0.5 : 1;
}

static struct part share_of(const struct page_sums *s) {
  double shared = s->found.pages - s->found.exclusive;

  if (s->sharers < 2)
    return part_of(s->found.share, s->found.share_squared, most_share(s), s);
  return part_of(s->found.exclusive + shared / s->sharers,
                 s->found.exclusive + shared / s->sharers / s->sharers,
                 most_share(s), s);
}

static struct part own_part_of(const struct page_sums *s) {
  if (s->are_shared)
    return (struct part){.mean = 0};
  return part_of(s->found.exclusive, s->found.exclusive, 1, s);
}

static double share_bound(const struct page_sums *s) {
  double shared = s->found.pages - s->found.exclusive;

  if (s->sharers < 2 || s->found.pages < 1)
    return 0;
  return shared / s->found.pages * fmax(1 / s->sharers, 0.5 - 1 / s->sharers);
}

static void add_deviation(struct sampled_deviation *to, double bytes,
                          const struct page_sums *pages, const struct part *p) {
  to->noise = hypot(hypot(to->noise, bytes * p->deviation),
                    pages->bytes_error * p->mean);
  to->rare = hypot(to->rare, bytes * p->rare);
}

void sampled_add(struct sampled *s, enum page_kind kind,
                 const struct page_sums *pages, double bytes) {
  struct part share = share_of(pages), own = own_part_of(pages);

  s->resident[kind] += bytes;
  s->pss[kind] += bytes * share.mean;
  s->uss += bytes * own.mean;
  add_deviation(&s->error.pss[kind], bytes, pages, &share);
  add_deviation(&s->error.uss, bytes, pages, &own);
  s->error.pss_bound += bytes * share_bound(pages);
}

void sampled_add_exclusive(struct sampled *s, enum page_kind kind,
                           double bytes) {
  s->resident[kind] += bytes;
  s->pss[kind] += bytes;
  s->uss += bytes;
}

void sampled_bound_unseen(struct sampled *s, double part) {
  double bytes = part * (s->resident[PAGE_ANON] + s->resident[PAGE_FILE]);

  s->error.pss_bound += bytes;
  s->error.uss_bound += bytes;
}

/* --- a sample beside an estimate --- */

/* The weight of a sample beside the estimate, by the errors of both. A sample
 * that is more than APART deviations from the estimate replaces it: the process
 * has changed. */
static double gain_of(double apart, const struct sampled_deviation *error,
                      const struct sampled_deviation *its) {
  double ours = sampled_spread(error), theirs = sampled_spread(its);
  double sum = hypot(ours, theirs);

  if (fabs(apart) > APART * sum)
    return 1;
  return theirs > 0 ? fmax(pow(theirs / sum, 2), GAIN_LEAST) : GAIN_LEAST;
}

static double mix(double gain, double sample, double estimate) {
  return hypot(gain * sample, (1 - gain) * estimate);
}

/* The `rare` error of the mean. Pages that neither this sample nor the earlier
 * ones have met are rarer than one sample can show: the numbers of pages seen
 * add up, and the error is their inverse. */
static double rarer(double gain, double sample, double estimate) {
  double mean = mix(gain, sample, estimate);

  if (gain >= 1 || sample <= 0 || estimate <= 0)
    return mean;
  return fmin(mean, 1 / (1 / sample + RARE_KEPT / estimate));
}

/* Makes the sample in *value, with its *error, the mean of both. its: the error
 * of the estimate. */
static void fuse(double *value, struct sampled_deviation *error,
                 double estimate, const struct sampled_deviation *its) {
  double apart = *value - estimate, gain = gain_of(apart, error, its);
  /* A sample that is far noisier than the estimate has met pages of a kind that
   * the earlier ones had ruled out: they prove nothing about rare pages then,
   * and the lag begins anew. */
  bool is_news = error->noise > NEWS * sampled_spread(its);

  *value = estimate + gain * apart;
  error->noise = mix(gain, error->noise, its->noise);
  if (!is_news)
    error->rare = rarer(gain, error->rare, its->rare);
  error->lag = its->lag + (apart - its->lag) * (is_news ? 1 : LAG_RATE);
}

void sampled_fuse(struct sampled *s, const struct rollup *estimate,
                  const struct sampled_error *error) {
  uint64_t files =
      estimate->bytes[ROLLUP_PSS_FILE] + estimate->bytes[ROLLUP_PSS_SHMEM];

  fuse(&s->pss[PAGE_ANON], &s->error.pss[PAGE_ANON],
       (double)estimate->bytes[ROLLUP_PSS_ANON], &error->pss[PAGE_ANON]);
  fuse(&s->pss[PAGE_FILE], &s->error.pss[PAGE_FILE], (double)files,
       &error->pss[PAGE_FILE]);
  fuse(&s->uss, &s->error.uss, (double)rollup_uss(estimate), &error->uss);
}

/* --- as a rollup --- */

/* A baseline keeps KiB: without fractions sums still equal their parts. */
static uint64_t whole_kib(double bytes) {
  return amount_from(bytes) / 1024 * 1024;
}

/* The bytes of shmem among the bytes, in whole KiB. */
static uint64_t shmem_of(const struct sampled *s, uint64_t bytes) {
  return whole_kib((double)bytes * s->shmem_part);
}

#define KNOWN                                                                  \
  (1U << ROLLUP_RSS | 1U << ROLLUP_PSS | 1U << ROLLUP_PSS_ANON |               \
   1U << ROLLUP_PSS_FILE | 1U << ROLLUP_PSS_SHMEM |                            \
   1U << ROLLUP_SHARED_CLEAN | 1U << ROLLUP_SHARED_DIRTY |                     \
   1U << ROLLUP_PRIVATE_CLEAN | 1U << ROLLUP_PRIVATE_DIRTY |                   \
   1U << ROLLUP_ANONYMOUS | 1U << ROLLUP_SWAP | 1U << ROLLUP_SWAP_PSS)

void sampled_rollup(const struct sampled *s, struct rollup *ret) {
  uint64_t anon = whole_kib(s->resident[PAGE_ANON]),
           files = whole_kib(s->resident[PAGE_FILE]);
  uint64_t pss_anon = min(whole_kib(s->pss[PAGE_ANON]), anon);
  uint64_t pss_files = min(whole_kib(s->pss[PAGE_FILE]), files);
  uint64_t shmem = shmem_of(s, pss_files);
  uint64_t uss = min(whole_kib(s->uss), pss_anon + pss_files);
  uint64_t own = min(uss, pss_anon), own_files = uss - own;
  uint64_t own_shmem = shmem_of(s, own_files);
  uint64_t shared_shmem = shmem_of(s, files - own_files);

  *ret = (struct rollup){.known = KNOWN};
  ret->bytes[ROLLUP_RSS] = anon + files;
  ret->bytes[ROLLUP_ANONYMOUS] = anon;
  ret->bytes[ROLLUP_PSS] = pss_anon + pss_files;
  ret->bytes[ROLLUP_PSS_ANON] = pss_anon;
  ret->bytes[ROLLUP_PSS_SHMEM] = shmem;
  ret->bytes[ROLLUP_PSS_FILE] = pss_files - shmem;
  ret->bytes[ROLLUP_PRIVATE_DIRTY] = own + own_shmem;
  ret->bytes[ROLLUP_PRIVATE_CLEAN] = own_files - own_shmem;
  ret->bytes[ROLLUP_SHARED_DIRTY] = anon - own + shared_shmem;
  ret->bytes[ROLLUP_SHARED_CLEAN] = files - own_files - shared_shmem;
  ret->bytes[ROLLUP_SWAP] = whole_kib(s->swap);
  ret->bytes[ROLLUP_SWAP_PSS] =
      s->resident[PAGE_ANON] > 0
          ? min(whole_kib(s->swap * s->pss[PAGE_ANON] / s->resident[PAGE_ANON]),
                whole_kib(s->swap))
          : whole_kib(s->swap);
}

double sampled_pss_common(const struct sampled_error *e) {
  return fabs(e->pss[PAGE_ANON].lag + e->pss[PAGE_FILE].lag) + e->pss_bound;
}

double sampled_pss_error(const struct sampled_error *e) {
  return PUBLISHED * hypot(sampled_spread(&e->pss[PAGE_ANON]),
                           sampled_spread(&e->pss[PAGE_FILE])) +
         sampled_pss_common(e);
}

double sampled_uss_common(const struct sampled_error *e) {
  return e->uss_bound;
}

double sampled_uss_error(const struct sampled_error *e) {
  return PUBLISHED * sampled_spread(&e->uss) + fabs(e->uss.lag) + e->uss_bound;
}
