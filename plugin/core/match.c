#include <smaps/match.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <smaps/identify.h>

/* Each but the first follows from what the one before has made or freed. */
#define PASSES_MAX 16

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
                 struct group_table *groups, struct trouble *troubles,
                 uint64_t (*clock_ns)(void)) {
  /* One group or claim for each rule at most, and Other. */
  size_t n = settings->n_rules + 1;
  int r = 0;

  *m = (struct matcher){
      .settings = settings,
      .groups = groups,
      .troubles = troubles,
      .clock_ns = clock_ns,
      .explains = settings_make_snapshots(settings),
      .attributes = settings_rule_attributes(settings),
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
  free(m->waiting);
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
                         const struct name *name, enum trouble_kind kind) {
  struct trouble *t = &m->troubles[kind];
  uint32_t key = group_table_key(m->groups, name->text);

  p->has_more_refused |= p->refused_name && p->refused_name != key;
  p->refused_name = key;
  if (t->count == 0)
    snprintf(t->name, sizeof(t->name), "%s", name->text);
  t->limit = m->groups->max_templates;
  identify_note(m->troubles, kind, p, 0, NULL);
}

/* --- why ------------------------------------------------------------------ */

static void add_also(struct matcher *m, size_t i) {
  if (m->n_also < EXPLAIN_MAX)
    m->also[m->n_also++] = (uint16_t)i;
}

static bool wants(struct matcher *m, const struct process *p,
                  const struct rule *rule) {
  struct captures captures;
  struct name name;

  return rule_match(rule, &m->identity, p->pid, &captures) > 0 &&
         (rule->is_ignore ||
          template_expand(&rule->name, &m->identity, &captures, &name));
}

/* Those below the one that decided. */
static void explain_rest(struct matcher *m, const struct process *p,
                         size_t first) {
  for (size_t i = first; m->explains && i < m->settings->n_rules; i++)
    if (wants(m, p, &m->settings->rules[i]))
      add_also(m, i);
}

/* --- by the rules --------------------------------------------------------- */

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
    note_refused(m, p, &name, TROUBLE_GROUP_REFUSED);
  if (r == GROUP_TOO_NEW)
    note_refused(m, p, &name, TROUBLE_NAME_REFUSED);
  if (r < 0)
    m->is_out_of_memory = true;
  return r == 0 ? TAKEN : REFUSED;
}

