/*
 * Keeps the groups of all processes up to date: decides which processes are
 * matched, in which order, and within a time budget; and applies the rules, in
 * order, to the attributes of each and to the claims that it inherits from its
 * parent.
 */
#ifndef SMAPS_MATCH_H
#define SMAPS_MATCH_H

#include <locale.h>

#include "cgroup/cgroup_tree.h"
#include "match/group.h"
#include "process/diag.h"
#include "process/process.h"
#include <smaps/settings.h>

struct matcher {
  const struct settings *settings;
  struct group_table *groups;
  struct cgroup_tree cgroups; /* of the processes that were matched */
  struct diag *diags;         /* indexed by kind */
  uint64_t (*clock_ns)(void);
  struct group **fixed; /* by rule; NULL for a template, and Ignore */
  locale_t locale;      /* "C": names are bytes, in any locale of the daemon */
  bool is_out_of_memory;

  /* The current process and its new groups and claims, before they are compared
   * with the old ones. */
  struct attributes attributes;
  struct group **made_groups;
  struct claim *made_claims;
  struct group **made_perhaps;
  size_t n_groups, n_claims, n_perhaps;
  unsigned unknown; /* bit per attribute that rules use and that is refused */
  struct explanation why; /* its rule: NO_RULE if none takes it */

  /* The path up to an ancestor that is resolved. */
  struct process **chain;
  struct process **waiting; /* the processes to match last; behind chain */
  size_t cap_chain, n_waiting;

  /* State of the cycle. */
  uint64_t began_ns; /* time of the first match; 0 before */
  bool may_match_long, has_matched_waiting;
  /* The names of the groups that were made in this cycle or in the one before:
   * a bit of the hash of each. */
  uint64_t made_names;
};

/* Other comes after the last rule. */
static inline const struct rule *matcher_rule(const struct matcher *m,
                                              size_t i) {
  return i < m->settings->n_rules ? &m->settings->rules[i]
                                  : &m->settings->other;
}

/* Makes the groups with fixed names. Returns 0 or -ENOMEM. */
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

/* Releases the groups and claims of a process that has ended, and its control
 * group. */
void matcher_forget(struct matcher *m, struct process *p);

/* True if the rule certainly takes a process with these attributes. */
bool matcher_would_take(const struct rule *rule, const struct attributes *id,
                        uint32_t pid);

#endif
