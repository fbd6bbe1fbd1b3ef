/* Groups by name, and what their members use. */
#ifndef SMAPS_GROUP_H
#define SMAPS_GROUP_H

#include <smaps/metric.h>
#include <smaps/name.h>
#include <smaps/plan.h>
#include <smaps/policy.h>
#include <smaps/sharing.h>

struct group {
  char name[NAME_SIZE];
  /* Named in the configuration: stands, and reports zeros, without members.
   * Otherwise made by a template, and gone with its last member. */
  bool is_fixed;
  /* Who is in it is told by the executable, which can be refused. */
  bool needs_executable;
  const struct report *report; /* of the rule that made it */
  const struct policy *policy; /* likewise; set by the matcher */
  size_t rule;                 /* its index, likewise */
  struct usage usage;          /* of the cycle */
  /* Of the cycle before: what a doubt is held against. */
  uint64_t last_pss;
  struct plan_group plan;
  struct sharing sharing; /* of members that stand alone */
  /* Memberships, and claims on descendants, that point here. */
  size_t references;
};

struct group_table {
  struct group **groups; /* by name */
  size_t n, cap;
  size_t made_by_template;
  size_t max_templates; /* MaxGroups */
};

/* What group_table_take() answers where the table is full. */
#define GROUP_REFUSED 1

/*
 * Finds the group, or makes it. GROUP_REFUSED where it would be one more than
 * templates may make; -ENOMEM. Does not count a reference.
 */
int group_table_take(struct group_table *t, const char *name, bool is_fixed,
                     const struct report *report, struct group **ret);

/* Drops a reference, and with the last one a group that is not fixed. */
void group_table_release(struct group_table *t, struct group *g);

bool group_table_is_full(const struct group_table *t);

/* Sets all usages to nothing, for a new cycle. */
void group_table_reset(struct group_table *t);

void group_table_done(struct group_table *t);

#endif
