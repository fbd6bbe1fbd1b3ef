/* SPDX-License-Identifier: MIT */
/*
 * Matches one process: applies the rules, in order, to its attributes and to
 * the claims that it inherits from its parent. match.h decides which processes
 * are matched, and when.
 */
#ifndef SMAPS_MATCH_ONE_H
#define SMAPS_MATCH_ONE_H

#include <locale.h>

#include "cgroup/cgroup_tree.h"
#include "match/group.h"
#include "process/diag.h"
#include "process/process.h"
#include <smaps/settings.h>

struct match_rules {
  const struct settings *settings;
  struct group_table *groups;
  struct cgroup_tree cgroups; /* of the processes that were matched */
  struct diag *diags;         /* indexed by kind */
  struct group **fixed;       /* by rule; NULL for a template, and Ignore */
  /* "C": names are bytes, in any locale of the daemon. The callers of
   * match_one() and match_would_take() set it. */
  locale_t locale;
  /* A bit of the hash of each name of which a group was made; see
   * membership.refused_names. match.c clears it. */
  uint64_t made_names;

  /* The current process and its new groups and claims, before they are compared
   * with the old ones. */
  struct attributes attributes;
  struct group **made_groups;
  struct claim *made_claims;
  struct group **made_perhaps;
  size_t n_groups, n_claims, n_perhaps;
  unsigned unknown; /* bit per attribute that rules use and that is refused */
  struct explanation why; /* its rule: NO_RULE if none takes it */
  bool is_out_of_memory;
};

/* Makes the groups with fixed names. Returns 0 or -ENOMEM; to be ended in any
 * case. */
int match_rules_init(struct match_rules *m, const struct settings *settings,
                     struct group_table *groups, struct diag *diags);
void match_rules_done(struct match_rules *m);

/* Other comes after the last rule. */
static inline const struct rule *match_rule_at(const struct match_rules *m,
                                               size_t i) {
  return i < m->settings->n_rules ? &m->settings->rules[i]
                                  : &m->settings->other;
}

/* Updates the groups and claims of a live process, which is not due any more.
 * Without memory it keeps them, stays due and becomes PROCESS_UNKNOWN. parent
 * is NULL for an orphan, which keeps what it inherited before. */
void match_one(struct match_rules *m, struct process *p,
               const struct process *parent);

/* Releases the groups and claims of a process that has ended, and its control
 * group. */
void match_forget(struct match_rules *m, struct process *p);

/* True if the rule certainly takes a process with these attributes. */
bool match_would_take(const struct rule *rule, const struct attributes *id,
                      uint32_t pid);

#endif
