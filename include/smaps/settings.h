/* All that a user has configured, checked and with the defaults filled in. */
#ifndef SMAPS_SETTINGS_H
#define SMAPS_SETTINGS_H

#include <smaps/rule.h>

#define SETTINGS_MAX_GROUPS_DEFAULT 200
#define SETTINGS_MAX_GROUPS_LIMIT 100000

/* Bit per severity of a notification. */
enum severity {
  SEVERITY_OKAY = 1,
  SEVERITY_WARNING = 2,
  SEVERITY_FAILURE = 4,
};

/* <Capture>: evidence that is saved when something raises an alarm. */
struct capture_settings {
  char *directory;     /* NULL for no captures */
  unsigned severities; /* that make one */
  uint64_t top_processes;
  uint64_t top_mappings;
  uint64_t cooldown_ns; /* between two of one group */
  uint64_t max_files;
  uint64_t max_bytes;
  enum choice command_lines;
};

struct settings {
  char *host; /* for snapshots, likewise the next */
  uint64_t interval_ns;
  char *state_file; /* NULL for none */
  uint64_t state_interval_ns;
  enum choice command_lines; /* in snapshots */
  struct capture_settings capture;
  char *proc_root;
  struct rule *rules; /* in the order written */
  size_t n_rules;
  /* Takes what no rule has taken. Without a selector; its name is empty (no
   * pieces) where there is to be no such group. */
  struct rule other;
  size_t max_groups;
  struct report report; /* what groups inherit */
  struct policy policy; /* likewise */
  uint64_t read_budget_ns;
  uint64_t stall_timeout_ns; /* a read that takes longer hangs */
};

void settings_init(struct settings *s);
void settings_done(struct settings *s);

/*
 * Each of these checks what it is given and answers -EINVAL, with what was
 * expected in *reason, or -ENOMEM; s is then as before.
 */

/* Takes the rule over, also where it fails. */
int settings_add_rule(struct settings *s, struct rule *r,
                      struct reason *reason);
int settings_set_other(struct settings *s, const char *name,
                       struct reason *reason);
/* The root must be a proc tree now. */
int settings_set_proc_root(struct settings *s, const char *root,
                           struct reason *reason);
int settings_set_max_groups(struct settings *s, double n,
                            struct reason *reason);

int settings_set_state_file(struct settings *s, const char *path,
                            struct reason *reason);
int settings_set_capture_directory(struct settings *s, const char *path,
                                   struct reason *reason);

/* Whether snapshots are to be written: then all names are of interest. */
bool settings_make_snapshots(const struct settings *s);

/*
 * To be called once, when all is said: where no rule makes a group there is one
 * for each systemd service and "other" for the rest; groups inherit what they
 * do not set. -ENOMEM.
 */
int settings_finish(struct settings *s);

/* Bit per attribute that any rule looks at; and those that snapshots have as
 * well. */
unsigned settings_rule_attributes(const struct settings *s);
unsigned settings_attributes(const struct settings *s);

/* Whether any rule takes children. */
bool settings_take_children(const struct settings *s);

#endif
