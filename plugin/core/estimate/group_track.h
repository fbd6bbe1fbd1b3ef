/* The state of a group that lasts from cycle to cycle. struct group points to
 * it; only estimate/, sample/, schedule/ and measure/ look inside. */
#ifndef SMAPS_GROUP_TRACK_H
#define SMAPS_GROUP_TRACK_H

#include "estimate/sharing.h"
#include "report/growth.h"
#include "report/usage.h"

struct group_track {
  struct sharing sharing; /* of members, and of families by their founders */
  /* The sum of the expected errors, which goes down as members are chosen to be
   * read; and the error below which nothing has to be read, by the Pss of the
   * cycle before. */
  struct doubt_sum error;
  uint64_t tolerated_bytes;
  /* CPU time that samples for that error may still take in this cycle; below 0:
   * owed. */
  int64_t sampling_ns;
  /* Sums over the members with a reading; guesses are scaled from these. Only
   * in cycles with guesses. */
  struct usage measured;
  bool was_read; /* a member, in any cycle */
  /* Members that are sampled, in this cycle and in the one before. */
  uint32_t giants, giants_before;
  /* Of the members in this cycle, in ticks; see report/growth.h. */
  uint64_t oldest_start, newest_start;
  struct growth growth;
};

#endif
