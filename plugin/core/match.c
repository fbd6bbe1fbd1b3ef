#include <smaps/match.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <smaps/identify.h>

/* Other is behind the last. */
static size_t index_of(const struct matcher *m, const struct rule *rule) {
  return rule == &m->settings->other ? m->settings->n_rules
                                     : (size_t)(rule - m->settings->rules);
}

static int take_group(struct matcher *m, const struct name *name, bool is_fixed,
                      const struct rule *rule, struct group **ret) {
  int r = group_table_take(m->groups, name->text, is_fixed, &rule->report, ret);

  if (r == 0 && !(*ret)->policy) {
    (*ret)->policy = &rule->policy;
    (*ret)->rule = index_of(m, rule);
    (*ret)->needs_executable =
        (rule_attributes(rule) >> ATTRIBUTE_EXECUTABLE) & 1;
  }
  return r;
}

static int add_fixed_group(struct matcher *m, const struct rule *r) {
  static const struct identity nobody;
  struct group *group;
  struct name name;

  if (r->is_ignore || r->name.n == 0 || !template_is_fixed(&r->name) ||
      !template_expand(&r->name, &nobody, NULL, &name))
    return 0;
  return take_group(m, &name, true, r, &group);
}

int matcher_init(struct matcher *m, const struct settings *settings,
                 struct group_table *groups, struct trouble *troubles) {
  /* One group or claim for each rule at most, and Other. */
  size_t n = settings->n_rules + 1;
  int r = 0;

  *m = (struct matcher){
      .settings = settings,
      .groups = groups,
      .troubles = troubles,
      .take_children = settings_take_children(settings),
      .locale = newlocale(LC_ALL_MASK, "C", (locale_t)0),
      .made_groups = reallocarray(NULL, n, sizeof(struct group *)),
      .made_claims = reallocarray(NULL, n, sizeof(struct claim))};
  if (!m->locale || !m->made_groups || !m->made_claims)
    r = -ENOMEM;
  for (size_t i = 0; r == 0 && i < settings->n_rules; i++)
    r = add_fixed_group(m, &settings->rules[i]);
  if (r == 0)
    r = add_fixed_group(m, &settings->other);
  if (r < 0)
    matcher_done(m);
  return r;
}

void matcher_done(struct matcher *m) {
  if (m->locale)
    freelocale(m->locale);
  free(m->made_groups);
  free(m->made_claims);
  free(m->chain);
  *m = (struct matcher){0};
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

void matcher_forget(struct matcher *m, struct process *p) {
  release_groups(m, p->groups, p->n_groups);
  release_claims(m, p->claims, p->n_claims);
  p->n_groups = 0;
  p->n_claims = 0;
}

/* Two rules can come to the same name: it counts once. */
static void add_group(struct matcher *m, struct group *group) {
  for (size_t i = 0; i < m->n_groups; i++)
    if (m->made_groups[i] == group)
      return;
  group->references++;
  m->made_groups[m->n_groups++] = group;
}

/* What a process has by its parent; by itself, for want of a parent, only what
 * it once had by one. */
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
                         const struct name *name) {
  struct trouble *t = &m->troubles[TROUBLE_GROUP_REFUSED];

  p->refused_name = (uint32_t)(name->hash ^ name->hash >> 32) | 1;
  if (t->count == 0)
    snprintf(t->name, sizeof(t->name), "%s", name->text);
  identify_note(m->troubles, TROUBLE_GROUP_REFUSED, p, 0, NULL);
}

enum verdict { PASSED, TAKEN, REFUSED };

/* Whether the rule takes the process by its own names; *ret is the group. */
static enum verdict take_by_name(struct matcher *m, struct process *p,
                                 const struct rule *rule, struct group **ret) {
  struct captures captures;
  struct name name;
  int r;

  *ret = NULL;
  r = rule_match(rule, &m->identity, p->pid, &captures);
  if (r < 0)
    m->is_out_of_memory = true;
  if (r <= 0)
    return PASSED;
  if (rule->is_ignore)
    return TAKEN;
  if (!template_expand(&rule->name, &m->identity, &captures, &name))
    return PASSED;
  r = take_group(m, &name, false, rule, ret);
  if (r == GROUP_REFUSED)
    note_refused(m, p, &name);
  if (r < 0)
    m->is_out_of_memory = true;
  return r == 0 ? TAKEN : REFUSED;
}

