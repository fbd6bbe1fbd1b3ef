/* SPDX-License-Identifier: MIT */
/* Groups by name, and the memory usage of their members. */
#ifndef SMAPS_GROUP_H
#define SMAPS_GROUP_H

#include "cgroup/memory_cgroup.h"
#include "config/rule.h"

struct cgroup_node;

struct group {
  char name[GROUP_NAME_SIZE];
  /* Named in the configuration: exists, and reports zeros, without members.
   * Other groups are made by a template, are reported while they have members,
   * and are removed an hour after the last one and after their alarm. */
  bool is_fixed;
  const struct report *report; /* of the rule that made it */
  const struct policy *policy; /* of the same rule */
  size_t rule;                 /* index of that rule */
  unsigned rule_attributes;    /* bit per attribute that the rule uses */
  struct usage usage;          /* of this cycle */
  struct error_sum pss_causes[ALL_CAUSES]; /* of its pss_error */
  /* The control group with the same processes (cgroup_watch.h), in this cycle;
   * or why there is none, and the nearest one or NULL. */
  enum cgroup_absence cgroup_absence;
  struct cgroup_node *cgroup_node;
  uint32_t cgroup_pid;   /* of a member in it */
  unsigned cgroup_depth; /* in the last cycle, or 0 */
  /* Its memory, owned by cgroup_watch.h; NULL without a control group. */
  const struct cgroup_memory *cgroup;
  const struct growth *growth; /* in the track; NULL at first */
  struct alarm_state alarm;
  /* Owned by estimate/: NULL at first, freed with free(). */
  struct group_track *track;
  /* Owned by snapshot/last_known.h, which keeps the group from being removed
   * until it has freed this; or NULL. */
  struct last_known *last;
  /* Memberships, and claims on descendants, that point to this group. */
  size_t references;
  uint64_t used_ns; /* start of the cycle in which it began, or lost the last */
};

static inline bool group_is_reported(const struct group *g) {
  return g->is_fixed || g->usage.processes > 0;
}

/*
 * Templates take names from untrusted users, and each new name costs the
 * storage a set of files for ever. So MaxGroups limits the names of templates
 * that had members within the last hour, and with it the new names of an hour.
 * A user who is free to choose names can keep all places taken, with a process
 * for each in an hour; but a service that starts again finds its place.
 */
struct group_table {
  struct group **groups; /* sorted by name */
  size_t n, cap;
  size_t made_by_template;
  size_t max_templates; /* MaxGroups */
  uint64_t now_ns;      /* start of this cycle */
};

/* Starts a cycle: clears all usages, and removes the groups that had no members
 * for an hour. */
void group_table_begin(struct group_table *t, uint64_t now_ns);

/* group_table_get_or_add(): the table is full. */
#define GROUP_REFUSED 1

/*
 * Gets the group, or adds it. GROUP_REFUSED if there are MaxGroups other names
 * of templates, or -ENOMEM. Does not add a reference. A group that begins anew
 * is of this rule, and what was learnt of it is forgotten.
 */
int group_table_get_or_add(struct group_table *t, const char *name,
                           bool is_fixed, const struct rule *rule, size_t index,
                           struct group **ret);

/* Finds a group by its name; NULL if there is none. */
struct group *group_table_find(const struct group_table *t, const char *name);

/* Drops a reference. */
void group_table_release(const struct group_table *t, struct group *g);

/* True if each new name of a template would be refused. */
bool group_table_is_full(const struct group_table *t);

void group_table_done(struct group_table *t);

#endif
