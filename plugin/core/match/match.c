#include "match/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "match/membership.h"

/* Each further pass handles processes that the pass before has made due. */
#define PASSES_MAX 16

int matcher_init(struct matcher *m, const struct settings *settings,
                 struct group_table *groups, struct diag *diags,
                 uint64_t (*clock_ns)(void)) {
  /* At most one group or claim for each rule, and for Other. */
  size_t n = settings->n_rules + 1;
  int rc = 0;

  *m = (struct matcher){
      .settings = settings,
      .groups = groups,
      .diags = diags,
      .clock_ns = clock_ns,
      .explains = settings_has_snapshots(settings),
      .wanted_attributes = settings_rule_attributes(settings),
      .has_children_rules = settings_has_children_rules(settings),
      .locale = newlocale(LC_ALL_MASK, "C", (locale_t)0),
      .made_groups = reallocarray(NULL, n, sizeof(struct group *)),
      .made_claims = reallocarray(NULL, n, sizeof(struct claim)),
      .made_perhaps = reallocarray(NULL, n, sizeof(struct group *)),
      .fixed = calloc(n, sizeof(struct group *))};
  if (!m->locale || !m->made_groups || !m->made_claims || !m->made_perhaps ||
      !m->fixed)
    rc = -ENOMEM;
  if (rc == 0)
    rc = membership_add_fixed_groups(m);
  if (rc < 0)
    matcher_done(m);
  return rc;
}

void matcher_done(struct matcher *m) {
  if (m->locale)
    freelocale(m->locale);
  free(m->made_groups);
  free(m->made_claims);
  free(m->made_perhaps);
  free(m->fixed);
  cgroup_tree_done(&m->cgroups);
  free(m->chain);
  *m = (struct matcher){0};
}

void matcher_forget(struct matcher *m, struct process *p) {
  membership_release(m, p);
}

/* --- order and time ------------------------------------------------------- */

static bool has_time(struct matcher *m, uint64_t budget_ns) {
  uint64_t now_ns = m->clock_ns();

  if (!m->began_ns)
    m->began_ns = now_ns;
  return now_ns - m->began_ns < budget_ns;
}

/* True if matching the process may take long, which untrusted users can
 * cause. */
static bool is_long(const struct matcher *m, const struct process *p) {
  struct attributes id = attributes_get(&p->attributes);

  for (int a = 0; a < ATTRIBUTES; a++)
    if ((m->wanted_attributes >> a) & 1 && id.value[a] &&
        strnlen(id.value[a], ORDINARY_MAX + 1) > ORDINARY_MAX)
      return true;
  return false;
}

/*
 * Half of the time is for processes that were deferred before, those deferred
 * most often first, and for long names: a user who keeps renaming processes
 * defers others only until each of those processes was matched once. At least
 * one waiting process is matched in each cycle.
 */
static bool may_match(struct matcher *m, const struct process *p,
                      const struct process *parent) {
  if (parent && parent->is_match_deferred)
    return false;
  if (!m->may_match_long)
    return p->times_deferred == 0 && !is_long(m, p) &&
           has_time(m, MATCH_BUDGET_NS / 2);
  return has_time(m, MATCH_BUDGET_NS) || !m->has_matched_waiting;
}

/* True if MaxGroups would now accept any name that it refused. */
static bool is_admitted_now(const struct matcher *m, const struct process *p) {
  return p->refused_name && !group_table_is_full(m->groups);
}

static void resolve(struct matcher *m, const struct process_table *t,
                    struct process *p) {
  const struct process *parent =
      m->has_children_rules ? process_table_parent(t, p) : NULL;

  p->is_resolved = true;
  /* Set even while its state is unknown: the parent's change is visible in this
   * cycle only. */
  p->is_match_due |=
      (parent && parent->has_changed_claims) || is_admitted_now(m, p);
  if (p->state != PROCESS_ALIVE || !p->is_match_due)
    return;
  if (!may_match(m, p, parent)) {
    p->is_match_deferred = true;
    if (!m->may_match_long)
      m->waiting[m->n_waiting++] = p;
    return;
  }
  m->has_matched_waiting |= m->may_match_long;
  membership_update(m, p, parent);
}

/* Resolves ancestors first, because their claims are inherited. A broken tree
 * can contain a ring; the chain ends where it closes. */
static void resolve_with_ancestors(struct matcher *m,
                                   const struct process_table *t,
                                   struct process *p) {
  size_t n = 0;

  while (p && !p->is_resolved && n < m->cap_chain) {
    p->is_resolved = true;
    m->chain[n++] = p;
    p = m->has_children_rules ? process_table_parent(t, p) : NULL;
  }
  while (n > 0)
    resolve(m, t, m->chain[--n]);
}

/* Both in one piece, which lasts for a cycle. */
static int make_chain_room(struct matcher *m, size_t n) {
  struct process **chain;

  if (n <= m->cap_chain)
    return 0;
  chain = reallocarray(m->chain, n, 2 * sizeof(*chain));
  if (!chain)
    return -ENOMEM;
  m->chain = chain;
  m->waiting = chain + n;
  m->cap_chain = n;
  return 0;
}

