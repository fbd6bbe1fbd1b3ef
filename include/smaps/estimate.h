/*
 * What a process uses now, from its last rollup and what statm says since.
 *
 * Anonymous memory that comes or goes after a reading is nearly always private,
 * and statm counts it exactly; so private growth and shrinkage are followed
 * without error. What statm cannot say is with whom memory is shared. How much
 * of the PSS may be wrong for that is the doubt.
 */
#ifndef SMAPS_ESTIMATE_H
#define SMAPS_ESTIMATE_H

#include <smaps/rollup.h>
#include <smaps/statm.h>

/* A rollup, and what the cheap files said at that time. Amounts are in kB as
 * the kernel prints them: half the size, and without loss up to 4 TiB. */
struct reading {
  uint64_t at_ns; /* 0: never */
  uint32_t minor_faults;
  uint32_t known; /* bit per rollup_field */
  uint32_t kb[ROLLUP_FIELDS];
  uint32_t resident_pages;
  uint32_t shared_pages;
  uint32_t vm_swap_kb;
  uint32_t relatives; /* processes of its family, itself included */
  uint32_t off_pages; /* between statm and the rollup; see precision.h */
  bool is_swap_used;  /* as meminfo had it */
};

/* What the cheap files say now. */
struct evidence {
  uint64_t now_ns;
  uint64_t page_size;
  struct statm_sample statm;
  uint32_t minor_faults; /* of stat; as at the reading where not asked for */
  uint64_t vm_swap_kb;   /* of status; likewise */
  uint32_t relatives;
  /* What share of them came or went since the reading, at most: with as many
   * as then they can be others. (A child can end while its parent is read.) */
  double relatives_moved;
  double relatives_doubt; /* as experience has it */
  /* The share of faults on memory shared by fork that really break the sharing,
   * as far as it was learnt, and how much of that is not sure. */
  double cow_breaks;
  double cow_doubt;
  /* What this process pays more since the reading for what relatives have
   * broken out of the memory that they shared. */
  uint64_t broken_by_relatives;
  /* What a page of shmem or of files costs by what it did at the reading; what
   * share of them has moved meanwhile, and how far off that makes us. */
  bool is_of_shmem; /* and not of files */
  double shared_cost;
  double shared_moved;
  double shared_doubt;
  bool is_swap_used; /* on this host, as meminfo has it */
  /* KSM has merged pages since the reading; or has taken some apart. */
  bool is_ksm_merged, is_ksm_split;
};

/* Fills a reading. False, and no reading, where an amount does not fit. */
bool reading_take(struct reading *r, const struct rollup *rollup,
                  const struct evidence *e);

/* The rollup that was read. */
void reading_get(const struct reading *r, struct rollup *ret);

/* Pages of files and shmem that are nobody else's, at the reading. */
uint64_t reading_private_file_bytes(const struct reading *r);

/* Memory shared by copy on write, by what it is short of in Pss: what minor
 * faults can break; and from where on it is worth to ask for them. */
#define COW_LEAST_BYTES (UINT64_C(1) << 20)
uint64_t rollup_cow_bytes(const struct rollup *rollup);
uint64_t reading_cow_bytes(const struct reading *r);

/*
 * The rollup that the process would show now. Exact where only private memory
 * has come or gone. uss <= Pss <= Rss and the sums of parts hold as the kernel
 * has them.
 */
void estimate_rollup(const struct reading *r, const struct evidence *e,
                     struct rollup *ret);

/* Of that, how much is taken to be broken out of sharing since the reading. */
uint64_t estimate_broken(const struct reading *r, const struct evidence *e);

/* What shmem, or else files, cost beyond those that nobody else maps; and what
 * doubt there would be for them without experience. In bytes. */
uint64_t estimate_shared_pss(const struct reading *r,
                             const struct rollup *estimate, bool is_of_shmem);
uint64_t estimate_shared_doubt(const struct reading *r,
                               const struct evidence *e);
/* What share of the relatives has come or gone, with those of now. */
double estimate_relatives_moved(const struct reading *r,
                                const struct evidence *e);
/* Likewise, for relatives that came or went. */
uint64_t estimate_relatives_doubt(const struct reading *r,
                                  const struct evidence *e);

/* By how many bytes the estimated Pss may be wrong. */
uint64_t estimate_doubt(const struct reading *r, const struct evidence *e);

#endif
