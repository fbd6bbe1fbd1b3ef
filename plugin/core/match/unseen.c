#include "match/unseen.h"

#include <limits.h>
#include <string.h>

#include "config/rule.h"

static bool is_empty(const struct group *g) {
  return g && g->usage.processes == 0 && !g->usage.is_unseen;
}

static void mark(struct group *const *groups, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (is_empty(groups[i]))
      groups[i]->usage.is_unseen = true;
}

/* Groups of templates are not reported without members. */
static bool has_empty(const struct matcher *m) {
  for (size_t i = 0; i <= m->settings->n_rules; i++)
    if (is_empty(m->fixed[i]))
      return true;
  return false;
}

/* While the PID file of a rule cannot be read, its group may not be empty. */
static void mark_groups_of_pid_files(const struct matcher *m) {
  for (size_t i = 0; i < m->settings->n_rules; i++)
    if (rule_is_blind(&m->settings->rules[i]))
      mark(&m->fixed[i], 1);
}

/* All that can be read for sure, at any time, is comm. A descendant inherits
 * its group from a process of any name; and Other takes whoever is left. */
static void mark_by_comm(const struct matcher *m, const char *comm,
                         uint32_t pid) {
  const struct glimpse glimpse = {
      .id.value[ATTRIBUTE_COMM] = comm, .pid = pid, .unknown = UINT_MAX};

  for (size_t i = 0; i < m->settings->n_rules; i++) {
    const struct rule *rule = &m->settings->rules[i];

    if (is_empty(m->fixed[i]) &&
        (rule->takes_children || rule_could_match(rule, &glimpse)))
      mark(&m->fixed[i], 1);
  }
  mark(&m->fixed[m->settings->n_rules], 1);
}

static void mark_groups_of_unidentified(const struct matcher *m,
                                        struct procfs *procfs,
                                        const struct process *p) {
  char comm[32];
  struct span text;
  int rc = procfs_read_of(procfs, p->pid, "comm", &text);

  if (rc == PROCFS_GONE)
    return;
  if (rc == 0 && text.len > 0 && text.text[text.len - 1] == '\n')
    text.len--;
  if (rc != 0 || text.len >= sizeof(comm)) {
    mark_by_comm(m, NULL, p->pid);
    return;
  }
  memcpy(comm, text.text, text.len);
  comm[text.len] = '\0';
  mark_by_comm(m, comm, p->pid);
}

void unseen_mark(const struct matcher *m, struct procfs *procfs,
                 const struct process_table *t, bool has_hidden) {
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
    mark(p->perhaps, p->n_perhaps);
    if (process_is_unidentified(p) && has_empty(m))
      mark_groups_of_unidentified(m, procfs, p);
  }
  uselocale(before);
}
