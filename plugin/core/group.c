#include <smaps/group.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <smaps/amount.h>

/* Of a group's PSS, as much may be in doubt before anything is read for it. */
#define GROUP_DOUBT_TOLERATED 0.005

/* Where the name is, or where it would stand. */
static size_t find_place(const struct group_table *t, const char *name,
                         bool *ret_found) {
  size_t low = 0, high = t->n;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = strcmp(t->groups[middle]->name, name);

    if (order == 0) {
      *ret_found = true;
      return middle;
    }
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  *ret_found = false;
  return low;
}

static int make_room(struct group_table *t) {
  size_t cap = t->cap ? t->cap * 2 : 16;
  struct group **groups;

  if (t->n < t->cap)
    return 0;
  groups = reallocarray(t->groups, cap, sizeof(*groups));
  if (!groups)
    return -ENOMEM;
  t->groups = groups;
  t->cap = cap;
  return 0;
}

bool group_table_is_full(const struct group_table *t) {
  return t->made_by_template >= t->max_templates;
}

int group_table_take(struct group_table *t, const char *name, bool is_fixed,
                     const struct report *report, struct group **ret) {
  struct group *g;
  bool is_found;
  size_t place = find_place(t, name, &is_found);
  int r;

  if (is_found) {
    *ret = t->groups[place];
    return 0;
  }
  if (!is_fixed && group_table_is_full(t))
    return GROUP_REFUSED;
  r = make_room(t);
  if (r < 0)
    return r;
  g = calloc(1, sizeof(*g));
  if (!g)
    return -ENOMEM;
  snprintf(g->name, sizeof(g->name), "%s", name);
  g->is_fixed = is_fixed;
  g->report = report;
  sharing_init(&g->sharing, NULL, 0);
  memmove(&t->groups[place + 1], &t->groups[place],
          (t->n - place) * sizeof(*t->groups));
  t->groups[place] = g;
  t->n++;
  t->made_by_template += !is_fixed;
  *ret = g;
  return 0;
}

void group_table_release(struct group_table *t, struct group *g) {
  bool is_found;
  size_t place;

  if (--g->references > 0 || g->is_fixed)
    return;
  place = find_place(t, g->name, &is_found);
  t->n--;
  memmove(&t->groups[place], &t->groups[place + 1],
          (t->n - place) * sizeof(*t->groups));
  t->made_by_template--;
  free(g);
}

void group_table_reset(struct group_table *t) {
  for (size_t i = 0; i < t->n; i++) {
    struct group *g = t->groups[i];

    g->last_pss = g->usage.rollup.bytes[ROLLUP_PSS];
    g->usage = (struct usage){0};
    g->plan =
        (struct plan_group){.tolerated_bytes = amount_from(
                                (double)g->last_pss * GROUP_DOUBT_TOLERATED)};
  }
}

void group_table_done(struct group_table *t) {
  for (size_t i = 0; i < t->n; i++)
    free(t->groups[i]);
  free(t->groups);
  *t = (struct group_table){0};
}
