/* A member of a group, as the measurer sees it. */
#ifndef SMAPS_MEMBER_H
#define SMAPS_MEMBER_H

#include "config/policy.h"
#include "estimate/track.h"
#include "process/process.h"
#include <smaps/status.h>

/* Whether its memory is in the sums of its groups by itself: a process whose
 * files cannot be read now has not left. */
bool member_is_counted(const struct process *p);

/* Whether its memory can be measured in this cycle. */
bool member_is_measured(const struct process *p);

/* The strictest of its groups, whose MaxLockHold is longer where the kernel has
 * refused to let it be sampled. */
struct policy member_policy(const struct process *p);

/* Reads status, and takes its page tables; false where it cannot be read. */
bool member_read_status(struct procfs *procfs, const struct process *p,
                        struct status_sample *ret);

/* The same for VmSwap alone. */
bool member_read_swap_kb(struct procfs *procfs, const struct process *p,
                         uint32_t *ret);

#endif
