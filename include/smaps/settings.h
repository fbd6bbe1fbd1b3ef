/* SPDX-License-Identifier: MIT */
/* The configuration: checked, with the defaults filled in. */
#ifndef SMAPS_SETTINGS_H
#define SMAPS_SETTINGS_H

#include "config/rule.h"

#define SETTINGS_MAX_GROUPS_LIMIT 100000

/* <Capture>: snapshots of a group that are saved when an alarm is raised. */
struct capture_settings {
  char *directory;     /* NULL: no captures */
  unsigned severities; /* of notifications that raise an alarm */
  uint64_t top_processes;
  uint64_t top_mappings;
  /* Between two captures of one group for alarms of the same severity. */
  uint64_t cooldown_ns;
  uint64_t max_files;
  uint64_t max_bytes;
  enum choice command_lines;
};

struct settings {
  /* The file that is being read, for error lines; NULL: unknown. */
  const char *source;
  char *host;        /* of snapshots */
  bool reports_host; /* publishes where the memory of the host is */
  uint64_t interval_ns;
  char *state_file;    /* NULL: none */
  char *state_history; /* a directory; NULL: none */
  uint64_t state_interval_ns;
  bool has_state_at_start;   /* in the first cycle already */
  bool has_snapshots;        /* for files, or collector_snapshot() */
  enum choice command_lines; /* in snapshots */
  struct capture_settings capture;
  char *proc_root;
  char *container_root; /* see container_names.h */
  struct rule *rules;   /* in the order written */
  size_t n_rules;
  /* The group of processes that no rule takes. It has no selector; without a
   * name there is no such group. */
  struct rule other;
  uint64_t max_groups;
  struct report report;         /* inherited by groups */
  struct policy policy;         /* inherited by groups */
  double read_budget_percent;   /* of one CPU */
  uint64_t read_budget_span_ns; /* the most that can be saved up */
  uint64_t read_timeout_ns;     /* a read that takes longer hangs */
  /* The rest, and has_snapshots, is made by settings_finish(). */
  unsigned rule_attributes; /* bit per attribute that a rule needs */
  unsigned attributes;      /* the same, with those that snapshots need: all */
  bool has_children_rules;
  bool wants_page_tables; /* snapshots or a group report them */
  bool wants_freed;       /* likewise */
};

/* The defaults of all options whose values are neither strings nor sets. */
extern const struct settings settings_defaults;

void settings_init(struct settings *s);
void settings_done(struct settings *s);

/* These check the value. They return 0, -EINVAL with the expected value in
 * *reason, or -ENOMEM. After an error s is only good for finding more. */

/* Adds a rule without selectors; name NULL: Ignore. It stays where it is until
 * the next is added. */
int settings_add_rule(struct settings *s, const char *name, struct rule **ret,
                      struct config_error *reason);
/* Checks a rule of s, or Other, that is complete. */
int settings_check_rule(const struct settings *s, const struct rule *r,
                        struct config_error *reason);
/* The root must be a proc tree now. */
int settings_set_proc_root(struct settings *s, const char *root,
                           struct config_error *reason);
/* Sets a path, which is absolute, without slashes at its end. */
int settings_set_path(char **path, const char *value,
                      struct config_error *reason);

/*
 * Called once, after the last option. If no rule makes a group, adds one group
 * per systemd service, one per container that is in none, and "other" for the
 * rest. Groups inherit the options that they do not set, and a GrowthWindow of
 * too few intervals becomes longer. Returns 0 or -ENOMEM.
 */
int settings_finish(struct settings *s);

#endif
