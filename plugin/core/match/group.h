/* Groups by name, and the memory usage of their members. */
#ifndef SMAPS_GROUP_H
#define SMAPS_GROUP_H

#include "cgroup/cgroup_memory.h"
#include "config/policy.h"
#include "report/metric.h"
#include <smaps/group_name.h>

struct cgroup_node;

/* The values that are not published until the group has members again. */
struct submission {
  bool had_members;       /* in the cycle before */
  metric_set withheld[2]; /* values, and percentages */
};

struct group {
  char name[GROUP_NAME_SIZE];
  /* Named in the configuration: exists, and reports zeros, without members.
   * Other groups are made by a template and removed with their last member. */
  bool is_fixed;
  const struct report *report; /* of the rule that made it */
  const struct policy *policy; /* of the same rule; set by the matcher */
  size_t rule;                 /* index of that rule; set by the matcher */
  unsigned rule_attributes;    /* bit per attribute that the rule uses */
  struct usage usage;          /* of this cycle */
  struct doubt_sum pss_causes[ALL_CAUSES]; /* of its pss_doubt */
  /* The control group with the same processes (whole.h), in this cycle; or why
   * there is none, and the nearest one or NULL. */
  enum cgroup_absence cgroup_absence;
  struct cgroup_node *cgroup_node;
  uint32_t cgroup_pid;   /* of a member in it */
  unsigned cgroup_depth; /* in the last cycle, or 0 */
  /* Its memory, owned by cgroup_watch.h; NULL without a control group. */
  const struct cgroup_memory *cgroup;
  const struct growth *growth; /* in the track; NULL at first */
  /* Owned by estimate/: NULL at first, freed with free(). */
  struct group_track *track;
  /* Owned by snapshot/last_known.h, in the cycle that has noted it; or NULL. */
  struct last_known *last;
  /* Owned by plugin/submit.c. */
  struct submission submission;
  /* Memberships, and claims on descendants, that point to this group. */
  size_t references;
};

/* The name of a present or recent group of a template. */
struct known_name {
  uint64_t hash;
  uint64_t used; /* sequence number of the last use */
  bool is_live;
};

/*
 * Templates take names from untrusted users, and each new name costs the
 * storage a set of files for ever. So MaxGroups limits the groups of templates
 * at a time, and also the new names per hour beyond the first MaxGroups names,
 * which are the normal load of this host; a known name costs nothing.
 */
struct group_table {
  struct group **groups; /* sorted by name */
  size_t n, cap;
  size_t made_by_template;
  size_t max_templates; /* MaxGroups */
  uint64_t made;        /* groups made since the start */

  struct known_name
      *known; /* sorted by hash: KNOWN_PER_GROUP times MaxGroups */
  size_t n_known, cap_known;
  uint64_t uses;
  uint64_t secret; /* random; 0 before its first use */
  /* New names use up two hours, the first of which does not come back. */
  uint64_t spent_ns;
  uint64_t now_ns; /* start of this cycle */
};

#define KNOWN_PER_GROUP 4

/* Starts a cycle: the passed time makes room for new names. */
void group_table_begin(struct group_table *t, uint64_t now_ns);

/* group_table_get_or_add(): the table is full, or there were too many new names
 * within an hour. */
#define GROUP_REFUSED 1
#define GROUP_TOO_NEW 2

/*
 * Gets the group, or adds it. GROUP_REFUSED if templates have made MaxGroups
 * groups, GROUP_TOO_NEW if there were too many new names, or -ENOMEM. Does not
 * add a reference.
 */
int group_table_get_or_add(struct group_table *t, const char *name,
                           bool is_fixed, const struct report *report,
                           struct group **ret);

/* Drops a reference. The last one frees a group that is not fixed. */
void group_table_release(struct group_table *t, struct group *g);

bool group_table_is_full(const struct group_table *t);

/* group_table_key() returns the key of a name, never 0. group_table_refuses()
 * is true if the name with that key would be refused now. */
uint32_t group_table_key(struct group_table *t, const char *name);
bool group_table_refuses(const struct group_table *t, uint32_t key);

/* Clears all usages for a new cycle. */
void group_table_reset(struct group_table *t);

void group_table_done(struct group_table *t);

#endif
