#include "match/membership.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"

/* Other comes after the last rule. */
static size_t rule_index(const struct matcher *m, const struct rule *rule) {
  return rule == &m->settings->other ? m->settings->n_rules
                                     : (size_t)(rule - m->settings->rules);
}

static uint32_t key_of(const struct group_name *name) {
  return (uint32_t)(name->hash >> 32) | 1;
}

/* The factor spreads the last letters, which FNV-1a hardly moves upwards. */
static uint64_t bit_of(uint32_t key) {
  return UINT64_C(1) << (key * UINT32_C(0x9e3779b1) >> 26);
}

bool membership_may_be_made(const struct matcher *m, const struct process *p) {
  if (p->has_more_refused)
    return m->made_names != 0;
  return p->refused_name && (m->made_names & bit_of(p->refused_name));
}

static int get_or_add_group(struct matcher *m, const struct group_name *name,
                            bool is_fixed, const struct rule *rule,
                            struct group **ret) {
  int rc = group_table_get_or_add(m->groups, name->text, is_fixed,
                                  &rule->report, ret);

  if (rc == 0 && !(*ret)->policy) {
    m->made_names |= bit_of(key_of(name));
    (*ret)->policy = &rule->policy;
    (*ret)->rule = rule_index(m, rule);
    (*ret)->rule_attributes = rule_attributes(rule);
  }
  return rc;
}

static int add_fixed_group(struct matcher *m, const struct rule *rule) {
  static const struct attributes nobody;
  struct group *group;
  struct group_name name;
  int rc;

  if (rule->is_ignore || rule->name.n == 0 || !template_is_fixed(&rule->name) ||
      !template_expand(&rule->name, &nobody, NULL, &name))
    return 0;
  rc = get_or_add_group(m, &name, true, rule, &group);
  if (rc == 0)
    m->fixed[rule_index(m, rule)] = group;
  return rc;
}

int membership_add_fixed_groups(struct matcher *m) {
  const struct settings *settings = m->settings;
  int rc = 0;

  for (size_t i = 0; rc == 0 && i < settings->n_rules; i++)
    rc = add_fixed_group(m, &settings->rules[i]);
  return rc == 0 ? add_fixed_group(m, &settings->other) : rc;
}

static void release_groups(struct matcher *m, struct group **groups, size_t n) {
  for (size_t i = 0; i < n; i++)
    group_table_release(m->groups, groups[i]);
}

static void release_claims(struct matcher *m, const struct claim *claims,
                           size_t n) {
  for (size_t i = 0; i < n; i++)
    if (claims[i].group)
      group_table_release(m->groups, claims[i].group);
}

void membership_release(struct matcher *m, struct process *p) {
  release_groups(m, p->groups, p->n_groups);
  release_claims(m, p->claims, p->n_claims);
  cgroup_tree_release(&m->cgroups, p->cgroup);
  free(p->groups);
  free(p->claims);
  free(p->perhaps);
  free(p->why);
  p->groups = p->perhaps = NULL;
  p->claims = NULL;
  p->why = NULL;
  p->cgroup = NULL;
  p->n_groups = p->n_claims = p->n_perhaps = 0;
}

