#include "check.h"

#include <smaps/group_name.h>
#include <smaps/text.h>

#include <stdlib.h>
#include <string.h>

static int compare_groups(const void *a, const void *b) {
  return strcmp(((const struct group *)a)->name,
                ((const struct group *)b)->name);
}

static bool check_groups(struct document *d, struct config_error *reason) {
  char shown[GROUP_NAME_SIZE];

  if (d->n_groups > 0)
    qsort(d->groups, d->n_groups, sizeof(*d->groups), compare_groups);
  for (size_t i = 0; i < d->n_groups; i++) {
    const char *name = d->groups[i].name;

    escape_text(name, strlen(name), shown, sizeof(shown));
    if (i > 0 && strcmp(d->groups[i - 1].name, name) == 0) {
      config_error_format(reason, "group \"%s\" appears twice", shown);
      return false;
    }
    if (d->groups[i].rule != UNKNOWN && d->groups[i].rule >= d->n_rules) {
      config_error_format(reason, "group \"%s\": there is no rule %ju", shown,
                          (uintmax_t)d->groups[i].rule);
      return false;
    }
  }
  return true;
}

static bool check_rules(const struct document *d, struct config_error *reason) {
  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];
    uint64_t wrong = p->rule;

    for (size_t j = 0;
         j < p->n_also && (wrong == UNKNOWN || wrong < d->n_rules); j++)
      wrong = p->also[j];
    if (wrong == UNKNOWN || wrong < d->n_rules)
      continue;
    config_error_format(reason, "process %ju: there is no rule %ju",
                        (uintmax_t)p->pid, (uintmax_t)wrong);
    return false;
  }
  return true;
}

bool check_document(struct document *d, struct config_error *reason) {
  return check_groups(d, reason) && check_rules(d, reason);
}