static enum verdict take(struct matcher *m, struct process *p, size_t i,
                         const struct inheritance *inheritance) {
  const struct rule *rule = &m->settings->rules[i];
  const struct claim *claim = find_inherited(inheritance, i);
  struct group *group;
  enum verdict verdict = take_by_name(m, p, rule, &group);

  if (verdict == PASSED && claim) {
    group = claim->group;
    verdict = TAKEN;
  }
  /* A view that is refused takes nothing away from the rules below. */
  if (verdict != TAKEN)
    return rule->is_view ? PASSED : verdict;
  if (group)
    add_group(m, group);
  if (rule->takes_children)
    add_claim(m, i, group, claim != NULL);
  return rule->is_view ? PASSED : TAKEN;
}

static void take_other(struct matcher *m) {
  const struct rule *other = &m->settings->other;
  struct group *group;
  struct name name;
  static const struct identity nobody;

  if (other->name.n == 0 ||
      !template_expand(&other->name, &nobody, NULL, &name))
    return;
  if (take_group(m, &name, true, other, &group) == 0)
    add_group(m, group);
}

static void try_rules(struct matcher *m, struct process *p,
                      const struct inheritance *inheritance) {
  enum verdict verdict = PASSED;

  m->identity = identity_get(&p->identity);
  m->n_groups = m->n_claims = 0;
  p->refused_name = 0;
  for (size_t i = 0; i < m->settings->n_rules && verdict == PASSED; i++)
    verdict = take(m, p, i, inheritance);
  if (verdict != TAKEN)
    take_other(m);
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

static int resize(void **array, size_t old, size_t n, size_t size) {
  void *grown;

  if (n <= old)
    return 0;
  grown = reallocarray(*array, n, size);
  if (!grown)
    return -ENOMEM;
  *array = grown;
  return 0;
}

static void release_made(struct matcher *m) {
  release_groups(m, m->made_groups, m->n_groups);
  release_claims(m, m->made_claims, m->n_claims);
}

/* The process takes over what was made, references and all. */
static int keep(struct matcher *m, struct process *p) {
  void *groups = p->groups, *claims = p->claims;
  int r = resize(&groups, p->n_groups, m->n_groups, sizeof(*p->groups));
  bool is_in_set;

  p->groups = groups;
  if (r == 0)
    r = resize(&claims, p->n_claims, m->n_claims, sizeof(*p->claims));
  p->claims = claims;
  if (r < 0) {
    release_made(m);
    return r;
  }
  /* With other members around it the reading would say something else. */
  is_in_set = p->family ||
              (p->n_groups && m->n_groups && p->groups[0] == m->made_groups[0]);
  p->has_changed_claims = !is_same_claims(m, p);
  matcher_forget(m, p);
  if (m->n_groups)
    memcpy(p->groups, m->made_groups, m->n_groups * sizeof(*p->groups));
  if (m->n_claims)
    memcpy(p->claims, m->made_claims, m->n_claims * sizeof(*p->claims));
  p->n_groups = (uint16_t)m->n_groups;
  p->n_claims = (uint16_t)m->n_claims;
  p->reading.at_ns = is_in_set ? p->reading.at_ns : 0;
  return 0;
}

static void match(struct matcher *m, struct process *p,
                  const struct process *parent) {
  const struct process *source = parent ? parent : p;
  const struct inheritance inheritance = {
      .claims = source->claims, .n = source->n_claims, .is_orphan = !parent};

  m->is_out_of_memory = false;
  try_rules(m, p, &inheritance);
  if (m->is_out_of_memory)
    release_made(m);
  else
    m->is_out_of_memory = keep(m, p) < 0;
  p->is_match_due = m->is_out_of_memory;
  if (!m->is_out_of_memory)
    return;
  /* Its groups are not known: those that it had lack it, and say so. */
  p->state = PROCESS_UNKNOWN;
  identify_note(m->troubles, TROUBLE_FAILED, p, -ENOMEM, "names");
}

static void resolve(struct matcher *m, const struct process_table *t,
                    struct process *p) {
  const struct process *parent =
      m->take_children ? process_table_parent(t, p) : NULL;

  p->is_resolved = true;
  if (p->state != PROCESS_ALIVE)
    return;
  if (parent && parent->has_changed_claims)
    p->is_match_due = true;
  if (p->refused_name && !group_table_is_full(m->groups))
    p->is_match_due = true;
  if (p->is_match_due)
    match(m, p, parent);
}

/* Ancestors first: what they come to is what their descendants inherit. The
 * ring that a broken tree can make ends where it closes. */
static void resolve_with_ancestors(struct matcher *m,
                                   const struct process_table *t,
                                   struct process *p) {
  size_t n = 0;

  while (p && !p->is_resolved && n < m->cap_chain) {
    p->is_resolved = true;
    m->chain[n++] = p;
    p = m->take_children ? process_table_parent(t, p) : NULL;
  }
  while (n > 0)
    resolve(m, t, m->chain[--n]);
}

static int make_chain_room(struct matcher *m, size_t n) {
  struct process **chain;

  if (n <= m->cap_chain)
    return 0;
  chain = reallocarray(m->chain, n, sizeof(struct process *));
  if (!chain)
    return -ENOMEM;
  m->chain = chain;
  m->cap_chain = n;
  return 0;
}

int matcher_run(struct matcher *m, struct process_table *t) {
  locale_t before;
  int r = make_chain_room(m, t->cap);

  if (r < 0)
    return r;
  for (size_t i = 0; i < t->n; i++) {
    t->processes[i]->is_resolved = false;
    t->processes[i]->has_changed_claims = false;
  }
  before = uselocale(m->locale);
  for (size_t i = 0; i < t->n; i++)
    resolve_with_ancestors(m, t, t->processes[i]);
  uselocale(before);
  return 0;
}

/* --- explaining --- */

static bool is_in_group(const struct process *p, const char *name) {
  for (size_t i = 0; i < p->n_groups; i++)
    if (strcmp(p->groups[i]->name, name) == 0)
      return true;
  return false;
}

/* Whether the rule selects it by its names; *ret_takes, whether that came to
 * anything: MaxGroups may have kept the group out. */
static bool wants(const struct rule *rule, const struct process *p,
                  const struct identity *id, bool *ret_takes) {
  struct captures captures;
  struct name name;

  *ret_takes = false;
  if (rule_match(rule, id, p->pid, &captures) <= 0)
    return false;
  if (!rule->is_ignore && !template_expand(&rule->name, id, &captures, &name))
    return false;
  *ret_takes = rule->is_ignore || is_in_group(p, name.text);
  return true;
}

static void explain_rule(const struct matcher *m, const struct process *p,
                         const struct identity *id, size_t i,
                         struct explanation *e) {
  const struct rule *rule = &m->settings->rules[i];
  const struct claim *claim = find_claim(p->claims, p->n_claims, i);
  bool takes, is_wanted = wants(rule, p, id, &takes);
  bool inherits = claim && claim->is_inherited;

  if (e->rule == NO_RULE && !rule->is_view && (takes || inherits)) {
    e->rule = i;
    e->is_inherited = !takes;
  } else if (is_wanted && e->n_also < EXPLAIN_MAX) {
    e->also[e->n_also++] = i;
  }
}

static bool is_in_other(const struct matcher *m, const struct process *p) {
  for (size_t i = 0; i < p->n_groups; i++)
    if (p->groups[i]->rule == m->settings->n_rules)
      return true;
  return false;
}

void matcher_explain(const struct matcher *m, const struct process *p,
                     struct explanation *ret) {
  struct identity id = identity_get(&p->identity);
  locale_t before = uselocale(m->locale);

  ret->rule = NO_RULE;
  ret->is_inherited = false;
  ret->n_also = 0;
  for (size_t i = 0; i < m->settings->n_rules; i++)
    explain_rule(m, p, &id, i, ret);
  if (ret->rule == NO_RULE && is_in_other(m, p))
    ret->rule = m->settings->n_rules;
  uselocale(before);
}
