/*
 * A rule takes processes into a group, or out of all groups:
 *
 *   <Group "web"> … </Group>    Process "sshd"    <Ignore> … </Ignore>
 */
#ifndef SMAPS_RULE_H
#define SMAPS_RULE_H

#include <smaps/metric.h>
#include <smaps/policy.h>
#include <smaps/selector.h>
#include <smaps/template.h>

struct rule {
  char *text; /* as it is configured, on one line; may be NULL */
  bool is_ignore;
  bool takes_children; /* Children */
  bool is_view;        /* Continue: rules below are offered its processes too */
  struct template name;
  /* Selectors of one attribute stand together: one of them has to match, and
   * for each attribute that there is. */
  struct selector *selectors;
  size_t n_selectors;
  struct report report;
  struct policy policy;
};

int rule_init_group(struct rule *r, const char *name, struct reason *reason);
void rule_init_ignore(struct rule *r);
void rule_done(struct rule *r);

/* Sets the text. -ENOMEM. */
int rule_set_text(struct rule *r, const char *text);

/* Takes the selector over, also where it fails. -ENOMEM. */
int rule_add_selector(struct rule *r, struct selector *s);

/*
 * To be called when all is added: -EINVAL with what was expected in *reason
 * where there is no selector, or where the name wants captures that a selector
 * does not make.
 */
int rule_check(const struct rule *r, struct reason *reason);

/*
 * Whether the rule selects the process by its own attributes: 1, 0 or -ENOMEM,
 * as selector_match(). *ret_captures is what the name's %{1} … stand for: the
 * captures of the first attribute, in the order written, that is matched by a
 * regular expression with captures.
 */
int rule_match(const struct rule *r, const struct identity *id, uint32_t pid,
               struct captures *ret_captures);

/* Whether it cannot be told whom the rule selects, because a PID file of it
 * could not be read. */
bool rule_is_blind(const struct rule *r);

/* Bit per attribute that selectors or the name look at. */
unsigned rule_attributes(const struct rule *r);

/* Whether two rules have fixed names that come out the same. */
bool rule_has_same_name(const struct rule *a, const struct rule *b);

#endif
