/* SPDX-License-Identifier: MIT */
#include "snapshot/last_known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* s may be NULL. */
static void forget_members(struct last_state *s) {
  while (s && s->n > 0)
    attributes_done(&s->members[--s->n].attributes);
}

static void forget_before(struct last_known *l) {
  forget_members(l->before);
  free(l->before);
  l->before = NULL;
}

static void forget(struct group *g) {
  if (!g->last)
    return;
  forget_members(&g->last->state);
  forget_before(g->last);
  free(g->last);
  g->last = NULL;
}

/* --- groups --------------------------------------------------------------- */

static bool is_there(const struct scene *s, const struct last_member *m) {
  const struct process *p =
      process_table_find_same(s->processes, m->pid, m->starttime_ticks);

  return p && (p->state == PROCESS_ALIVE || p->state == PROCESS_UNKNOWN);
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
  forget_members(l->before);
  *l->before = l->state;
  l->has_restarted = false;
  l->state.n = 0;
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

struct summary last_known_sum_up(const struct group *g, const struct scene *s) {
  const struct usage *u = &g->usage;
  const struct cgroup_memory *cgroup = g->cgroup;
  struct summary sum = {
      .has_pss = (s->cycle->kernel_fields >> ROLLUP_PSS & 1) && !u->is_unseen &&
                 usage_is_known(u) &&
                 (u->rolled_up == 0 || rollup_has(&u->rollup, ROLLUP_PSS))};

  if (sum.has_pss) {
    sum.pss_bytes = u->rollup.bytes[ROLLUP_PSS];
    sum.pss_error = usage_pss_error(u);
  }
  if (cgroup && cgroup_memory_has(cgroup, CGROUP_HAS_LIMIT) &&
      cgroup->limit < CGROUP_LIMIT_NONE)
    sum.limit_bytes = cgroup->limit;
  return sum;
}

/* From the oldest point of its growth, an hour ago with the default window, or
 * from the lowest amount before there is one. */
static struct pss_change change_of(const struct group *g, uint64_t now_ns) {
  const struct growth *growth = g->growth;
  const struct growth_point *first =
      growth->n > 0 ? &growth->points[0] : &growth->lowest;

  if (!first->time_ns || now_ns - first->time_ns < NS_PER_S)
    return (struct pss_change){.age_ns = 0};
  return (struct pss_change){
      .bytes = (int64_t)(usage_filling(&g->usage) - first->bytes),
      .age_ns = now_ns - first->time_ns};
}

static void note_state(struct last_known *l, const struct group *g,
                       const struct scene *s) {
  uint64_t now_ns = s->cycle->now_ns;
  struct summary sum = last_known_sum_up(g, s);

  if (sum.has_pss)
    sum.change = change_of(g, now_ns);
  l->state.group = g;
  l->state.cycle_ns = now_ns;
  l->state.time_ns = s->time_ns;
  l->state.usage = g->usage;
  l->state.summary = sum;
  forget_members(&l->state);
}

static void note_group(struct group *g, const struct scene *s) {
  struct last_known *l = g->last;
  uint64_t now_ns = s->cycle->now_ns;

  if (g->usage.processes == 0) {
    if (l && now_ns - l->state.cycle_ns >= LAST_KNOWN_NS)
      forget(g);
    return;
  }
  if (!l && !(l = g->last = calloc(1, sizeof(*l))))
    return;
  if (l->before && now_ns - l->before->cycle_ns >
                       LAST_KNOWN_INTERVALS * s->settings->interval_ns)
    forget_before(l);
  note_lost(l, s);
  note_state(l, g, s);
}

/* --- members -------------------------------------------------------------- */

static void add_member(struct last_state *l, const struct last_member *m) {
  size_t i = l->n;

  if (i == LAST_KNOWN_MEMBERS && l->members[--i].weight >= m->weight)
    return;
  l->n = i + 1;
  for (; i > 0 && l->members[i - 1].weight < m->weight; i--)
    l->members[i] = l->members[i - 1];
  l->members[i] = *m;
}

uint64_t last_known_weigh(const struct scene *s, const struct process *p) {
  struct estimate est;

  aggregate_estimate(s->aggregate, p, &est);
  return estimate_has_rollup(&est)
             ? est.rollup.bytes[ROLLUP_PSS]
             : p->statm.resident_pages * s->cycle->page_size;
}

static void note_member(const struct scene *s, const struct process *p) {
  struct last_member m = {.process = p, .weight = last_known_weigh(s, p)};

  for (size_t i = 0; i < p->n_groups; i++)
    if (p->groups[i]->last)
      add_member(&p->groups[i]->last->state, &m);
}

static void keep_member(struct last_member *m, const struct scene *s) {
  const struct process *p = m->process;
  struct estimate est;

  aggregate_estimate(s->aggregate, p, &est);
  aggregate_one(s->aggregate, p, &est, &m->usage);
  m->pid = p->pid;
  m->parent_pid = p->parent_pid;
  m->starttime_ticks = p->starttime_ticks;
  m->attributes = attributes_share(&p->attributes);
  m->process = NULL;
}

static void note_members(const struct scene *s) {
  for (size_t i = 0; i < s->processes->n; i++) {
    const struct process *p = s->processes->processes[i];

    if (p->state == PROCESS_ALIVE && !p->is_in_parents_mm)
      note_member(s, p);
  }
  for (size_t i = 0; i < s->groups->n; i++) {
    const struct group *g = s->groups->groups[i];
    size_t n = g->last && g->usage.processes > 0 ? g->last->state.n : 0;

    for (size_t j = 0; j < n; j++)
      keep_member(&g->last->state.members[j], s);
  }
}

/* --- summaries ------------------------------------------------------------ */

static void add_largest(struct summary *sum, const struct last_member *m,
                        const char *comm, bool has_pss) {
  struct summary_process *p = &sum->largest[sum->n++];

  *p = (struct summary_process){
      .pid = m->pid, .has_pss = has_pss, .bytes = m->weight};
  escape_word(comm ? comm : "?", p->comm, sizeof(p->comm));
}

static void add_last(struct summary *sum, const struct last_member *m) {
  add_largest(sum, m, attributes_get(&m->attributes).value[ATTRIBUTE_COMM],
              m->usage.rolled_up > 0);
}

struct summary last_known_summary(const struct last_state *l) {
  struct summary sum = l->summary;

  for (size_t i = 0; i < l->n && i < SUMMARY_PROCESSES; i++)
    add_last(&sum, &l->members[i]);
  return sum;
}

struct summary last_known_past(const struct last_state *l,
                               const struct scene *s) {
  struct summary sum = last_known_summary(l);

  sum.has_ended = true;
  sum.ended_ns = s->cycle->now_ns - l->cycle_ns;
  return sum;
}

void last_known_note_gone(const struct group *g, const struct scene *s) {
  struct last_known *l = g->last;
  struct summary sum = {.n = 0};

  if (!l)
    return;
  for (size_t i = 0; i < l->state.n && sum.n == 0; i++)
    if (!is_there(s, &l->state.members[i]))
      add_last(&sum, &l->state.members[i]);
  if (sum.n > 0 && (!l->gone.pid || sum.largest[0].bytes > l->gone.bytes))
    l->gone = sum.largest[0];
}

struct summary last_known_now(const struct group *g, const struct scene *s) {
  struct summary sum = last_known_sum_up(g, s);
  struct last_state found = {.n = 0};

  for (size_t i = 0; i < s->processes->n; i++) {
    const struct process *p = s->processes->processes[i];

    if (process_counts_in(p, g))
      add_member(&found,
                 &(struct last_member){.process = p,
                                       .pid = p->pid,
                                       .weight = last_known_weigh(s, p)});
  }
  for (size_t i = 0; i < found.n && i < SUMMARY_PROCESSES; i++) {
    const struct process *p = found.members[i].process;
    struct estimate est;

    aggregate_estimate(s->aggregate, p, &est);
    add_largest(&sum, &found.members[i],
                attributes_get(&p->attributes).value[ATTRIBUTE_COMM],
                estimate_has_rollup(&est));
  }
  return sum;
}

/* --- the end -------------------------------------------------------------- */

const struct last_state *last_known_ended(const struct group *g,
                                          const struct scene *s, bool is_kill) {
  const struct last_known *l = g->last;

  if (!l)
    return NULL;
  if (g->usage.processes == 0)
    return largest(l->before) > largest(&l->state) &&
                   (is_kill || !l->has_restarted)
               ? l->before
               : &l->state;
  return is_kill && l->before && !is_any_there(s, l->before) ? l->before : NULL;
}

void last_known_note(const struct scene *s) {
  for (size_t i = 0; i < s->groups->n; i++)
    note_group(s->groups->groups[i], s);
  note_members(s);
}

void last_known_done(const struct group_table *groups) {
  for (size_t i = 0; i < groups->n; i++)
    forget(groups->groups[i]);
}
