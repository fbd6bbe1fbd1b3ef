/* SPDX-License-Identifier: MIT */
#include "match/match_one.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/diag.h"

/* --- groups and claims ---------------------------------------------------- */

static uint64_t bit_of(const struct group_name *name) {
  return UINT64_C(1) << (name->hash * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

static int get_or_add_group(struct match_rules *m,
                            const struct group_name *name, bool is_fixed,
                            size_t rule, struct group **ret) {
  size_t n = m->groups->n;
  int rc = group_table_get_or_add(m->groups, name->text, is_fixed,
                                  match_rule_at(m, rule), rule, ret);

  if (m->groups->n > n)
    m->made_names |= bit_of(name);
  return rc;
}

static int add_fixed_groups(struct match_rules *m) {
  int rc = 0;

  for (size_t i = 0; rc == 0 && i <= m->settings->n_rules; i++) {
    const struct group_name *name = &match_rule_at(m, i)->fixed_name;

    if (name->len > 0)
      rc = get_or_add_group(m, name, true, i, &m->fixed[i]);
  }
  return rc;
}

static void release_groups(struct match_rules *m, struct group **groups,
                           size_t n) {
  for (size_t i = 0; i < n; i++)
    group_table_release(m->groups, groups[i]);
}

static void release_claims(struct match_rules *m, const struct claim *claims,
                           size_t n) {
  for (size_t i = 0; i < n; i++)
    if (claims[i].group)
      group_table_release(m->groups, claims[i].group);
}

void match_forget(struct match_rules *m, struct process *p) {
  release_groups(m, p->groups, p->n_groups);
  release_claims(m, p->claims, p->n_claims);
  cgroup_tree_release(&m->cgroups, p->cgroup);
  free(p->groups);
  free(p->claims);
  free(p->membership.perhaps);
  free(p->membership.why);
  p->groups = p->membership.perhaps = NULL;
  p->claims = NULL;
  p->membership.why = NULL;
  p->cgroup = NULL;
  p->n_groups = p->n_claims = p->membership.n_perhaps = 0;
}

static bool has_group(struct group *const *groups, size_t n,
                      const struct group *g) {
  for (size_t i = 0; i < n; i++)
    if (groups[i] == g)
      return true;
  return false;
}

/* Two rules can yield the same name: it counts once. */
static void add_group(struct match_rules *m, struct group *group) {
  if (has_group(m->made_groups, m->n_groups, group))
    return;
  group->references++;
  m->made_groups[m->n_groups++] = group;
}

/* The claims that a process inherits: its parent's, or for an orphan the claims
 * that it has inherited before. */
struct inheritance {
  const struct claim *claims;
  size_t n;
  bool is_orphan;
};

static const struct claim *find_claim(const struct claim *claims, size_t n,
                                      size_t rule) {
  for (size_t i = 0; i < n; i++)
    if (claims[i].rule == rule)
      return &claims[i];
  return NULL;
}

static bool is_passed_on(const struct inheritance *in, const struct claim *c) {
  return !in->is_orphan || c->is_inherited;
}

static const struct claim *find_inherited(const struct inheritance *in,
                                          size_t rule) {
  const struct claim *claim = find_claim(in->claims, in->n, rule);

  return claim && is_passed_on(in, claim) ? claim : NULL;
}

static void add_claim(struct match_rules *m, size_t rule, struct group *group,
                      bool is_inherited) {
  if (find_claim(m->made_claims, m->n_claims, rule))
    return;
  if (group)
    group->references++;
  m->made_claims[m->n_claims++] = (struct claim){
      .group = group, .rule = (uint16_t)rule, .is_inherited = is_inherited};
}

static void note_refused(struct match_rules *m, struct process *p,
                         const struct group_name *name) {
  struct diag *t = &m->diags[DIAG_GROUP_REFUSED];

  p->membership.refused_names |= bit_of(name);
  if (t->count == 0)
    snprintf(t->name, sizeof(t->name), "%s", name->text);
  diag_note(m->diags, DIAG_GROUP_REFUSED, p, 0, NULL);
}

/* --- explanations --------------------------------------------------------- */

static void add_also(struct match_rules *m, size_t i) {
  if (m->why.n_also < EXPLAIN_MAX)
    m->why.also[m->why.n_also++] = (uint16_t)i;
}

bool match_would_take(const struct rule *rule, const struct attributes *id,
                      uint32_t pid) {
  struct captures captures;
  struct group_name name;

  return rule_match(rule, id, pid, &captures) > 0 &&
         (rule->is_ignore || template_expand(rule->name, id, &captures, &name));
}

/* Notes the later rules that match, too, for an explanation. */
static void explain_others(struct match_rules *m, const struct process *p,
                           size_t first) {
  for (size_t i = first; m->settings->has_snapshots && i < m->settings->n_rules;
       i++)
    if (match_would_take(&m->settings->rules[i], &m->attributes, p->pid))
      add_also(m, i);
}

/* --- what cannot be ruled out --------------------------------------------- */

/* A process that was in the group still runs the program, whatever its name is
 * now, unless another attribute rules that out. */
static void add_perhaps(struct match_rules *m, const struct process *p,
                        size_t i) {
  struct group *group = m->fixed[i];
  struct glimpse glimpse;

  if (!m->unknown || !group)
    return;
  glimpse = (struct glimpse){
      .id = m->attributes,
      .pid = p->pid,
      .unknown = m->unknown,
      .may_be_renamed =
          has_group(p->groups, p->n_groups, group) ||
          has_group(p->membership.perhaps, p->membership.n_perhaps, group)};
  if (rule_could_match(&m->settings->rules[i], &glimpse))
    m->made_perhaps[m->n_perhaps++] = group;
}

static unsigned find_unknown(const struct match_rules *m) {
  unsigned unknown = m->settings->rule_attributes & REFUSABLE_ATTRIBUTES;

  for (int a = 0; a < ATTRIBUTES; a++)
    if (m->attributes.value[a])
      unknown &= ~(1U << a);
  return unknown;
}

/* --- applying the rules --------------------------------------------------- */

enum verdict { PASSED, TAKEN, REFUSED };

/* Decides if the rule takes the process by its own names; *ret is the group, or
 * NULL. */
static enum verdict apply_by_name(struct match_rules *m, struct process *p,
                                  size_t i, struct group **ret) {
  const struct rule *rule = &m->settings->rules[i];
  struct captures captures;
  struct group_name name;
  int rc;

  *ret = NULL;
  rc = rule_match(rule, &m->attributes, p->pid, &captures);
  if (rc < 0)
    m->is_out_of_memory = true;
  if (rc <= 0)
    return PASSED;
  if (rule->is_ignore)
    return TAKEN;
  if (!template_expand(rule->name, &m->attributes, &captures, &name))
    return PASSED;
  rc = get_or_add_group(m, &name, false, i, ret);
  if (rc == GROUP_REFUSED)
    note_refused(m, p, &name);
  if (rc < 0)
    m->is_out_of_memory = true;
  return rc == 0 ? TAKEN : REFUSED;
}

static enum verdict apply_rule(struct match_rules *m, struct process *p,
                               size_t i,
                               const struct inheritance *inheritance) {
  const struct rule *rule = &m->settings->rules[i];
  const struct claim *claim = find_inherited(inheritance, i);
  struct group *group;
  enum verdict by_name = apply_by_name(m, p, i, &group), verdict = by_name;

  if (verdict == PASSED && claim) {
    group = claim->group;
    verdict = TAKEN;
  }
  if (verdict == PASSED)
    add_perhaps(m, p, i);
  if (verdict == TAKEN && !rule->is_view) {
    m->why.rule = (uint16_t)i;
    m->why.is_inherited = by_name == PASSED;
  } else if (by_name != PASSED) {
    add_also(m, i);
  }
  /* A refused view does not stop the rules below. */
  if (verdict != TAKEN)
    return rule->is_view ? PASSED : verdict;
  if (group)
    add_group(m, group);
  if (rule->takes_children)
    add_claim(m, i, group, claim != NULL);
  return rule->is_view ? PASSED : TAKEN;
}

static void apply_other(struct match_rules *m) {
  size_t other = m->settings->n_rules;

  if (!m->fixed[other])
    return;
  add_group(m, m->fixed[other]);
  m->why.rule = (uint16_t)other;
}

static void apply_rules(struct match_rules *m, struct process *p,
                        const struct inheritance *inheritance) {
  enum verdict verdict = PASSED;
  size_t n = 0;

  m->attributes = attributes_get(&p->attributes);
  m->unknown = find_unknown(m);
  m->n_groups = m->n_claims = m->n_perhaps = 0;
  m->why = (struct explanation){.rule = NO_RULE};
  p->membership.refused_names = 0;
  while (n < m->settings->n_rules && verdict == PASSED)
    verdict = apply_rule(m, p, n++, inheritance);
  explain_others(m, p, n);
  if (verdict != TAKEN)
    apply_other(m);
  /* A claim passes through a process that another rule has taken. */
  for (size_t i = 0; i < inheritance->n; i++)
    if (is_passed_on(inheritance, &inheritance->claims[i]))
      add_claim(m, inheritance->claims[i].rule, inheritance->claims[i].group,
                true);
}

static bool is_same_claims(const struct match_rules *m,
                           const struct process *p) {
  if (p->n_claims != m->n_claims)
    return false;
  for (size_t i = 0; i < m->n_claims; i++) {
    const struct claim *old = &p->claims[i], *made = &m->made_claims[i];

    if (old->rule != made->rule || old->group != made->group ||
        old->is_inherited != made->is_inherited)
      return false;
  }
  return true;
}

static void *copy_of(struct match_rules *m, const void *made, size_t size) {
  void *copy = size > 0 ? malloc(size) : NULL;

  if (copy)
    memcpy(copy, made, size);
  m->is_out_of_memory |= size > 0 && !copy;
  return copy;
}

static struct cgroup_node *cgroup_of(struct match_rules *m) {
  const char *path = m->attributes.value[ATTRIBUTE_CGROUP];
  struct cgroup_node *node = path ? cgroup_tree_get(&m->cgroups, path) : NULL;

  m->is_out_of_memory |= path && !node;
  return node;
}

/* Moves the new groups and claims, with their references, to the process,
 * unless memory has run out. The old ones are released later: the two may share
 * groups. */
static void adopt_made(struct match_rules *m, struct process *p) {
  struct process made = {
      .groups = copy_of(m, m->made_groups, m->n_groups * sizeof(*p->groups)),
      .claims = copy_of(m, m->made_claims, m->n_claims * sizeof(*p->claims)),
      .membership = {.perhaps = copy_of(m, m->made_perhaps,
                                        m->n_perhaps * sizeof(struct group *)),
                     .why = copy_of(m, &m->why,
                                    m->settings->has_snapshots ? sizeof(m->why)
                                                               : 0)},
      .cgroup = cgroup_of(m)};

  if (m->is_out_of_memory) {
    match_forget(m, &made);
    return;
  }
  p->membership.has_changed_claims = !is_same_claims(m, p);
  match_forget(m, p);
  p->groups = made.groups;
  p->claims = made.claims;
  p->membership.perhaps = made.membership.perhaps;
  p->membership.why = made.membership.why;
  p->cgroup = made.cgroup;
  p->n_groups = (uint16_t)m->n_groups;
  p->n_claims = (uint16_t)m->n_claims;
  p->membership.n_perhaps = (uint16_t)m->n_perhaps;
}

void match_one(struct match_rules *m, struct process *p,
               const struct process *parent) {
  const struct process *source = parent ? parent : p;
  const struct inheritance inheritance = {
      .claims = source->claims, .n = source->n_claims, .is_orphan = !parent};

  m->is_out_of_memory = false;
  apply_rules(m, p, &inheritance);
  adopt_made(m, p);
  p->is_match_due = m->is_out_of_memory;
  if (!m->is_out_of_memory)
    return;
  release_groups(m, m->made_groups, m->n_groups);
  release_claims(m, m->made_claims, m->n_claims);
  /* Its groups are unknown; the groups that it had report themselves as
   * incomplete. */
  process_set_state(p, PROCESS_UNKNOWN);
  diag_note(m->diags, DIAG_FAILED, p, -ENOMEM, "names");
}

/* --- beginning and end ---------------------------------------------------- */

int match_rules_init(struct match_rules *m, const struct settings *settings,
                     struct group_table *groups, struct diag *diags) {
  /* At most one group or claim for each rule, and for Other. */
  size_t n = settings->n_rules + 1;

  *m = (struct match_rules){
      .settings = settings,
      .groups = groups,
      .diags = diags,
      .locale = newlocale(LC_ALL_MASK, "C", (locale_t)0),
      .made_groups = reallocarray(NULL, n, sizeof(struct group *)),
      .made_claims = reallocarray(NULL, n, sizeof(struct claim)),
      .made_perhaps = reallocarray(NULL, n, sizeof(struct group *)),
      .fixed = calloc(n, sizeof(struct group *))};
  if (!m->locale || !m->made_groups || !m->made_claims || !m->made_perhaps ||
      !m->fixed)
    return -ENOMEM;
  return add_fixed_groups(m);
}

void match_rules_done(struct match_rules *m) {
  if (m->locale)
    freelocale(m->locale);
  free(m->made_groups);
  free(m->made_claims);
  free(m->made_perhaps);
  free(m->fixed);
  cgroup_tree_done(&m->cgroups);
  *m = (struct match_rules){0};
}
