/*
 * The known PSS of a group in the last hour, for the change in a notification.
 * A sample is kept every ten minutes.
 *
 * The change is the difference of two states, whatever lies between them: steps
 * and peaks count. Growth (report/growth.h) is only a rise that goes on.
 */
#ifndef SMAPS_CHANGE_H
#define SMAPS_CHANGE_H

#include "match/group.h"

/* The oldest sample is between 60 and 70 minutes old. */
#define PSS_HISTORY_SAMPLES 7
#define PSS_HISTORY_STEP_NS (600 * NS_PER_S)

/* Belongs to a group; see group.h. */
struct pss_history {
  size_t n;
  struct pss_sample {
    uint64_t time_ns;
    uint64_t pss_bytes;
  } samples[PSS_HISTORY_SAMPLES]; /* the oldest first */
};

struct pss_change {
  int64_t bytes;
  /* The age of the sample that it is counted from, a second at least; 0:
   * unknown. */
  uint64_t age_ns;
};

/*
 * Notes the PSS of each group, if it is due and rests on a reading of every
 * member: a guess that a reading corrects is not a change. Without memory a
 * group has no change.
 */
void change_note(const struct group_table *groups, uint32_t kernel_fields,
                 uint64_t now_ns);

/* Counts the change from the oldest sample. */
struct pss_change change_get(const struct group *g, uint64_t pss_bytes,
                             uint64_t now_ns);

/* The PSS of a group. False if it is unknown. */
bool change_pss(const struct usage *u, uint32_t kernel_fields,
                uint64_t *ret_bytes);

#endif