static void begin_pass(struct matcher *m, const struct process_table *t,
                       bool may_match_long) {
  m->may_match_long = may_match_long;
  m->n_waiting = 0;
  for (size_t i = 0; i < t->n; i++)
    t->processes[i]->is_resolved = t->processes[i]->is_waiting =
        t->processes[i]->is_match_deferred = false;
}

/* Resolves the ordinary processes and collects those that wait. */
static void resolve_ordinary(struct matcher *m, const struct process_table *t) {
  begin_pass(m, t, false);
  for (size_t i = 0; i < t->n; i++)
    resolve_with_ancestors(m, t, t->processes[i]);
}

/* The most deferred process comes first. */
static int compare_waiting(const void *a, const void *b) {
  const struct process *x = *(struct process *const *)a;
  const struct process *y = *(struct process *const *)b;

  if (x->times_deferred != y->times_deferred)
    return x->times_deferred > y->times_deferred ? -1 : 1;
  return (x->pid > y->pid) - (x->pid < y->pid);
}

static void resolve_sorted(struct matcher *m, const struct process_table *t,
                           int (*compare)(const void *, const void *)) {
  if (m->n_waiting > 0)
    qsort(m->waiting, m->n_waiting, sizeof(struct process *), compare);
  for (size_t i = 0; i < m->n_waiting; i++)
    resolve_with_ancestors(m, t, m->waiting[i]);
}

static void resolve_waiting(struct matcher *m, const struct process_table *t) {
  m->may_match_long = true;
  for (size_t i = 0; i < m->n_waiting; i++) {
    m->waiting[i]->is_resolved = m->waiting[i]->is_match_deferred = false;
    m->waiting[i]->is_waiting = true;
  }
  resolve_sorted(m, t, compare_waiting);
}

static int compare_refused(const void *a, const void *b) {
  const struct process *x = *(struct process *const *)a;
  const struct process *y = *(struct process *const *)b;

  if (x->refusals != y->refusals)
    return x->refusals > y->refusals ? -1 : 1;
  return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Gives free places to processes whose names were refused for the longest time,
 * not to newcomers: otherwise processes that come and go with ever new names
 * would keep a service out. */
static void resolve_refused(struct matcher *m, const struct process_table *t) {
  begin_pass(m, t, true);
  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];

    if (p->refused_name && p->state == PROCESS_ALIVE && is_admitted_now(m, p))
      m->waiting[m->n_waiting++] = p;
  }
  resolve_sorted(m, t, compare_refused);
}

static void clear_changes(const struct process_table *t) {
  for (size_t i = 0; i < t->n; i++)
    t->processes[i]->has_changed_claims = false;
}

/* Marks the processes that became due through others in this pass: descendants
 * of processes that waited, and processes whose refused name may be that of a
 * group by now. True if any is alive. */
static bool mark_followers(struct matcher *m, const struct process_table *t) {
  bool has_any = false;

  for (size_t i = 0; i < t->n; i++) {
    struct process *p = t->processes[i];
    const struct process *parent =
        m->has_children_rules ? process_table_parent(t, p) : NULL;

    if (p->is_match_due ||
        !((parent && parent->has_changed_claims && !p->is_waiting) ||
          membership_may_be_made(m, p)))
      continue;
    p->is_match_due = true;
    has_any |= p->state == PROCESS_ALIVE;
  }
  m->made_names = 0;
  clear_changes(t);
  return has_any;
}

static void resolve_all(struct matcher *m, const struct process_table *t) {
  m->began_ns = 0;
  m->has_matched_waiting = false;
  clear_changes(t);
  resolve_refused(m, t);
  for (int i = 0; i < PASSES_MAX; i++) {
    resolve_ordinary(m, t);
    clear_changes(t);
    resolve_waiting(m, t);
    if (!mark_followers(m, t))
      return;
  }
}

/* A live process that is still due was deferred: its groups are unknown. */
static void finish_process(struct matcher *m, struct process *p) {
  if (!p->refused_name)
    p->refusals = 0;
  else if (p->refusals < UINT16_MAX)
    p->refusals++;
  if (p->state != PROCESS_ALIVE)
    return;
  if (!p->is_match_due) {
    p->times_deferred = 0;
    return;
  }
  p->state = PROCESS_UNKNOWN;
  if (p->times_deferred < UINT16_MAX)
    p->times_deferred++;
  diag_note(m->diags, DIAG_MATCH_DEFERRED, p, 0, NULL);
}

int matcher_run(struct matcher *m, struct process_table *t) {
  locale_t before;
  int rc = make_chain_room(m, t->cap);

  if (rc < 0)
    return rc;
  before = uselocale(m->locale);
  resolve_all(m, t);
  uselocale(before);
  for (size_t i = 0; i < t->n; i++)
    finish_process(m, t->processes[i]);
  return 0;
}
