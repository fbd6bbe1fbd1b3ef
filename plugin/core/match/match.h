/* SPDX-License-Identifier: MIT */
/*
 * Keeps the groups of all processes up to date: decides which processes are
 * matched (match_one.h), in which order, and within a time budget.
 *
 * The passes of a cycle:
 *
 *   pass      processes                    first of these    time
 *   refused   those whose name MaxGroups   refused longest   all
 *             has refused, while it would
 *             accept a new name
 *   ordinary  all; those with long values  lowest pid        half
 *             or deferred before only go
 *             to the queue
 *   waiting   the queue                    deferred longest  all
 *
 * Before a process each pass resolves its ancestors, because it inherits their
 * claims. The second half of the time is for the queue: a user who keeps
 * renaming processes defers others only until each of those was matched once.
 * Even without time one process is matched in the first or the last pass.
 */
#ifndef SMAPS_MATCH_H
#define SMAPS_MATCH_H

#include "match/match_one.h"

enum match_pass { PASS_REFUSED, PASS_ORDINARY, PASS_WAITING };

struct matcher {
  struct match_rules rules;
  uint64_t (*clock_ns)(void);

  /* The path up to an ancestor that is resolved. */
  struct process **chain;
  /* The queue, behind chain in the same array. The first pass sorts its
   * processes in it. */
  struct process **waiting;
  size_t cap_chain, n_waiting;

  /* State of the cycle. */
  uint64_t began_ns; /* time of the first match; 0 before */
  enum match_pass pass;
  bool has_matched_slow; /* in the first or the last pass */
};

/* Makes the groups with fixed names. Returns 0 or -ENOMEM; to be ended in any
 * case. */
int matcher_init(struct matcher *m, const struct settings *settings,
                 struct group_table *groups, struct diag *diags,
                 uint64_t (*clock_ns)(void));
void matcher_done(struct matcher *m);

/*
 * Updates the groups and claims of all live processes with is_match_due, of
 * those whose name MaxGroups had refused and would accept now, and of the
 * descendants of processes whose claims change: of a process that was matched
 * last, in the next cycle. A process that loses its parent keeps what it
 * inherited. A process for which memory runs out becomes PROCESS_UNKNOWN and is
 * tried again in the next cycle. Returns 0, or -ENOMEM before any process is
 * matched.
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

#endif
