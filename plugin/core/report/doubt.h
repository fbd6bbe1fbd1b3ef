/*
 * The possible error of a sum. Common errors of members have one sign and add
 * up. Independent errors do not: some members are too high and others too low,
 * so the error of the sum is the root of the sum of their squares.
 */
#ifndef SMAPS_DOUBT_H
#define SMAPS_DOUBT_H

#include <stdint.h>

/* The causes of an error of Pss. */
enum cause {
  CAUSE_FILES,     /* files and shmem came or went, or others mapped them */
  CAUSE_RELATIVES, /* processes that share memory after a fork came or went */
  CAUSE_COPIES,    /* faults have copied such memory, or it was unmapped */
  CAUSE_FREED,     /* memory that was given back may have been such */
  CAUSE_FORK,      /* it was forked, and not read since */
  CAUSE_LENT,      /* it shares memory with children that it has forked */
  CAUSE_SWAP,      /* memory that went to swap or came back may be shared */
  CAUSE_TIME,      /* others map or unmap the memory, and nothing shows it */
  CAUSE_KSM,       /* the kernel merged or separated pages (KSM) */
  CAUSE_READING,   /* it changed while it was read, or showed unknown sharers */
  CAUSE_STATM,     /* the counters of this kernel are not exact */
  CAUSES,          /* the causes above are of estimates: see estimate.h */
  CAUSE_SAMPLE = CAUSES, /* only some of its pages were read */
  CAUSE_GUESS,           /* it was never read */
  CAUSE_ENDED,           /* members ended in this cycle */
  CAUSE_UNIDENTIFIED,    /* processes may be members */
  ALL_CAUSES
};

/* The name in documents. */
const char *cause_name(enum cause cause);

/* The error of one process, in bytes. */
struct doubt {
  double common, independent;
};

struct doubt_sum {
  double common, squares;
};

/* The error of one process by itself. */
static inline double doubt_bytes(struct doubt d) {
  return d.common + d.independent;
}

/* At most as far as a value can be off that is between 0 and the most. */
struct doubt doubt_limit(struct doubt d, uint64_t value, uint64_t most);

void doubt_add(struct doubt_sum *sum, struct doubt d);

/* Adds a doubt to the sums by cause, in the proportion of the parts. */
void doubt_divide(struct doubt_sum sums[ALL_CAUSES], struct doubt d,
                  const double parts[ALL_CAUSES]);

/* Takes away a doubt that was added. */
void doubt_remove(struct doubt_sum *sum, struct doubt d);

uint64_t doubt_of_sum(const struct doubt_sum *sum);

#endif
