/*
 * Measures a process that is too large to be walked (MaxLockHold) by some of
 * its pages: read/page_sample.h looks them up, sampled.h makes amounts of them,
 * and these become the baseline of its estimates. The time of a sample depends
 * on the number of pages, and hardly on the size of the process.
 */
#ifndef SMAPS_SAMPLING_H
#define SMAPS_SAMPLING_H

#include "estimate/sampled.h"

struct group_track;
struct measurer;
struct page_layout;
struct process;
struct read_job;

/* Kept of such a process, until it execs or is walked. */
struct sampling {
  struct sampled_error error; /* of the baseline, if that is a sample */
  struct page_layout *layout; /* of its mappings; NULL: to be read again */
  uint64_t layout_at_ns;
  uint64_t layout_ns;         /* CPU time to read it */
  uint64_t layout_size_pages; /* statm's size at that time */
  uint64_t layout_resident_pages;
  uint32_t pages;          /* of the last sample */
  uint32_t denied_until_s; /* pagemap is not tried again before */
  bool has_mapcounts;      /* the last sample knew the prices of pages */
  bool wants_many;         /* it contradicted the estimate */
};

/* The price of samples; zero at first. */
struct sampling_cost {
  double page_ns;
};

/*
 * Gives a group the time that its samples may take in an interval: of one CPU
 * 0.12 % for each process that is sampled, and 0.4 % for all of them. However
 * small the error is that is tolerated, samples cost no more; the error that
 * they leave is published. What is not used is not saved.
 */
void sampling_allow(struct group_track *g, uint64_t interval_ns);

void sampling_free(struct sampling *s);

/* Whether the process can be sampled: not where the kernel refuses pagemap, or
 * memory has run out. */
bool sampling_can(const struct measurer *m, struct process *p);

/* The predicted CPU time of its next sample. */
uint64_t sampling_cost_ns(const struct measurer *m, const struct process *p);

struct read_job sampling_job(const struct measurer *m, struct process *p);

/* Takes the result of one that succeeded. */
void sampling_take(struct measurer *m, struct process *p,
                   const struct read_job *job);
/* Reads the mappings again for the next sample. To be called where a sample has
 * hung: the reader that was given up may still work on the layout. */
void sampling_forget_layout(struct process *p);
/* The kernel refuses pagemap, or has none, or there are too many mappings: it
 * is not tried again for an hour. */
static inline bool sampling_is_refused(const struct sampling *s) {
  return s && s->denied_until_s;
}
void sampling_refuse(const struct measurer *m, struct process *p);

#endif
