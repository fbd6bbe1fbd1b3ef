/* SPDX-License-Identifier: MIT */
#include "match/match.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int matcher_init(struct matcher *m, const struct settings *settings,
                 struct group_table *groups, struct diag *diags,
                 uint64_t (*clock_ns)(void)) {
  *m = (struct matcher){.clock_ns = clock_ns};
  return match_rules_init(&m->rules, settings, groups, diags);
}

void matcher_done(struct matcher *m) {
  match_rules_done(&m->rules);
  free(m->chain);
  *m = (struct matcher){.chain = NULL};
}

/* --- the time ------------------------------------------------------------- */

/* The first match of a cycle starts the clock. */
static void start_clock(struct matcher *m) {
  if (!m->began_ns)
    m->began_ns = m->clock_ns();
}

static bool has_time(const struct matcher *m, uint64_t budget_ns) {
  return !m->began_ns || m->clock_ns() - m->began_ns < budget_ns;
}

/* True if matching the process may take long, which untrusted users can
 * cause. */
static bool is_long(const struct matcher *m, const struct process *p) {
  struct attributes id = attributes_get(&p->attributes);

  for (int a = 0; a < ATTRIBUTES; a++)
    if ((m->rules.settings->rule_attributes >> a) & 1 && id.value[a] &&
        strnlen(id.value[a], ORDINARY_MAX + 1) > ORDINARY_MAX)
      return true;
  return false;
}

static bool may_match(const struct matcher *m, const struct process *p,
                      const struct process *parent) {
  if (parent && parent->membership.progress == MATCH_DEFERRED)
    return false;
  if (m->pass == PASS_ORDINARY)
    return p->membership.times_deferred == 0 && !is_long(m, p) &&
           has_time(m, MATCH_BUDGET_NS / 2);
  return has_time(m, MATCH_BUDGET_NS) || !m->has_matched_slow;
}

/* --- one process, after its ancestors ------------------------------------- */

static void set_progress(struct process *p, enum match_progress to) {
  switch (to) {
  case MATCH_OPEN:
    /* A cycle begins; or its last pass, for the processes in the queue. */
    break;
  case MATCH_RESOLVED:
    /* A pass has reached it, and resolves it after its ancestors. */
    assert(p->membership.progress == MATCH_OPEN);
    break;
  case MATCH_DEFERRED:
    /* It is due and may not be matched now. */
    assert(p->membership.progress == MATCH_RESOLVED);
    break;
  }
  p->membership.progress = to;
}

/* The parent from which the process inherits claims, or NULL. */
static struct process *parent_of(const struct matcher *m,
                                 const struct process_table *t,
                                 const struct process *p) {
  return m->rules.settings->has_children_rules ? process_table_parent(t, p)
                                               : NULL;
}

/* Makes the process due if the claims of its parent have changed, or if a group
 * that was refused to it may exist by now. */
static void note_due(const struct matcher *m, struct process *p,
                     const struct process *parent) {
  p->is_match_due |= (parent && parent->membership.has_changed_claims) ||
                     (p->membership.refused_names & m->rules.made_names) != 0;
}

static void defer(struct matcher *m, struct process *p) {
  set_progress(p, MATCH_DEFERRED);
  if (m->pass == PASS_ORDINARY)
    m->waiting[m->n_waiting++] = p;
}

static void resolve(struct matcher *m, const struct process_table *t,
                    struct process *p) {
  const struct process *parent = parent_of(m, t, p);

  /* Even while its state is unknown, for the next cycle. */
  note_due(m, p, parent);
  if (p->state != PROCESS_ALIVE || !p->is_match_due)
    return;
  if (!may_match(m, p, parent)) {
    defer(m, p);
    return;
  }
  start_clock(m);
  m->has_matched_slow |= m->pass != PASS_ORDINARY;
  match_one(&m->rules, p, parent);
}

/* Resolves ancestors first, because their claims are inherited. A broken tree
 * can contain a ring; the chain ends where it closes: at a process that is not
 * open any more. So no process is in it twice, and it has room for all. */
static void resolve_with_ancestors(struct matcher *m,
                                   const struct process_table *t,
                                   struct process *p) {
  size_t n = 0;

  while (p && p->membership.progress == MATCH_OPEN) {
    set_progress(p, MATCH_RESOLVED);
    m->chain[n++] = p;
    p = parent_of(m, t, p);
  }
  while (n > 0)
    resolve(m, t, m->chain[--n]);
}

