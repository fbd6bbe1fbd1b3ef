#include "snapshot/last_known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "measure/aggregate.h"
#include "proc/array.h"

static int compare_names(const void *name, const void *element) {
  return strcmp(name, (*(struct last_known *const *)element)->name);
}

/* The index of the name, or the index to insert it at. */
static size_t find_place(const struct last_known_table *t, const char *name,
                         bool *ret_found) {
  return array_find(t->groups, t->n, sizeof(struct last_known *), name,
                    compare_names, ret_found);
}

const struct last_known *last_known_find(const struct last_known_table *t,
                                         const char *name) {
  bool is_found;
  size_t i = find_place(t, name, &is_found);

  return is_found ? t->groups[i] : NULL;
}

static int insert(struct last_known_table *t, size_t i, const char *name) {
  struct last_known *l = calloc(1, sizeof(*l)), **groups;

  groups =
      l ? array_insert(t->groups, &t->n, &t->cap, sizeof(*groups), i) : NULL;
  if (!groups) {
    free(l);
    return -ENOMEM;
  }
  t->groups = groups;
  groups[i] = l;
  memcpy(l->name, name, sizeof(l->name));
  return 0;
}

static void state_done(struct last_state *s) {
  for (size_t i = 0; s && i < LAST_KNOWN_MEMBERS; i++)
    attributes_done(&s->members[i].attributes);
}

static void forget_before(struct last_known *l) {
  state_done(l->before);
  free(l->before);
  l->before = NULL;
}

static void known_free(struct last_known *l) {
  state_done(&l->state);
  forget_before(l);
  free(l);
}

static void remove_at(struct last_known_table *t, size_t i) {
  known_free(t->groups[i]);
  array_remove(t->groups, &t->n, sizeof(struct last_known *), i);
}

/* --- groups --------------------------------------------------------------- */

static bool is_there(const struct scene *s, const struct last_member *m) {
  const struct process *p = process_table_find(s->processes, m->pid);

  return p && p->starttime_ticks == m->starttime_ticks &&
         (p->state == PROCESS_ALIVE || p->state == PROCESS_UNKNOWN);
}

/* The weight of the largest member; 0 without members. */
static uint64_t largest(const struct last_state *l) {
  return l && l->n > 0 ? l->members[0].weight : 0;
}

static bool is_any_there(const struct scene *s, const struct last_state *l) {
  for (size_t i = 0; i < l->n; i++)
    if (is_there(s, &l->members[i]))
      return true;
  return false;
}

/* Moves the state to `before`; the next state is a new one. */
static void keep_before(struct last_known *l) {
  if (!l->before)
    l->before = calloc(1, sizeof(*l->before));
  if (!l->before)
    return;
  state_done(l->before);
  *l->before = l->state;
  l->has_restarted = false;
  l->state = (struct last_state){.n = 0};
}

static void note_lost(struct last_known *l, const struct scene *s) {
  bool is_restart;

  if (l->state.n == 0 || is_there(s, &l->state.members[0]))
    return;
  is_restart = !is_any_there(s, &l->state);
  if (largest(&l->state) >= largest(l->before))
    keep_before(l);
  l->has_restarted |= is_restart;
}

static bool is_before_due(const struct last_known *l, const struct scene *s) {
  return l->before && s->cycle->now_ns - l->before->cycle_ns >
                          LAST_KNOWN_INTERVALS * s->settings->interval_ns;
}

static void note_state(struct last_state *l, const struct group *g,
                       const struct scene *s) {
  const struct cgroup_memory *cgroup = g->cgroup;
  uint64_t pss;

  l->cycle_ns = s->cycle->now_ns;
  l->time_ns = s->time_ns;
  l->usage = g->usage;
  l->change = (struct pss_change){.age_ns = 0};
  if (change_pss(&g->usage, s->cycle->kernel_fields, &pss))
    l->change = change_get(g, pss, l->cycle_ns);
  l->limit_bytes = 0;
  if (cgroup && cgroup_memory_has(cgroup, CGROUP_HAS_LIMIT) &&
      cgroup->limit < CGROUP_LIMIT_NONE)
    l->limit_bytes = cgroup->limit;
  l->n = 0;
}

