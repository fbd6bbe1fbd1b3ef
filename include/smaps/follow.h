/*
 * Follows a process from one reading to the next: gathers what there is to know
 * of it without a reading, and learns from each reading how that was.
 */
#ifndef SMAPS_FOLLOW_H
#define SMAPS_FOLLOW_H

#include <smaps/precision.h>
#include <smaps/process.h>
#include <smaps/reader.h>

/* What holds for all processes, in this cycle. */
struct circumstances {
  struct procfs *procfs;
  uint64_t now_ns;
  uint64_t page_size;
  struct precision precision; /* of statm, on this kernel */
  /* Bit per rollup_field that this kernel has, as far as was seen. */
  uint32_t kernel_fields;
  bool is_swap_used;
  uint64_t ksm_merged_ns;  /* it merged pages last; 0: never */
  uint64_t ksm_changed_ns; /* it merged some or took some apart, likewise */
};

/* Counts what it shares in its set (sharing.h): for all members, also those
 * that cannot be looked at now, before any of what follows. */
void follow_count(const struct circumstances *c, struct process *p);

/* Takes in how its set has changed, once in a cycle, after all are counted. */
void follow_set(struct process *p);

/* Takes in what the cheap files say, if there is a reading to compare with.
 * Its faults, where they matter, have been read. */
void follow_look(const struct circumstances *c, struct process *p);

/* By how many bytes its Pss may be wrong without a reading. */
uint64_t follow_doubt(const struct circumstances *c, const struct process *p);

/* What is published as the error of its Pss, in bytes: it is made from the
 * doubt (p->doubt), from the worst that was seen lately, and from what statm
 * itself can be off by, which no reading mends. There must be a reading. */
uint64_t follow_error(const struct circumstances *c, const struct process *p);

/* What it uses; there must be a reading. */
void follow_estimate(const struct circumstances *c, const struct process *p,
                     struct rollup *ret);

/* Compares a new reading with what was thought. */
void follow_learn(const struct circumstances *c, const struct process *p,
                  const struct rollup *rollup);

/* Takes the reading, to follow the process from there. */
void follow_from(const struct circumstances *c, struct process *p,
                 const struct rollup_reading *read);

/* Takes in what the readings of others have shown of the memory that they
 * share: when all of the cycle are made, for a process that was not read. */
void follow_others(struct process *p);

#endif
