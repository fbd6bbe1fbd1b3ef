#include "cgroup/whole.h"

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

static void begin(const struct cgroup_tree *cgroups,
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

  g->cgroup_pid = p->pid;
  if (g->cgroup_absence == CGROUP_EMPTY)
    g->cgroup_absence = CGROUP_PRESENT;
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

/* The nearest unit, or slice, from the node upwards; else the node. */
static struct cgroup_node *named(struct cgroup_node *node, bool is_unit) {
  for (struct cgroup_node *n = node; n; n = n->parent)
    if (is_unit ? n->is_unit : n->is_slice)
      return n;
  return node;
}

static struct cgroup_node *choose(const struct group *g) {
  struct cgroup_node *node = g->cgroup_node;

  if (g->rule_attributes & 1U << ATTRIBUTE_UNIT)
    return named(node, true);
  if (g->rule_attributes & 1U << ATTRIBUTE_SLICE)
    return named(node, false);
  while (g->cgroup_depth > 0 && node->depth > g->cgroup_depth)
    node = node->parent;
  return node;
}

static void decide(struct group *g) {
  struct cgroup_node *node;

  if (g->cgroup_absence == CGROUP_PRESENT && g->cgroup_node) {
    node = choose(g);
    g->cgroup_node = node;
    if (node->depth == 0)
      g->cgroup_absence = CGROUP_ROOT;
    else if (node->processes != g->usage.processes)
      g->cgroup_absence = CGROUP_SHARED;
  }
  g->cgroup_depth = g->cgroup_absence == CGROUP_PRESENT && g->cgroup_node
                        ? g->cgroup_node->depth
                        : 0;
}

void whole_find(const struct cgroup_tree *cgroups,
                const struct process_table *processes,
                const struct group_table *groups) {
  begin(cgroups, groups);
  add_processes(processes);
  /* A parent comes before its children. */
  for (size_t i = cgroups->n; i-- > 0;)
    if (cgroups->nodes[i]->parent)
      cgroups->nodes[i]->parent->processes += cgroups->nodes[i]->processes;
  for (size_t i = 0; i < groups->n; i++)
    decide(groups->groups[i]);
}