static struct last_state *note_group(struct last_known_table *t,
                                     const struct group *g,
                                     const struct scene *s) {
  bool is_found;
  size_t place = find_place(t, g->name, &is_found);
  struct last_known *l;

  if (!is_found && insert(t, place, g->name) < 0)
    return NULL;
  l = t->groups[place];
  l->rule = g->rule;
  if (is_before_due(l, s))
    forget_before(l);
  note_lost(l, s);
  note_state(&l->state, g, s);
  return &l->state;
}

/* A group without members points to no state. */
static void note_groups(struct last_known_table *t, const struct scene *s) {
  for (size_t i = 0; i < s->groups->n; i++) {
    struct group *g = s->groups->groups[i];

    g->last = g->usage.processes > 0 ? note_group(t, g, s) : NULL;
  }
}

/* --- members -------------------------------------------------------------- */

static void add_member(struct last_state *l, const struct last_member *m) {
  size_t i = l->n;
  struct stored_attributes attributes;

  if (i == LAST_KNOWN_MEMBERS && l->members[--i].weight >= m->weight)
    return;
  l->n = i + 1;
  /* The attributes of the cycle before stay in some place until these are
   * known. */
  attributes = l->members[i].attributes;
  for (; i > 0 && l->members[i - 1].weight < m->weight; i--)
    l->members[i] = l->members[i - 1];
  l->members[i] = *m;
  l->members[i].attributes = attributes;
}

static void weigh(const struct scene *s, const struct process *p) {
  struct last_member m = {.process = p};
  struct estimate est;

  aggregate_estimate(s->aggregate, p, &est);
  m.has_pss = estimate_has_rollup(&est);
  m.weight = m.has_pss ? est.rollup.bytes[ROLLUP_PSS]
                       : p->statm.resident_pages * s->cycle->page_size;
  for (size_t i = 0; i < p->n_groups; i++)
    if (p->groups[i]->last)
      add_member(p->groups[i]->last, &m);
}

static void keep_member(struct last_member *m, const struct scene *s) {
  const struct process *p = m->process;
  struct estimate est;

  aggregate_estimate(s->aggregate, p, &est);
  aggregate_one(s->aggregate, p, &est, &m->usage);
  m->pid = p->pid;
  m->parent_pid = p->parent_pid;
  m->starttime_ticks = p->starttime_ticks;
  attributes_done(&m->attributes);
  m->attributes = attributes_share(&p->attributes);
  m->process = NULL;
}

static void note_members(const struct scene *s) {
  for (size_t i = 0; i < s->processes->n; i++) {
    const struct process *p = s->processes->processes[i];

    if (p->state == PROCESS_ALIVE && p->n_groups > 0 && !p->is_in_parents_mm)
      weigh(s, p);
  }
  for (size_t i = 0; i < s->groups->n; i++) {
    struct last_state *l = s->groups->groups[i]->last;

    for (size_t j = 0; l && j < l->n; j++)
      keep_member(&l->members[j], s);
  }
}

/* --- the end -------------------------------------------------------------- */

static size_t find_oldest(const struct last_known_table *t) {
  size_t oldest = 0;

  for (size_t i = 1; i < t->n; i++)
    if (t->groups[i]->state.cycle_ns < t->groups[oldest]->state.cycle_ns)
      oldest = i;
  return oldest;
}

/* Removes states that are too old, and the oldest if there are too many. */
static void forget_ended(struct last_known_table *t, uint64_t now_ns) {
  size_t ended = 0;

  for (size_t i = t->n; i-- > 0;) {
    uint64_t age_ns = now_ns - t->groups[i]->state.cycle_ns;

    if (age_ns >= LAST_KNOWN_NS)
      remove_at(t, i);
    else
      ended += age_ns > 0;
  }
  for (; ended > LAST_KNOWN_ENDED; ended--)
    remove_at(t, find_oldest(t));
}

const struct last_state *last_known_ended(const struct last_known *l,
                                          const struct scene *s,
                                          bool has_members, bool is_kill) {
  bool is_larger = largest(l->before) > largest(&l->state);

  if (!has_members)
    return is_larger && (is_kill || !l->has_restarted) ? l->before : &l->state;
  return l->before && !is_any_there(s, l->before) ? l->before : NULL;
}

void last_known_note(struct last_known_table *t, const struct scene *s) {
  note_groups(t, s);
  note_members(s);
  forget_ended(t, s->cycle->now_ns);
}

void last_known_done(struct last_known_table *t) {
  for (size_t i = 0; i < t->n; i++)
    known_free(t->groups[i]);
  free(t->groups);
  *t = (struct last_known_table){.groups = NULL};
}
