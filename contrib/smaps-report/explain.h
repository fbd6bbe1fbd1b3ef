/* SPDX-License-Identifier: MIT */
/* The rule that took each process, how the process was read, and the causes of
 * the errors of groups. */
#ifndef REPORT_EXPLAIN_H
#define REPORT_EXPLAIN_H

#include "options.h"

/*
 * Explains one process, one group, or all of them with a summary by rule.
 * Returns 0, or -EINVAL with the reason if there is no such process or group.
 */
int explain_print(const struct document *d, const struct options *o,
                  const struct style *s, struct config_error *reason);

/* Prints how many processes each rule takes, and why groups have no values of a
 * control group. Rules are numbered from 1, in the order in which they are
 * tried. A check leaves out the groups that cannot have such values by their
 * rule, and those without processes: that is not a mistake. */
void explain_rules(const struct document *d, bool is_check,
                   const struct style *s);

/* An array with true for each rule that takes nothing and would take nothing
 * without the rules before it. The caller frees it. */
bool *explain_idle_rules(const struct document *d);

struct cause_part {
  const char *name; /* the key */
  const char *words;
  uint64_t bytes;
};

/* The causes of the error of the group's PSS that are 0.05 % of PSS or more,
 * the largest first. Returns their number: 0 if they or PSS are unknown, or if
 * the error is less than 0.1 % of PSS. */
size_t explain_causes(const struct group *g, struct cause_part ret[ALL_CAUSES]);

/* Adds the part of the group's PSS, which is known and not 0: "1.5 %". */
void explain_add_percent(struct text *t, const struct group *g, uint64_t bytes);

#endif
