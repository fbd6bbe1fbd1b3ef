/* SPDX-License-Identifier: MIT */
#include "measure/whole_group.h"

#include <string.h>

#include "cgroup/cgroup.h"

static struct cgroup_node *common_ancestor(struct cgroup_node *a,
                                           struct cgroup_node *b) {
  while (a != b) {
    if (a->depth < b->depth)
      b = b->parent;
    else
      a = a->parent;
  }
  return a;
}

static void clear_nodes(const struct cgroup_tree *cgroups,
                        const struct group_table *groups) {
  for (size_t i = 0; i < cgroups->n; i++)
    cgroups->nodes[i]->processes = 0;
  for (size_t i = 0; i < groups->n; i++) {
    struct group *g = groups->groups[i];

    g->cgroup_node = NULL;
    g->cgroup_absence = g->rule_attributes & CGROUP_ATTRIBUTES
                            ? CGROUP_EMPTY
                            : CGROUP_NOT_ASKED;
  }
}

static void add_member(struct group *g, const struct process *p) {
  struct cgroup_node *node = p->cgroup;

  /* The first is mostly the oldest, and the last one may be about to end. */
  if (g->cgroup_absence == CGROUP_EMPTY) {
    g->cgroup_absence = CGROUP_PRESENT;
    g->cgroup_pid = p->pid;
  }
  if (g->cgroup_absence != CGROUP_PRESENT)
    return;
  if (!node)
    g->cgroup_absence = CGROUP_UNKNOWN;
  else
    g->cgroup_node =
        g->cgroup_node ? common_ancestor(g->cgroup_node, node) : node;
}

static void add_processes(const struct process_table *processes) {
  for (size_t i = 0; i < processes->n; i++) {
    const struct process *p = processes->processes[i];

    if (p->state != PROCESS_ALIVE && p->state != PROCESS_UNKNOWN)
      continue;
    if (p->cgroup)
      p->cgroup->processes++;
    for (size_t k = 0; k < p->n_groups; k++)
      add_member(p->groups[k], p);
  }
}

/* The unit, or slice, that the node is in; else the node. */
static struct cgroup_node *named(struct cgroup_node *node,
                                 bool (*parse)(struct span, struct span *)) {
  struct span path = {node->path, strlen(node->path)}, name;
  bool has_name = parse(path, &name);

  for (struct cgroup_node *n = node; has_name && n; n = n->parent)
    if (node->path + strlen(n->path) == name.text + name.len)
      return n;
  return node;
}

static struct cgroup_node *choose(const struct group *g) {
  struct cgroup_node *node = g->cgroup_node;

  if (g->rule_attributes & 1U << ATTRIBUTE_UNIT)
    return named(node, cgroup_unit);
  if (g->rule_attributes & 1U << ATTRIBUTE_SLICE)
    return named(node, cgroup_slice);
  while (g->cgroup_depth > 0 && node->depth > g->cgroup_depth)
    node = node->parent;
  return node;
}

static void decide(struct group *g) {
  if (g->cgroup_absence == CGROUP_PRESENT)
    g->cgroup_node = choose(g);
  g->cgroup_depth = 0;
  if (g->cgroup_absence != CGROUP_PRESENT)
    return;
  if (g->cgroup_node->depth == 0)
    g->cgroup_absence = CGROUP_ROOT;
  else if (g->cgroup_node->processes != g->usage.processes)
    g->cgroup_absence = CGROUP_SHARED;
  else
    g->cgroup_depth = g->cgroup_node->depth;
}

void whole_groups_find(const struct cgroup_tree *cgroups,
                       const struct process_table *processes,
                       const struct group_table *groups) {
  clear_nodes(cgroups, groups);
  add_processes(processes);
  /* A parent comes before its children. */
  for (size_t i = cgroups->n; i-- > 0;)
    if (cgroups->nodes[i]->parent)
      cgroups->nodes[i]->parent->processes += cgroups->nodes[i]->processes;
  for (size_t i = 0; i < groups->n; i++)
    decide(groups->groups[i]);
}
