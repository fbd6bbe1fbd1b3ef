/* SPDX-License-Identifier: MIT */
#include "match/unseen.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cgroup/cgroup.h"
#include "config/rule.h"
#include "proc/cheap_files.h"

static void mark(struct group *const *groups, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (groups[i] && groups[i]->usage.processes == 0)
      groups[i]->usage.is_unseen = true;
}

/* Notes that the process may be a member of the group, by one rule or by
 * several; without any other member the values of the group are unknown. A
 * process that was a member before is counted as a member anyway. */
static void note(struct group *g, const struct process *p, uint64_t page_size) {
  for (size_t i = 0; i < p->n_groups; i++)
    if (p->groups[i] == g)
      return;
  mark(&g, 1);
  if (g->usage.perhaps_pid == p->pid)
    return;
  g->usage.perhaps_pid = p->pid;
  g->usage.perhaps++;
  g->usage.perhaps_bytes += p->statm.resident_pages * page_size;
}

/* While the PID file of a rule cannot be read, its group may not be empty. */
static void mark_groups_of_pid_files(const struct match_rules *m) {
  for (size_t i = 0; i < m->settings->n_rules; i++)
    if (rule_is_blind(&m->settings->rules[i]))
      mark(&m->fixed[i], 1);
}

/* The parent from which a process inherits groups. */
struct descent {
  bool is_known;
  const struct process *parent; /* NULL: it inherits none */
};

static struct descent find_descent(struct procfs *procfs,
                                   const struct process_table *t,
                                   const struct process *p) {
  struct status_sample s;
  struct descent d = {.is_known = status_read_of(procfs, p->pid, &s) == 0 &&
                                  s.known & STATUS_PARENT};

  if (d.is_known)
    d.parent = process_table_find(t, s.parent_pid);
  d.is_known &= !d.parent || !process_is_unidentified(d.parent);
  return d;
}

/* True if the process may inherit the group by the rule of that index. */
static bool may_inherit(const struct descent *d, const struct group *g,
                        size_t rule) {
  if (!d->is_known)
    return g->rule == rule;
  for (size_t i = 0; d->parent && i < d->parent->n_claims; i++)
    if (d->parent->claims[i].group == g && d->parent->claims[i].rule == rule)
      return true;
  return false;
}

/* A descendant inherits its group from a process of any name, and Other takes
 * all processes that are left. If the name of the rule's group is unknown, it
 * can be any group that the rule has made. */
static void note_groups_of_glimpse(const struct match_rules *m,
                                   const struct process *p,
                                   const struct glimpse *glimpse,
                                   const struct descent *descent,
                                   uint64_t page_size) {
  const struct group_table *t = m->groups;

  for (size_t i = 0; i <= m->settings->n_rules; i++) {
    const struct rule *rule = match_rule_at(m, i);
    bool could_match = rule_could_match(rule, glimpse);
    struct group_name name;
    bool has_name;

    if (!rule->takes_children && !could_match)
      continue;
    has_name = template_expand(rule->name, &glimpse->id, NULL, &name);
    for (size_t j = 0; j < t->n; j++) {
      struct group *g = t->groups[j];

      if ((could_match &&
           (has_name ? strcmp(name.text, g->name) == 0 : g->rule == i)) ||
          (rule->takes_children && may_inherit(descent, g, i)))
        note(g, p, page_size);
    }
    if (!rule->is_view && match_would_take(rule, &glimpse->id, glimpse->pid))
      return;
  }
}

/* False if it is unknown which of the attributes the process has. */
static bool read_cgroup(struct procfs *procfs, uint32_t pid,
                        struct stored_attributes *ret) {
  static const struct stored_attributes none;
  struct span value[ATTRIBUTES] = {{0}};
  struct cgroup_containers containers;
  struct span text, path;

  if (procfs_read(procfs, pid, "cgroup", &text) != 0 ||
      cgroup_parse(text.text, text.len, &path) != 0)
    return false;
  attributes_set_cgroup(value, path, &containers);
  return attributes_renew(&none, value, 0, ret) >= 0;
}

/* Judges the process by comm, cgroup and status: reading these cannot hang, and
 * nothing else can be read. A process whose comm the kernel refuses (hidepid=1)
 * may be in any group, like a hidden one. */
static void note_groups_of_unidentified(const struct match_rules *m,
                                        struct procfs *procfs,
                                        const struct process_table *t,
                                        const struct process *p,
                                        uint64_t page_size) {
  struct stored_attributes cgroup = {0};
  struct descent descent;
  struct glimpse glimpse = {.pid = p->pid, .unknown = UINT_MAX};
  char name[32];
  struct span comm;
  int rc = comm_read_of(procfs, p->pid, &comm);

  if (rc == PROCFS_GONE)
    return;
  if (rc == PROCFS_DENIED) {
    mark(m->fixed, m->settings->n_rules + 1);
    return;
  }
  if (rc == 0) /* before the next read into the same buffer */
    snprintf(name, sizeof(name), "%.*s", (int)comm.len, comm.text);
  if (read_cgroup(procfs, p->pid, &cgroup))
    glimpse.unknown &= ~CGROUP_ATTRIBUTES;
  glimpse.id = attributes_get(&cgroup);
  if (glimpse.id.value[ATTRIBUTE_CONTAINER])
    glimpse.unknown |= CONTAINER_ATTRIBUTES;
  if (rc == 0)
    glimpse.id.value[ATTRIBUTE_COMM] = name;
  descent = find_descent(procfs, t, p);
  note_groups_of_glimpse(m, p, &glimpse, &descent, page_size);
  attributes_done(&cgroup);
}

void unseen_mark(const struct match_rules *m, struct procfs *procfs,
                 const struct process_table *t, bool has_hidden,
                 uint64_t page_size) {
  locale_t before;

  if (has_hidden)
    mark(m->fixed, m->settings->n_rules + 1);
  mark_groups_of_pid_files(m);
  before = uselocale(m->locale);
  for (size_t i = 0; i < t->n; i++) {
    const struct process *p = t->processes[i];

    if (p->state != PROCESS_ALIVE && p->state != PROCESS_UNKNOWN)
      continue;
    mark(p->groups, p->n_groups);
    mark(p->membership.perhaps, p->membership.n_perhaps);
    if (process_is_unidentified(p))
      note_groups_of_unidentified(m, procfs, t, p, page_size);
  }
  uselocale(before);
}
