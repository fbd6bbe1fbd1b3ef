/*
 * The memory of a process as a sample of its pages shows it, and how far off
 * that is. A kind of memory costs what statm says is resident of it times the
 * mean price of the pages that were looked up; a page's price is the part of
 * it that the process pays.
 *
 * A sample is one of several measurements: the estimate of the process as it
 * would be now is another (sampled_fuse()). Each counts by what is known of its
 * error, so that samples of a process that does not change add up to a large
 * one, and one that changes is followed.
 */
#ifndef SMAPS_SAMPLED_H
#define SMAPS_SAMPLED_H

#include "proc/rollup.h"
#include <stdbool.h>

/* The error of an amount, in bytes. noise: a standard deviation, as the pages
 * that were drawn show it; rare: the same for pages that differ and are so rare
 * that none was drawn; lag: by so much samples have been above the estimates on
 * average of late: the estimates lag behind. */
struct sampled_deviation {
  double noise, rare, lag;
};

struct sampled_error {
  struct sampled_deviation pss_anon, pss_files, uss;
  /* An additional bound of the error, which averaging does not reduce: the
   * number of mappings of a page is unknown, or pages had no chance to be
   * drawn. */
  double pss_bound, uss_bound;
};

/* Bytes. files: files and shmem. */
struct sampled {
  double anon, files; /* resident */
  double pss_anon, pss_files, uss;
  double shmem_part; /* of pss_files */
  double swap;       /* VmSwap */
  struct sampled_error error;
};

/* The pages of a kind that were looked up, as sums over them. */
struct page_sums {
  double pages, exclusive, price, price_squared;
  /* The memory that they were drawn from has no exclusive pages. */
  bool are_shared;
  /* The number of processes that a page which is not exclusive belongs to,
   * where its price is not known: 2 or more. Else 0. */
  double sharers;
  /* The number of relatives, this process included, of which as many pages were
   * looked up, where that is more than one. A kind of page that was not seen in
   * any of them is rarer than one that was not seen in this process alone. */
  double alike;
};

/* Adds memory that pages were drawn from. Even if all drawn pages agree, others
 * may differ. The caller sets swap and shmem_part. */
void sampled_add_anon(struct sampled *s, const struct page_sums *pages,
                      double bytes);
void sampled_add_files(struct sampled *s, const struct page_sums *pages,
                       double bytes);
/* Adds memory all of which is known to be exclusive. */
void sampled_add_exclusive(struct sampled *s, double anon_bytes,
                           double files_bytes);

/* A part of the resident memory, from 0 to 1, had no chance to be drawn: it may
 * cost all that it is, or nothing, and be of either kind: the pages say how it
 * was priced. To be called when all has been added. */
void sampled_doubt_unseen(const struct page_sums *anon,
                          const struct page_sums *files, double part,
                          struct sampled *s);

/*
 * Corrects the estimate of the same process by the sample, which becomes the
 * mean of both; error: of the estimate. The sample has a weight of a quarter at
 * least, so that an estimate which is wrong is forgotten. False where the two
 * contradict each other: the sample is left as it was.
 */
bool sampled_fuse(struct sampled *s, const struct rollup *estimate,
                  const struct sampled_error *error);

/* Gets the fields that a sample shows. It does not show which memory is dirty:
 * anonymous memory and shmem count as dirty, files as clean. */
void sampled_rollup(const struct sampled *s, struct rollup *ret);

/* The standard deviation, of noise or rare pages. */
double sampled_spread(const struct sampled_deviation *d);

/* 99 of 100 samples are no farther off. */
double sampled_pss_error(const struct sampled_error *e);
/* The part of it that members of a set have in common: a cause that makes one
 * estimate lag behind does so for all. */
double sampled_pss_common(const struct sampled_error *e);
double sampled_uss_error(const struct sampled_error *e);

#endif