static enum verdict take(struct matcher *m, struct process *p, size_t i,
                         const struct inheritance *inheritance) {
  const struct rule *rule = &m->settings->rules[i];
  const struct claim *claim = find_inherited(inheritance, i);
  struct group *group;
  enum verdict by_name = take_by_name(m, p, rule, &group), verdict = by_name;

  if (verdict == PASSED && claim) {
    group = claim->group;
    verdict = TAKEN;
  }
  if (verdict == TAKEN && !rule->is_view) {
    m->rule = (uint16_t)i;
    m->is_inherited = by_name == PASSED;
  } else if (by_name != PASSED) {
    add_also(m, i);
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
  if (take_group(m, &name, true, other, &group) != 0)
    return;
  add_group(m, group);
  m->rule = (uint16_t)index_of(m, other);
}

static void try_rules(struct matcher *m, struct process *p,
                      const struct inheritance *inheritance) {
  enum verdict verdict = PASSED;
  size_t n = 0;

  m->identity = identity_get(&p->identity);
  m->n_groups = m->n_claims = 0;
  m->rule = NO_RULE;
  m->is_inherited = false;
  m->n_also = 0;
  p->refused_name = 0;
  p->has_more_refused = false;
  while (n < m->settings->n_rules && verdict == PASSED)
    verdict = take(m, p, n++, inheritance);
  explain_rest(m, p, n);
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

static int keep_why(const struct matcher *m, struct process *p) {
  struct explanation *why;
  size_t also = m->n_also * sizeof(m->also[0]);

  if (!m->explains)
    return 0;
  why = realloc(p->why, sizeof(*why) + also);
  if (!why)
    return -ENOMEM;
  why->rule = m->rule;
  why->is_inherited = m->is_inherited;
  why->n_also = m->n_also;
  memcpy(why->also, m->also, also);
  p->why = why;
  return 0;
}

static int make_room(const struct matcher *m, struct process *p) {
  void *groups = p->groups, *claims = p->claims;
  int r = resize(&groups, p->n_groups, m->n_groups, sizeof(*p->groups));

  p->groups = groups;
  if (r == 0)
    r = resize(&claims, p->n_claims, m->n_claims, sizeof(*p->claims));
  p->claims = claims;
  return r < 0 ? r : keep_why(m, p);
}

/* The process takes over what was made, references and all. */
static int keep(struct matcher *m, struct process *p) {
  int r = make_room(m, p);
  bool is_in_set;

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

/* --- in which order ------------------------------------------------------- */

static bool has_time(struct matcher *m, uint64_t budget_ns) {
  uint64_t now_ns = m->clock_ns();

  if (!m->began_ns)
    m->began_ns = now_ns;
  return now_ns - m->began_ns < budget_ns;
}

/* Whether rules may take long for it: a stranger can see to that. */
static bool is_long(const struct matcher *m, const struct process *p) {
  struct identity id = identity_get(&p->identity);

  for (int a = 0; a < ATTRIBUTES; a++)
    if ((m->attributes >> a) & 1 && id.value[a] &&
        strnlen(id.value[a], ORDINARY_MAX + 1) > ORDINARY_MAX)
      return true;
  return false;
}

/*
 * Half of the time is for those that were put off before, the longest waiting
 * first, and for long names: whoever renames his processes again and again puts
 * off others no longer than it takes to match each of his processes once. One
 * of those that wait always gets its turn.
 */
static bool may_match(struct matcher *m, const struct process *p,
                      const struct process *parent) {
  if (parent && parent->is_match_put_off)
    return false;
  if (!m->may_match_long)
    return p->put_offs == 0 && !is_long(m, p) &&
           has_time(m, MATCH_BUDGET_NS / 2);
  return has_time(m, MATCH_BUDGET_NS) || !m->has_matched_waiting;
}

/* Whether a name of it that MaxGroups kept out would come in now. */
static bool is_let_in(const struct matcher *m, const struct process *p) {
  return p->refused_name &&
         (!group_table_refuses(m->groups, p->refused_name) ||
          (p->has_more_refused && m->groups->made != m->made_before));
}

static void resolve(struct matcher *m, const struct process_table *t,
                    struct process *p) {
  const struct process *parent =
      m->take_children ? process_table_parent(t, p) : NULL;

  p->is_resolved = true;
  /* Also where it cannot be looked at in this cycle: it is told but once. */
  p->is_match_due |= (parent && parent->has_changed_claims) || is_let_in(m, p);
  if (p->state != PROCESS_ALIVE || !p->is_match_due)
    return;
  if (!may_match(m, p, parent)) {
    p->is_match_put_off = true;
    if (!m->may_match_long)
      m->waiting[m->n_waiting++] = p;
    return;
  }
  m->has_matched_waiting |= m->may_match_long;
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

static int grow(struct process ***array, size_t n) {
  struct process **grown = reallocarray(*array, n, sizeof(struct process *));

  if (!grown)
    return -ENOMEM;
  *array = grown;
  return 0;
}

static int make_chain_room(struct matcher *m, size_t n) {
  int r;

  if (n <= m->cap_chain)
    return 0;
  r = grow(&m->chain, n);
  if (r == 0)
    r = grow(&m->waiting, n);
  if (r == 0)
    m->cap_chain = n;
  return r;
}

/* All but those that wait. */
static void resolve_ordinary(struct matcher *m, const struct process_table *t) {
  m->may_match_long = false;
  m->n_waiting = 0;
  for (size_t i = 0; i < t->n; i++)
    t->processes[i]->is_resolved = t->processes[i]->is_waiting =
        t->processes[i]->is_match_put_off = false;
  for (size_t i = 0; i < t->n; i++)
    resolve_with_ancestors(m, t, t->processes[i]);
}

/* Who has waited longest first. */
static int compare_waiting(const void *a, const void *b) {
  const struct process *x = *(struct process *const *)a;
  const struct process *y = *(struct process *const *)b;

  if (x->put_offs != y->put_offs)
    return x->put_offs > y->put_offs ? -1 : 1;
  return (x->pid > y->pid) - (x->pid < y->pid);
}

static void resolve_waiting(struct matcher *m, const struct process_table *t) {
  m->may_match_long = true;
  if (m->n_waiting > 0)
    qsort(m->waiting, m->n_waiting, sizeof(struct process *), compare_waiting);
  for (size_t i = 0; i < m->n_waiting; i++) {
    m->waiting[i]->is_resolved = m->waiting[i]->is_match_put_off = false;
    m->waiting[i]->is_waiting = true;
  }
  for (size_t i = 0; i < m->n_waiting; i++)
    resolve_with_ancestors(m, t, m->waiting[i]);
}

static int compare_refused(const void *a, const void *b) {
  const struct process *x = *(struct process *const *)a;
  const struct process *y = *(struct process *const *)b;

  if (x->refusals != y->refusals)
    return x->refusals > y->refusals ? -1 : 1;
  return (x->pid > y->pid) - (x->pid < y->pid);
}

/* What there is room for goes to whom it was refused longest ago, and not to
 * newcomers: a service would never be let in beside processes that come and go
 * with ever new names. */
static void resolve_refused(struct matcher *m, const struct process_table *t) {
  size_t n = 0;

  m->may_match_long = true;
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];

    p->is_resolved = p->is_waiting = p->is_match_put_off = false;
    if (p->refused_name && p->state == PROCESS_ALIVE && is_let_in(m, p))
      m->waiting[n++] = p;
  }
  if (n > 0)
    qsort(m->waiting, n, sizeof(struct process *), compare_refused);
  for (size_t i = 0; i < n; i++)
    resolve_with_ancestors(m, t, m->waiting[i]);
}

static void forget_changes(const struct process_table *t) {
  for (size_t i = 0; i < t->n; i++)
    t->processes[i]->has_changed_claims = false;
}

/* Whoever is to be matched because of what became of others, behind whom it did
 * not come: descendants of those that waited, and all for whose group there is
 * room now. True for any. */
static bool find_followers(struct matcher *m, const struct process_table *t) {
  bool has_any = false;

  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];
    const struct process *parent =
        m->take_children ? process_table_parent(t, p) : NULL;

    if (p->is_match_due ||
        !((parent && parent->has_changed_claims && !p->is_waiting) ||
          is_let_in(m, p)))
      continue;
    p->is_match_due = true;
    has_any |= p->state == PROCESS_ALIVE;
  }
  m->made_before = m->groups->made;
  forget_changes(t);
  return has_any;
}

