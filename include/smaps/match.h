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
  bool take_children;
  locale_t locale; /* "C": names are bytes, whatever the daemon speaks */
  bool is_out_of_memory;

  /* The process at hand, and what it comes to, before that is compared with
   * before. */
  struct identity identity;
  struct group **made_groups;
  struct claim *made_claims;
  size_t n_groups, n_claims;
  /* The way up to an ancestor that is resolved already. */
  struct process **chain;
  size_t cap_chain;
};

/* Makes the groups with fixed names. -ENOMEM. */
int matcher_init(struct matcher *m, const struct settings *settings,
                 struct group_table *groups, struct trouble *troubles);
void matcher_done(struct matcher *m);

/*
 * Brings the groups and claims of all processes that are alive up to date:
 * of those whose is_match_due is set, of those that MaxGroups had refused, if
 * there is room now, and of the descendants of whoever's claims change. A
 * process that loses its parent keeps what it had by it. One for which memory
 * runs out becomes PROCESS_UNKNOWN and is tried again in the next cycle;
 * -ENOMEM where there is none to begin with.
 */
int matcher_run(struct matcher *m, struct process_table *t);

/* Why a process is in the groups in which it is. */
#define NO_RULE SIZE_MAX
#define EXPLAIN_MAX 32
struct explanation {
  size_t rule;       /* the index of that which took it; n_rules for Other */
  bool is_inherited; /* as a descendant */
  size_t also[EXPLAIN_MAX]; /* those that would have, by its own names */
  size_t n_also;
};
void matcher_explain(const struct matcher *m, const struct process *p,
                     struct explanation *ret);

/* Gives back the groups and claims of a process that is no more. */
void matcher_forget(struct matcher *m, struct process *p);

#endif