/* --- the passes ----------------------------------------------------------- */

/* Makes room for chain and waiting, in one array that lasts for a cycle. */
static int make_room(struct matcher *m, size_t n) {
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

/* Makes processes due because of those that came after them in the last cycle.
 */
static void begin(struct matcher *m, const struct process_table *t) {
  m->began_ns = 0;
  m->has_matched_slow = false;
  m->n_waiting = 0;
  for (size_t i = 0; i < t->n; i++)
    note_due(m, t->processes[i], parent_of(m, t, t->processes[i]));
  m->rules.made_names = 0;
  for (size_t i = 0; i < t->n; i++) {
    t->processes[i]->membership.has_changed_claims = false;
    set_progress(t->processes[i], MATCH_OPEN);
  }
}

/* The number of cycles that a process has waited: for time, or for its name. */
static unsigned waiting_of(const struct process *p) {
  return p->membership.progress == MATCH_DEFERRED ? p->membership.times_deferred
                                                  : p->membership.times_refused;
}

/* The process that has waited longest comes first. */
static int compare_waiting(const void *a, const void *b) {
  const struct process *x = *(struct process *const *)a;
  const struct process *y = *(struct process *const *)b;

  if (waiting_of(x) != waiting_of(y))
    return waiting_of(x) > waiting_of(y) ? -1 : 1;
  return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Sorts the first n of m->waiting. */
static void sort_waiting(struct matcher *m, size_t n) {
  if (n > 0)
    qsort(m->waiting, n, sizeof(struct process *), compare_waiting);
}

/* Gives free places to processes whose names were refused for the longest time,
 * not to newcomers: otherwise processes that come and go with ever new names
 * would keep a service out. */
static void resolve_refused(struct matcher *m, const struct process_table *t) {
  const struct group_table *groups = m->rules.groups;
  size_t n = 0;

  m->pass = PASS_REFUSED;
  for (size_t i = 0; i < t->n && !group_table_is_full(groups); i++)
    if (t->processes[i]->membership.refused_names &&
        t->processes[i]->state == PROCESS_ALIVE)
      m->waiting[n++] = t->processes[i];
  sort_waiting(m, n);
  for (size_t i = 0; i < n && !group_table_is_full(groups); i++) {
    m->waiting[i]->is_match_due = true;
    resolve_with_ancestors(m, t, m->waiting[i]);
  }
}

/* After this pass the descendants of each process that it has matched have
 * followed the change; only the last pass makes others due. */
static void resolve_ordinary(struct matcher *m, const struct process_table *t) {
  m->pass = PASS_ORDINARY;
  for (size_t i = 0; i < t->n; i++)
    resolve_with_ancestors(m, t, t->processes[i]);
  for (size_t i = 0; i < t->n; i++)
    t->processes[i]->membership.has_changed_claims = false;
}

static void resolve_waiting(struct matcher *m, const struct process_table *t) {
  m->pass = PASS_WAITING;
  sort_waiting(m, m->n_waiting);
  for (size_t i = 0; i < m->n_waiting; i++)
    set_progress(m->waiting[i], MATCH_OPEN);
  for (size_t i = 0; i < m->n_waiting; i++)
    resolve_with_ancestors(m, t, m->waiting[i]);
}

static void count_up(uint16_t *n) {
  if (*n < UINT16_MAX)
    ++*n;
}

/* A live process that is still due was deferred: its groups are unknown. */
static void finish_process(struct matcher *m, struct process *p) {
  struct membership *membership = &p->membership;

  if (membership->refused_names)
    count_up(&membership->times_refused);
  else
    membership->times_refused = 0;
  if (p->state != PROCESS_ALIVE)
    return;
  if (!p->is_match_due) {
    membership->times_deferred = 0;
    return;
  }
  process_set_state(p, PROCESS_UNKNOWN);
  count_up(&membership->times_deferred);
  diag_note(m->rules.diags, DIAG_MATCH_DEFERRED, p, 0, NULL);
}

int matcher_run(struct matcher *m, struct process_table *t) {
  locale_t before;
  int rc = make_room(m, t->n);

  if (rc < 0)
    return rc;
  before = uselocale(m->rules.locale);
  begin(m, t);
  resolve_refused(m, t);
  resolve_ordinary(m, t);
  resolve_waiting(m, t);
  uselocale(before);
  for (size_t i = 0; i < t->n; i++)
    finish_process(m, t->processes[i]);
  return 0;
}