static void resolve_all(struct matcher *m, const struct process_table *t) {
  m->began_ns = 0;
  m->has_matched_waiting = false;
  forget_changes(t);
  resolve_refused(m, t);
  for (int i = 0; i < PASSES_MAX; i++) {
    resolve_ordinary(m, t);
    forget_changes(t);
    resolve_waiting(m, t);
    if (!find_followers(m, t))
      return;
  }
}

/* Who is due still was put off: its groups are not known. */
static void settle(struct matcher *m, struct process *p) {
  if (!p->refused_name)
    p->refusals = 0;
  else if (p->refusals < UINT16_MAX)
    p->refusals++;
  if (p->state != PROCESS_ALIVE)
    return;
  if (!p->is_match_due) {
    p->put_offs = 0;
    return;
  }
  p->state = PROCESS_UNKNOWN;
  if (p->put_offs < UINT16_MAX)
    p->put_offs++;
  identify_note(m->troubles, TROUBLE_MATCH_PUT_OFF, p, 0, NULL);
}

int matcher_run(struct matcher *m, struct process_table *t) {
  locale_t before;
  int r = make_chain_room(m, t->cap);

  if (r < 0)
    return r;
  before = uselocale(m->locale);
  resolve_all(m, t);
  uselocale(before);
  for (size_t i = 0; i < t->n; i++)
    settle(m, t->processes[i]);
  return 0;
}
