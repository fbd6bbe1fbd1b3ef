/* SPDX-License-Identifier: MIT */
/*
 * Measures a process that is too large to be walked (MaxLockHold) by some of
 * its pages: sample/page_sample.h looks them up, sampled.h makes amounts of
 * them, and these become the baseline of its estimates. The time of a sample
 * depends on the number of pages, and hardly on the size of the process.
 */
#ifndef SMAPS_SAMPLING_H
#define SMAPS_SAMPLING_H

#include "process/diag.h"
#include "read/reader.h"
#include "sample/sampled.h"
#include "schedule/read_time.h"

struct group_track;

struct sampler {
  const struct cycle *cycle;
  struct diag *diags;
  double page_ns; /* CPU time of a page; 0 before the first sample */
};

/*
 * Gives a group the time that its samples may take in an interval: of one CPU
 * 0.12 % for each process that is sampled, and 0.4 % for all of them. However
 * small the error is that is tolerated, samples cost no more; the error that
 * they leave is published. What is not used is not saved.
 */
void sampling_allow(struct group_track *g, uint64_t interval_ns);

/* Makes the state of a process that is to be sampled, which the functions below
 * need, unless it has one. False if it cannot be sampled: the kernel refuses
 * pagemap, or memory has run out. */
bool sampling_prepare(const struct sampler *s, struct process *p);

/* The predicted CPU time of its next sample. */
uint64_t sampling_time_ns(const struct sampler *s, const struct process *p);

struct read_job sampling_job(const struct sampler *s, struct process *p);

/* Takes in the result of one that succeeded. */
void sampling_take(struct sampler *s, struct process *p,
                   const struct read_job *job);
/* The kernel refuses pagemap, or has none, or there are too many mappings: it
 * is not tried again for an hour. */
void sampling_refuse(const struct sampler *s, struct process *p);

#endif