/* Two rules can yield the same name: it counts once. */
static void add_group(struct matcher *m, struct group *group) {
  for (size_t i = 0; i < m->n_groups; i++)
    if (m->made_groups[i] == group)
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

static void add_claim(struct matcher *m, size_t rule, struct group *group,
                      bool is_inherited) {
  if (find_claim(m->made_claims, m->n_claims, rule))
    return;
  if (group)
    group->references++;
  m->made_claims[m->n_claims++] = (struct claim){
      .group = group, .rule = (uint16_t)rule, .is_inherited = is_inherited};
}

static void note_refused(struct matcher *m, struct process *p,
                         const struct group_name *name) {
  struct diag *t = &m->diags[DIAG_GROUP_REFUSED];
  uint32_t key = key_of(name);

  p->has_more_refused |= p->refused_name && p->refused_name != key;
  p->refused_name = key;
  if (t->count == 0)
    snprintf(t->name, sizeof(t->name), "%s", name->text);
  diag_note(m->diags, DIAG_GROUP_REFUSED, p, 0, NULL);
}

/* --- explanations --------------------------------------------------------- */

static void add_also(struct matcher *m, size_t i) {
  if (m->n_also < EXPLAIN_MAX)
    m->also[m->n_also++] = (uint16_t)i;
}

static bool would_take(struct matcher *m, const struct process *p,
                       const struct rule *rule) {
  struct captures captures;
  struct group_name name;

  return rule_match(rule, &m->attributes, p->pid, &captures) > 0 &&
         (rule->is_ignore ||
          template_expand(&rule->name, &m->attributes, &captures, &name));
}

/* Notes the later rules that match, too, for an explanation. */
static void explain_others(struct matcher *m, const struct process *p,
                           size_t first) {
  for (size_t i = first; m->explains && i < m->settings->n_rules; i++)
    if (would_take(m, p, &m->settings->rules[i]))
      add_also(m, i);
}

/* --- what cannot be ruled out ----------------------------------------------
 */

static bool has_group(struct group *const *groups, size_t n,
                      const struct group *g) {
  for (size_t i = 0; i < n; i++)
    if (groups[i] == g)
      return true;
  return false;
}

/* A process that was in the group still runs the program, whatever its name is
 * now, unless another attribute rules that out. */
static void add_perhaps(struct matcher *m, const struct process *p, size_t i) {
  struct group *group = m->fixed[i];
  struct glimpse glimpse;

  if (!m->unknown || !group)
    return;
  glimpse = (struct glimpse){.id = m->attributes,
                             .pid = p->pid,
                             .unknown = m->unknown,
                             .may_be_renamed =
                                 has_group(p->groups, p->n_groups, group) ||
                                 has_group(p->perhaps, p->n_perhaps, group)};
  if (rule_could_match(&m->settings->rules[i], &glimpse))
    m->made_perhaps[m->n_perhaps++] = group;
}

static unsigned find_unknown(const struct matcher *m) {
  unsigned unknown = m->wanted_attributes & REFUSABLE_ATTRIBUTES;

  for (int a = 0; a < ATTRIBUTES; a++)
    if (m->attributes.value[a])
      unknown &= ~(1U << a);
  return unknown;
}

/* --- applying the rules --------------------------------------------------- */

enum verdict { PASSED, TAKEN, REFUSED };

/* Decides if the rule takes the process by its own names; *ret is the group, or
 * NULL. */
static enum verdict apply_by_name(struct matcher *m, struct process *p,
                                  const struct rule *rule, struct group **ret) {
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
  if (!template_expand(&rule->name, &m->attributes, &captures, &name))
    return PASSED;
  rc = get_or_add_group(m, &name, false, rule, ret);
  if (rc == GROUP_REFUSED)
    note_refused(m, p, &name);
  if (rc < 0)
    m->is_out_of_memory = true;
  return rc == 0 ? TAKEN : REFUSED;
}

static enum verdict apply_rule(struct matcher *m, struct process *p, size_t i,
                               const struct inheritance *inheritance) {
  const struct rule *rule = &m->settings->rules[i];
  const struct claim *claim = find_inherited(inheritance, i);
  struct group *group;
  enum verdict by_name = apply_by_name(m, p, rule, &group), verdict = by_name;

  if (verdict == PASSED && claim) {
    group = claim->group;
    verdict = TAKEN;
  }
  if (verdict == PASSED)
    add_perhaps(m, p, i);
  if (verdict == TAKEN && !rule->is_view) {
    m->rule = (uint16_t)i;
    m->is_inherited = by_name == PASSED;
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

static void apply_other(struct matcher *m) {
  const struct rule *other = &m->settings->other;
  struct group *group;
  struct group_name name;
  static const struct attributes nobody;

  if (other->name.n == 0 ||
      !template_expand(&other->name, &nobody, NULL, &name))
    return;
  if (get_or_add_group(m, &name, true, other, &group) != 0)
    return;
  add_group(m, group);
  m->rule = (uint16_t)rule_index(m, other);
}

static void apply_rules(struct matcher *m, struct process *p,
                        const struct inheritance *inheritance) {
  enum verdict verdict = PASSED;
  size_t n = 0;

  m->attributes = attributes_get(&p->attributes);
  m->unknown = find_unknown(m);
  m->n_groups = m->n_claims = m->n_perhaps = 0;
  m->rule = NO_RULE;
  m->is_inherited = false;
  m->n_also = 0;
  p->refused_name = 0;
  p->has_more_refused = false;
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

static bool is_same_claims(const struct matcher *m, const struct process *p) {
  if (p->n_claims != m->n_claims)
    return false;
  for (size_t i = 0; i < m->n_claims; i++) {
    const struct claim *old =
        find_claim(p->claims, p->n_claims, m->made_claims[i].rule);

    if (!old || old->group != m->made_claims[i].group ||
        old->is_inherited != m->made_claims[i].is_inherited)
      return false;
  }
  return true;
}

static void *copy_of(struct matcher *m, const void *made, size_t size) {
  void *copy = size > 0 ? malloc(size) : NULL;

  if (copy)
    memcpy(copy, made, size);
  m->is_out_of_memory |= size > 0 && !copy;
  return copy;
}

static struct explanation *explanation_of(struct matcher *m) {
  size_t also = m->n_also * sizeof(m->also[0]);
  struct explanation *why = m->explains ? malloc(sizeof(*why) + also) : NULL;

  m->is_out_of_memory |= m->explains && !why;
  if (!why)
    return NULL;
  why->rule = m->rule;
  why->is_inherited = m->is_inherited;
  why->n_also = m->n_also;
  memcpy(why->also, m->also, also);
  return why;
}

static struct cgroup_node *cgroup_of(struct matcher *m) {
  const char *path = m->attributes.value[ATTRIBUTE_CGROUP];
  struct cgroup_node *node = NULL;

  if (path && cgroup_tree_get(&m->cgroups, path, &node) < 0)
    m->is_out_of_memory = true;
  return node;
}

/* Moves the new groups and claims, with their references, to the process. The
 * old ones are released later: the two may share groups. */
static void adopt_made(struct matcher *m, struct process *p) {
  struct process made = {
      .groups = copy_of(m, m->made_groups, m->n_groups * sizeof(*p->groups)),
      .claims = copy_of(m, m->made_claims, m->n_claims * sizeof(*p->claims)),
      .perhaps =
          copy_of(m, m->made_perhaps, m->n_perhaps * sizeof(*p->perhaps)),
      .why = explanation_of(m),
      .cgroup = cgroup_of(m)};

  if (m->is_out_of_memory) {
    membership_release(m, &made);
    return;
  }
  p->has_changed_claims = !is_same_claims(m, p);
  membership_release(m, p);
  p->groups = made.groups;
  p->claims = made.claims;
  p->perhaps = made.perhaps;
  p->why = made.why;
  p->cgroup = made.cgroup;
  p->n_groups = (uint16_t)m->n_groups;
  p->n_claims = (uint16_t)m->n_claims;
  p->n_perhaps = (uint16_t)m->n_perhaps;
}

void membership_update(struct matcher *m, struct process *p,
                       const struct process *parent) {
  const struct process *source = parent ? parent : p;
  const struct inheritance inheritance = {
      .claims = source->claims, .n = source->n_claims, .is_orphan = !parent};

  m->is_out_of_memory = false;
  apply_rules(m, p, &inheritance);
  if (!m->is_out_of_memory)
    adopt_made(m, p);
  p->is_match_due = m->is_out_of_memory;
  if (!m->is_out_of_memory)
    return;
  release_groups(m, m->made_groups, m->n_groups);
  release_claims(m, m->made_claims, m->n_claims);
  /* Its groups are unknown; the groups that it had report themselves as
   * incomplete. */
  p->state = PROCESS_UNKNOWN;
  diag_note(m->diags, DIAG_FAILED, p, -ENOMEM, "names");
}
