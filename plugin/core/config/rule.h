/* SPDX-License-Identifier: MIT */
/*
 * A rule puts processes into a group or, with Ignore, into none:
 *
 *   <Group "web"> … </Group>    Process "sshd"    <Ignore> … </Ignore>
 */
#ifndef SMAPS_CONFIG_RULE_H
#define SMAPS_CONFIG_RULE_H

#include "config/policy.h"
#include "config/selector.h"
#include "config/template.h"
#include "report/metric.h"

struct rule {
  char *text; /* the configuration of the rule on one line; may be NULL */
  char *name; /* a template; NULL of Ignore */
  struct group_name fixed_name; /* of a name without placeholders, or empty */
  bool is_ignore;
  bool takes_children; /* Children */
  bool is_view;        /* Continue: later rules may take the process too */
  /* Sorted by attribute. Selectors of one attribute are alternatives (OR);
   * different attributes must all match (AND). */
  struct selector *selectors;
  size_t n_selectors;
  struct report report;
  struct policy policy;
};

/* A rule begins as zeros. These return 0, -EINVAL with the expected text in
 * *reason, or -ENOMEM. */
int rule_set_name(struct rule *r, const char *name,
                  struct config_error *reason);
/* For `option` see selector_init(). */
int rule_add_selector(struct rule *r, const char *option, const char *pattern,
                      struct config_error *reason);
void rule_done(struct rule *r);

/*
 * Checks a rule that is complete. -EINVAL, with the expected text in *reason,
 * if it has no selector or if its name uses a capture that a selector lacks.
 */
int rule_check(const struct rule *r, struct config_error *reason);

/*
 * Matches the attributes of a process: 1, 0 or -ENOMEM, as selector_match().
 * *ret_captures are the values of %{1} … in the name: the captures of the first
 * attribute, in the order written, that has a regular expression with captures.
 */
int rule_match(const struct rule *r, const struct attributes *id, uint32_t pid,
               struct captures *ret_captures);

/*
 * False if what is known of the process rules out that it matches. If the rule
 * selects by Comm too, the program may go by any name that this allows.
 */
bool rule_could_match(const struct rule *r, const struct glimpse *g);

/* True if a PID file of the rule could not be read: the process that it selects
 * is then unknown. */
bool rule_is_blind(const struct rule *r);

/* Bit per attribute that the selectors or the name use. PidFile with Children
 * counts as the control group: it selects a service, with all its processes. */
unsigned rule_attributes(const struct rule *r);

#endif
