/* Keeps the groups of all processes up to date: decides which processes are
 * matched, in which order, and within a time budget. membership.h matches each
 * of them. */
#ifndef SMAPS_MATCH_H
#define SMAPS_MATCH_H

#include "match/matcher.h"

/* Makes the groups with fixed names. Returns 0 or -ENOMEM. */
int matcher_init(struct matcher *m, const struct settings *settings,
                 struct group_table *groups, struct diag *diags,
                 uint64_t (*clock_ns)(void));
void matcher_done(struct matcher *m);

/*
 * Updates the groups and claims of all live processes with is_match_due, of
 * those whose name MaxGroups had refused and would accept now, and of the
 * descendants of processes whose claims change. A process that loses its parent
 * keeps what it inherited. A process for which memory runs out becomes
 * PROCESS_UNKNOWN and is tried again in the next cycle. Returns 0, or -ENOMEM
 * before any process is matched.
 *
 * The time of a regular expression grows with the square of the length of the
 * text, and untrusted users choose the texts. So a cycle takes at most
 * MATCH_BUDGET_NS, plus one process. Processes with a value longer than
 * ORDINARY_MAX bytes come last, those deferred most often first, and at least
 * one of them in each cycle. A deferred process becomes PROCESS_UNKNOWN and
 * keeps its groups.
 */
#define MATCH_BUDGET_NS (UINT64_C(250) * 1000000)
#define ORDINARY_MAX 512
int matcher_run(struct matcher *m, struct process_table *t);

/* Releases the groups and claims of a process that has ended. */
void matcher_forget(struct matcher *m, struct process *p);

#endif
