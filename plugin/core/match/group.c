/* SPDX-License-Identifier: MIT */
#include "match/group.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define HOUR_NS (UINT64_C(3600) * NS_PER_S)

static void group_free(struct group *g) {
  free(g->track);
  free(g);
}

static bool is_over(const struct group_table *t, const struct group *g) {
  return !g->is_fixed && g->references == 0 && !g->last && !g->alarm.is_open &&
         t->now_ns - g->used_ns >= HOUR_NS;
}

void group_table_begin(struct group_table *t, uint64_t now_ns) {
  size_t n = 0;

  t->now_ns = now_ns;
  for (size_t i = 0; i < t->n; i++) {
    struct group *g = t->groups[i];

    if (is_over(t, g)) {
      group_free(g);
      t->made_by_template--;
      continue;
    }
    g->usage = (struct usage){0};
    memset(g->pss_causes, 0, sizeof(g->pss_causes));
    t->groups[n++] = g;
  }
  t->n = n;
}

bool group_table_is_full(const struct group_table *t) {
  return t->made_by_template >= t->max_templates;
}

static int compare_names(const void *name, const void *element) {
  return strcmp(name, (*(struct group *const *)element)->name);
}

static struct group *add_at(struct group_table *t, size_t place,
                            const char *name, bool is_fixed) {
  struct group *g = calloc(1, sizeof(*g)), **groups;

  groups = g ? array_insert(t->groups, &t->n, &t->cap, sizeof(*groups), place)
             : NULL;
  if (!groups) {
    free(g);
    return NULL;
  }
  t->groups = groups;
  groups[place] = g;
  snprintf(g->name, sizeof(g->name), "%s", name);
  g->is_fixed = is_fixed;
  t->made_by_template += !is_fixed;
  return g;
}

static void begin_group(const struct group_table *t, struct group *g,
                        const struct rule *rule, size_t index) {
  g->report = &rule->report;
  g->policy = &rule->policy;
  g->rule = index;
  g->rule_attributes = rule_attributes(rule);
  free(g->track);
  g->track = NULL;
  g->growth = NULL;
  g->used_ns = t->now_ns;
}

int group_table_get_or_add(struct group_table *t, const char *name,
                           bool is_fixed, const struct rule *rule, size_t index,
                           struct group **ret) {
  struct group *g;
  bool is_found;
  size_t place = array_find(t->groups, t->n, sizeof(*t->groups), name,
                            compare_names, &is_found);

  if (!is_found && !is_fixed && group_table_is_full(t))
    return GROUP_REFUSED;
  g = is_found ? t->groups[place] : add_at(t, place, name, is_fixed);
  if (!g)
    return -ENOMEM;
  if (!is_found || (!g->is_fixed && g->references == 0))
    begin_group(t, g, rule, index);
  *ret = g;
  return 0;
}

struct group *group_table_find(const struct group_table *t, const char *name) {
  bool is_found;
  size_t place = array_find(t->groups, t->n, sizeof(*t->groups), name,
                            compare_names, &is_found);

  return is_found ? t->groups[place] : NULL;
}

void group_table_release(const struct group_table *t, struct group *g) {
  assert(g->references > 0);
  g->references--;
  g->used_ns = t->now_ns;
}

void group_table_done(struct group_table *t) {
  for (size_t i = 0; i < t->n; i++)
    group_free(t->groups[i]);
  free(t->groups);
  *t = (struct group_table){0};
}
