/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process by a sample of its pages, and the error of that. The
 * Pss of a kind of memory is its resident size in statm times the mean share of
 * the pages that were looked up; the share of a page is the part of it that the
 * process pays.
 *
 * The estimate of the process is another measurement, and sampled_fuse() makes
 * a mean of both, weighted by their errors. So samples of a process that does
 * not change add up to a large one, and changes are followed.
 */
#ifndef SMAPS_SAMPLED_H
#define SMAPS_SAMPLED_H

#include "proc/rollup.h"
#include "process/back_off.h"

/* The kinds that statm counts: PAGE_FILE is files and shmem. */
enum page_kind { PAGE_ANON, PAGE_FILE, PAGE_KINDS };

/* The error of an amount, in bytes. noise: a standard deviation, by the drawn
 * pages; rare: the same for pages that differ and are so rare that none was
 * drawn; lag: the mean by which recent samples were above the estimates. */
struct sampled_deviation {
  double noise, rare, lag;
};

struct sampled_error {
  struct sampled_deviation pss[PAGE_KINDS], uss;
  /* An additional bound of the error, which averaging does not reduce: the
   * number of mappings of a page is unknown, or pages had no chance to be
   * drawn. */
  double pss_bound, uss_bound;
};

/* Bytes. */
struct sampled {
  double resident[PAGE_KINDS], pss[PAGE_KINDS], uss;
  double shmem_part; /* of the Pss of files */
  double swap;       /* VmSwap */
  struct sampled_error error;
};

/*
 * Pages of a kind that were found present. The share of a page is the part of
 * it that the process pays: 1 / its number of mappings. A page may have been
 * found twice.
 *
 * Pages that are in no process's resident size are not found: the zero page,
 * memory of devices, hugetlbfs.
 */
struct page_tally {
  uint32_t pages;
  uint32_t exclusive;          /* no other process maps them */
  double share, share_squared; /* sums */
  uint32_t unsure;             /* of the pages, see page_lookup.h */
};

/* The pages of a kind of memory that were looked up. */
struct page_sums {
  struct page_tally found;
  double bytes_error; /* of the amount that they were drawn from */
  /* The memory that they were drawn from has no exclusive pages. */
  bool are_shared;
  /* If shares are unknown: the number of processes that share a page which is
   * not exclusive, 2 or more. Else 0. */
  double sharers;
  /* The number of relatives, including this process, of which as many pages
   * were looked up. Pages that were drawn from none of them are rarer than
   * pages that were not drawn from one process. */
  double alike;
};

/* Adds memory that pages were drawn from. Even if all drawn pages agree, others
 * may differ. The caller sets swap and shmem_part. */
void sampled_add(struct sampled *s, enum page_kind kind,
                 const struct page_sums *pages, double bytes);
/* Adds memory all of which is known to be exclusive. */
void sampled_add_exclusive(struct sampled *s, enum page_kind kind,
                           double bytes);

/* Adds the error of the part of the resident memory, from 0 to 1, that could
 * not be drawn: all of it may be private, or free of cost. To be called when
 * all memory was added. */
void sampled_bound_unseen(struct sampled *s, double part);

/*
 * Makes the sample the weighted mean of itself and the estimate of the same
 * process; error: of the estimate. The sample weighs at least a quarter, so
 * wrong estimates are forgotten. An amount that is too far from the estimate
 * for chance stays as it was.
 */
void sampled_fuse(struct sampled *s, const struct rollup *estimate,
                  const struct sampled_error *error);

/* Gets the fields that a sample shows. It does not show which memory is dirty:
 * anonymous memory and shmem count as dirty, files as clean. */
void sampled_rollup(const struct sampled *s, struct rollup *ret);

/* The standard deviation: the larger one of noise and rare. */
double sampled_spread(const struct sampled_deviation *d);

/* The error that 99 of 100 samples do not exceed. */
double sampled_pss_error(const struct sampled_error *e);
/* The common part of the error of members of a set: the lag, which has the same
 * cause for all. */
double sampled_pss_common(const struct sampled_error *e);
double sampled_uss_error(const struct sampled_error *e);
/* That of USS: its bound, which has one direction. */
double sampled_uss_common(const struct sampled_error *e);

struct page_layout;

/* The state of a process that is sampled. It is freed when the process is
 * walked, or runs another program. */
struct sampling {
  struct sampled_error error; /* of the baseline, if that is a sample */
  struct page_layout *layout; /* of its mappings; NULL: to be read again */
  uint64_t layout_at_ns;
  uint64_t layout_ns;         /* CPU time to read it */
  uint64_t layout_size_pages; /* statm's size at that time */
  uint64_t layout_resident_pages;
  uint32_t pages;          /* of the last sample */
  struct back_off refused; /* the kernel refuses pagemap, or has none, or there
                            * are too many mappings */
};

/* True from the first refusal to the next sample that succeeds. */
static inline bool sampling_is_refused(const struct sampling *s) {
  return s && s->refused.failures > 0;
}

#endif
