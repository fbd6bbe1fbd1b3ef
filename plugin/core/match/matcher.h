/* The state of matching, which match.c and membership.c share. */
#ifndef SMAPS_MATCHER_H
#define SMAPS_MATCHER_H

#include <locale.h>

#include "cgroup/cgroup_tree.h"
#include "diag.h"
#include "match/group.h"
#include "process/process.h"
#include <smaps/settings.h>

struct matcher {
  const struct settings *settings;
  struct group_table *groups;
  struct cgroup_tree cgroups; /* of the processes that were matched */
  struct diag *diags;         /* indexed by kind */
  uint64_t (*clock_ns)(void);
  bool has_children_rules;
  bool explains;              /* snapshots need explanations */
  unsigned wanted_attributes; /* bit per attribute that rules use */
  struct group **fixed;       /* by rule; NULL for a template, and Ignore */
  locale_t locale; /* "C": names are bytes, in any locale of the daemon */
  bool is_out_of_memory;

  /* The current process and its new groups and claims, before they are compared
   * with the old ones. */
  struct attributes attributes;
  struct group **made_groups;
  struct claim *made_claims;
  struct group **made_perhaps;
  size_t n_groups, n_claims, n_perhaps;
  unsigned unknown; /* bit per attribute that rules use and that is refused */
  uint16_t rule;    /* the rule that takes it, or NO_RULE */
  bool is_inherited;
  uint16_t also[EXPLAIN_MAX];
  uint8_t n_also;

  /* The path up to an ancestor that is resolved. */
  struct process **chain;
  struct process **waiting; /* the processes to match last; behind chain */
  size_t cap_chain, n_waiting;

  /* State of the cycle. */
  uint64_t began_ns; /* time of the first match; 0 before */
  bool may_match_long, has_matched_waiting;
  /* The groups made since the last pass: a bit for the hash of each name. */
  uint64_t made_names;
};

#endif
