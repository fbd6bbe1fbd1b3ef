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

/* A name that a template's group has, or had lately. */
struct known_name {
  uint64_t hash;
  uint64_t used; /* in the order of use */
  bool is_live;
};

/*
 * Names that templates make come from strangers, and each new one costs whoever
 * stores the values a set of files for ever. So there may be MaxGroups of them
 * at a time, and MaxGroups new ones an hour beside the first MaxGroups, which
 * are what runs here; a name that is known costs nothing.
 */
struct group_table {
  struct group **groups; /* by name */
  size_t n, cap;
  size_t made_by_template;
  size_t max_templates; /* MaxGroups */
  uint64_t made;        /* so far */

  struct known_name *known; /* by hash: KNOWN_PER_GROUP times MaxGroups */
  size_t n_known, cap_known;
  uint64_t uses;
  uint64_t secret;   /* of the hash; 0 before the first */
  size_t granted;    /* of the first ones */
  uint64_t spent_ns; /* of the hour that all new names have, in time */
  uint64_t now_ns;   /* of this cycle */
};

#define KNOWN_PER_GROUP 4

/* To be called when a cycle begins: time makes room for new names. */
void group_table_begin(struct group_table *t, uint64_t now_ns);

/* What group_table_take() answers where the table is full, or where there were
 * too many new names within an hour. */
#define GROUP_REFUSED 1
#define GROUP_TOO_NEW 2

/*
 * Finds the group, or makes it. GROUP_REFUSED where it would be one more than
 * templates may make, GROUP_TOO_NEW where its name would be; -ENOMEM. Does not
 * count a reference.
 */
int group_table_take(struct group_table *t, const char *name, bool is_fixed,
                     const struct report *report, struct group **ret);

/* Drops a reference, and with the last one a group that is not fixed. */
void group_table_release(struct group_table *t, struct group *g);

bool group_table_is_full(const struct group_table *t);

/* A name that was refused, for as long as it is: not 0. And whether it would
 * still be. */
uint32_t group_table_key(struct group_table *t, const char *name);
bool group_table_refuses(const struct group_table *t, uint32_t key);

/* Sets all usages to nothing, for a new cycle. */
void group_table_reset(struct group_table *t);

void group_table_done(struct group_table *t);

#endif
