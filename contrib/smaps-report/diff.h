/* What is different between two snapshots. */
#ifndef REPORT_DIFF_H
#define REPORT_DIFF_H

#include "options.h"

enum how {
  HOW_STAYED,
  HOW_RESTARTED, /* another process of the same group and comm */
  HOW_CAME,
  HOW_WENT,
  HOW_LISTED,   /* the old one need not have listed it, */
  HOW_UNLISTED, /* or the new one */
};

struct change {
  enum how how;
  const char *name;
  const struct process *old_process; /* these two of processes alone */
  const struct process *new_process;
  uint64_t old; /* bytes; UNKNOWN */
  uint64_t new;
  bool is_less;
  uint64_t size; /* |new - old|; UNKNOWN */
};

struct changes {
  struct change *all; /* the largest first, what is not known last */
  size_t n;
};

/* Everything in *ret is to be freed with diff_done(), before the documents. */
struct diff {
  struct changes groups;
  struct changes processes;
  struct changes mappings;
  bool has_processes; /* captures of two groups have none in common */
  bool has_mappings;  /* both documents have some */
};

/* Compares one amount, in one group or (NULL) in all. What has not changed is
 * left out. */
void diff_make(struct document *old, struct document *new, enum amount amount,
               const char *group, struct diff *ret);
void diff_done(struct diff *d);

/* Whether a group has grown by more than the limit. Never where one side is
 * not known. A group that came has grown from nothing. */
bool diff_is_over(const struct change *c, const struct limit *limit);

/* Prints the diff. Returns 0; 1 where a group is over the limit, with a line
 * on stderr for each; -EINVAL with the reason where there is no such group. */
int diff_print(struct document *old, struct document *new,
               const struct options *o, const struct style *s,
               struct reason *reason);

#endif
