#include "match/group.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/array.h"

#define HOUR_NS (UINT64_C(3600) * NS_PER_S)

/* --- names of the last hour ----------------------------------------------- */

/* The index of the name, or n_past. */
static size_t find_past(const struct group_table *t, const char *name) {
  size_t i = 0;

  while (i < t->n_past && strcmp(t->past[i].text, name) != 0)
    i++;
  return i;
}

void group_table_begin(struct group_table *t, uint64_t now_ns) {
  size_t n = 0;

  t->now_ns = now_ns;
  for (size_t i = 0; i < t->n_past; i++)
    if (now_ns - t->past[i].ended_ns < HOUR_NS)
      t->past[n++] = t->past[i];
  t->n_past = n;
  for (size_t i = 0; i < t->n; i++) {
    t->groups[i]->usage = (struct usage){0};
    memset(t->groups[i]->pss_causes, 0, sizeof(t->groups[i]->pss_causes));
  }
}

bool group_table_is_full(const struct group_table *t) {
  return t->made_by_template + t->n_past >= t->max_templates;
}

/* --- groups --------------------------------------------------------------- */

static int compare_names(const void *name, const void *element) {
  return strcmp(name, (*(struct group *const *)element)->name);
}

/* The index of the name, or the index to insert it at. */
static size_t find_place(const struct group_table *t, const char *name,
                         bool *ret_found) {
  return array_find(t->groups, t->n, sizeof(*t->groups), name, compare_names,
                    ret_found);
}

int group_table_get_or_add(struct group_table *t, const char *name,
                           bool is_fixed, const struct rule *rule, size_t index,
                           struct group **ret) {
  struct group *g, **groups;
  struct past_name *past;
  bool is_found;
  size_t place = find_place(t, name, &is_found), past_at;

  if (is_found) {
    *ret = t->groups[place];
    return 0;
  }
  past_at = find_past(t, name);
  if (!is_fixed && past_at == t->n_past && group_table_is_full(t))
    return GROUP_REFUSED;
  /* Its name must not be lost when it ends, nor the names of the others. */
  past = array_room(t->past, t->made_by_template + t->n_past, &t->cap_past,
                    sizeof(*past));
  t->past = past ? past : t->past;
  g = past ? calloc(1, sizeof(*g)) : NULL;
  groups = g ? array_insert(t->groups, &t->n, &t->cap, sizeof(*groups), place)
             : NULL;
  if (!groups) {
    free(g);
    return -ENOMEM;
  }
  t->groups = groups;
  groups[place] = g;
  snprintf(g->name, sizeof(g->name), "%s", name);
  g->is_fixed = is_fixed;
  g->report = &rule->report;
  g->policy = &rule->policy;
  g->rule = index;
  g->rule_attributes = rule_attributes(rule);
  t->made_by_template += !is_fixed;
  if (past_at < t->n_past)
    t->past[past_at] = t->past[--t->n_past];
  *ret = g;
  return 0;
}

static void group_free(struct group *g) {
  free(g->track);
  free(g);
}

void group_table_release(struct group_table *t, struct group *g) {
  struct past_name *past;
  bool is_found;
  size_t place;

  assert(g->references > 0);
  if (--g->references > 0 || g->is_fixed)
    return;
  place = find_place(t, g->name, &is_found);
  array_remove(t->groups, &t->n, sizeof(*t->groups), place);
  t->made_by_template--;
  /* There is room: see group_table_get_or_add(). */
  past = &t->past[t->n_past++];
  past->ended_ns = t->now_ns;
  memcpy(past->text, g->name, sizeof(past->text));
  group_free(g);
}

void group_table_done(struct group_table *t) {
  for (size_t i = 0; i < t->n; i++)
    group_free(t->groups[i]);
  free(t->groups);
  free(t->past);
  *t = (struct group_table){0};
}
