/* Which groups a process is in, by the rules, and by what its parent is in. */
#ifndef SMAPS_MATCH_H
#define SMAPS_MATCH_H

#include <locale.h>

#include <smaps/process.h>
#include <smaps/settings.h>
#include <smaps/trouble.h>

struct matcher {
  const struct settings *settings;
  struct group_table *groups;
  struct trouble *troubles; /* by kind */
  uint64_t (*clock_ns)(void);
  bool take_children;
  bool explains;       /* snapshots are made */
  unsigned attributes; /* bit per attribute that rules look at */
  locale_t locale;     /* "C": names are bytes, whatever the daemon speaks */
  bool is_out_of_memory;

  /* The process at hand, and what it comes to, before that is compared with
   * before. */
  struct identity identity;
  struct group **made_groups;
  struct claim *made_claims;
  size_t n_groups, n_claims;
  uint16_t rule; /* that takes it, or NO_RULE */
  bool is_inherited;
  uint16_t also[EXPLAIN_MAX];
  uint8_t n_also;

  /* The way up to an ancestor that is resolved already. */
  struct process **chain;
  struct process **waiting; /* those that are matched behind the others */
  size_t cap_chain, n_waiting;

  /* Of the cycle. */
  uint64_t began_ns; /* with the first match; 0 before */
  bool may_match_long, has_matched_waiting;
  uint64_t made_before; /* groups->made when it was last looked */
};

/* Makes the groups with fixed names. -ENOMEM. */
int matcher_init(struct matcher *m, const struct settings *settings,
                 struct group_table *groups, struct trouble *troubles,
                 uint64_t (*clock_ns)(void));
void matcher_done(struct matcher *m);

/*
 * Brings the groups and claims of all processes that are alive up to date:
 * of those whose is_match_due is set, of those that MaxGroups had refused and
 * would not now, and of the descendants of whoever's claims change. A process
 * that loses its parent keeps what it had by it. One for which memory runs out
 * becomes PROCESS_UNKNOWN and is tried again in the next cycle; -ENOMEM where
 * there is none to begin with.
 *
 * An expression takes a time that goes with the square of the length, and
 * strangers choose what it is held against. So this takes MATCH_BUDGET_NS and
 * no more than one process beyond. Those with a value of more than ORDINARY_MAX
 * bytes come behind all others, whoever has waited longest first, and one of
 * them at least in each cycle. Who is put off becomes PROCESS_UNKNOWN, in the
 * groups that it had.
 */
#define MATCH_BUDGET_NS (UINT64_C(250) * 1000000)
#define ORDINARY_MAX 512
int matcher_run(struct matcher *m, struct process_table *t);

/* Gives back the groups and claims of a process that is no more. */
void matcher_forget(struct matcher *m, struct process *p);

#endif
