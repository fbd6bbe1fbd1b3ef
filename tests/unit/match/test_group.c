/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "match/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"

static const struct rule rule;

#define HOUR_NS (UINT64_C(3600) * NS_PER_S)

static struct group *take(struct group_table *t, const char *name,
                          bool is_fixed) {
  struct group *g = NULL;

  assert_int_equal(group_table_get_or_add(t, name, is_fixed, &rule, 0, &g), 0);
  assert_non_null(g);
  return g;
}

static bool is_refused(struct group_table *t, const char *name) {
  struct group untouched, *g = &untouched;
  size_t before = t->n;

  if (group_table_get_or_add(t, name, false, &rule, 0, &g) == 0)
    return false;
  assert_ptr_equal(g, &untouched);
  assert_int_equal(t->n, before);
  return true;
}

/* In order, without double names, and with the count right. */
static void check_table(const struct group_table *t) {
  size_t made = 0;

  for (size_t i = 0; i < t->n; i++) {
    made += !t->groups[i]->is_fixed;
    if (i > 0 && strcmp(t->groups[i - 1]->name, t->groups[i]->name) >= 0)
      fail_msg("%s before %s", t->groups[i - 1]->name, t->groups[i]->name);
  }
  assert_int_equal(t->made_by_template, made);
  assert_in_range(t->n, 0, t->cap);
}

/* Against a model: how many references each of 64 names has, and when it ended.
 */
TEST(any_order_of_takes_and_releases_keeps_the_table_right) {
  struct group_table t = {.max_templates = 40};
  unsigned references[64] = {0}, groups = 0, refused = 0;
  uint64_t ended_ns[64] = {0};
  char name[8];

  draw_begin(4711);
  for (int step = 0; step < 20000; step++) {
    unsigned i = draw_unsigned(64);
    uint64_t now_ns = (uint64_t)(step + 20) * HOUR_NS / 10;
    unsigned names = groups;
    struct group *g;

    for (int k = 0; k < 64; k++)
      names += references[k] == 0 && now_ns - ended_ns[k] < HOUR_NS;
    group_table_begin(&t, now_ns);
    assert_int_equal(t.n, names);
    assert_int_equal(group_table_is_full(&t), names == t.max_templates);
    snprintf(name, sizeof(name), "g%u", i);
    if (draw_unsigned(2)) {
      if (references[i] == 0 && names == t.max_templates &&
          now_ns - ended_ns[i] >= HOUR_NS) {
        assert_true(is_refused(&t, name));
        refused++;
        continue;
      }
      g = take(&t, name, false);
      assert_int_equal(g->references++, references[i]);
      groups += references[i]++ == 0;
    } else if (references[i] > 0) {
      group_table_release(&t, take(&t, name, false));
      groups -= --references[i] == 0;
      ended_ns[i] = now_ns;
    }
    check_table(&t);
  }
  assert_in_range(refused, 100, 20000);
  group_table_done(&t);
}

TEST(sums_begin_at_nothing_in_each_cycle) {
  static const struct group none;
  struct group_table t = {.max_templates = 1};
  struct group *g = take(&t, "g", true);

  g->usage.processes = 1;
  g->pss_causes[ALL_CAUSES - 1].squares = 1;
  group_table_begin(&t, 1);
  assert_int_equal(g->usage.processes, 0);
  assert_memory_equal(g->pss_causes, none.pss_causes, sizeof(g->pss_causes));
  group_table_done(&t);
}

TEST(a_group_that_has_ended_is_kept_for_an_hour) {
  struct group_table t = {.max_templates = 1};
  struct group *g = take(&t, "g", false), *again;

  g->references++;
  g->last = (struct last_known *)&t;
  group_table_begin(&t, HOUR_NS);
  assert_int_equal(group_table_get_or_add(&t, "g", false, &rule, 7, &again), 0);
  assert_int_equal(g->rule, 0);
  g->growth = (const struct growth *)&t;
  g->track = malloc(1);
  group_table_release(&t, g);
  group_table_begin(&t, 2 * HOUR_NS);
  assert_int_equal(group_table_get_or_add(&t, "g", false, &rule, 7, &again), 0);
  assert_int_equal(g->rule, 7);
  assert_null(g->growth);
  assert_null(g->track);
  take(&t, "g", false);
  assert_int_equal(g->rule, 0);
  g->last = NULL;
  group_table_begin(&t, 3 * HOUR_NS);
  assert_int_equal(t.n, 0);
  group_table_done(&t);
}
