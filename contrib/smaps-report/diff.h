/* SPDX-License-Identifier: MIT */
/* The differences between two snapshots. */
#ifndef REPORT_DIFF_H
#define REPORT_DIFF_H

#include "options.h"

enum how {
  HOW_STAYED,
  HOW_RESTARTED, /* another process of the same group and name */
  HOW_NEW,
  HOW_GONE,
  HOW_LISTED,   /* not in the old snapshot, which is not complete */
  HOW_UNLISTED, /* not in the new snapshot, which is not complete */
};

/* "stayed", "restarted" and so on. */
extern const char *const diff_how_names[];

struct change {
  enum how how;
  const char *name;
  const struct process *old_process; /* NULL for groups and mappings */
  const struct process *new_process;
  uint64_t old; /* bytes; MISSING */
  uint64_t new;
  uint64_t old_error, new_error; /* MISSING for other amounts */
  bool is_less;
  uint64_t size; /* |new - old|; MISSING */
};

struct changes {
  struct change *all; /* the largest first, unknown ones last */
  size_t n;
};

/* Freed with diff_done(), before the documents. */
struct diff {
  struct changes groups;
  struct changes processes;
  struct changes mappings;
  bool has_processes; /* false for captures of different groups */
  bool has_mappings;  /* both documents have mappings */
  size_t missing;     /* of captures: processes that have no mappings */
};

/* Compares one amount (column_is_amount()), in one group or (NULL) in all. The
 * result has changes only. */
void diff_make(struct document *old, struct document *new, unsigned amount,
               const char *group, struct diff *ret);
void diff_done(struct diff *d);

/* Prints the diff. Returns 0; 1 if groups are over the limit, with a line on
 * stderr for each; -EINVAL with the reason if there is no such group. */
int diff_print(struct document *old, struct document *new,
               const struct options *o, const struct style *s,
               struct config_error *reason);

#endif
