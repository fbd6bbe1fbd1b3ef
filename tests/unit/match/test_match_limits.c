/* MaxGroups: who is refused, and for how long. */
#include "test.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "matched.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, world_setup, world_teardown, struct world *w)

#define HOUR 3600

/* The owner of the place shows before or behind them, or when they were matched
 * already; where two wait, one of the names gets all of its own. */
WORLD_TEST(all_of_a_name_get_the_place_that_comes_free) {
  static const struct {
    uint32_t holder;
    bool ends;
  } cases[] = {{1, true}, {5, true}, {99, true}, {5, false}, {99, false}};

  world_group(w, NULL, "Comm", "gone", NULL, NULL);
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  w->settings.max_groups = 1;
  for (size_t i = 0; i < LENGTH(cases); i++) {
    for (uint32_t pid = 1; pid < 100; pid++)
      proctree_end(&w->tree, pid);
    put(w, cases[i].holder, 0, "a");
    world_run(w, HOUR);
    for (uint32_t pid = 2; pid < 10; pid += 2)
      put(w, pid, 0, "b");
    put(w, 11, 0, "c");
    world_run(w, HOUR);
    world_assert_members(w, "a=1 rest=5");
    if (cases[i].ends)
      proctree_end(&w->tree, cases[i].holder);
    else
      exec(w, cases[i].holder, 0, "gone");
    world_run(w, 1);
    world_assert_members(w, "rest=5");
    world_run(w, HOUR);
    world_assert_members(w, "b=4 rest=1");
    assert_int_equal(world_counts(w)->groups_refused, 1);
  }
}

/* A view and a service take it, and the view comes to exist after the service.
 */
WORLD_TEST(process_refused_twice_joins_existing_groups) {
  world_group(w, NULL, "Comm", "gone", NULL, NULL);
  world_group(w, "%{user}", "User", "*", NULL, NULL)->is_view = true;
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
  world_other(w, "rest");
  w->settings.max_groups = 4;
  put_in_unit(w, 10, "/a.service", 1);
  put_in_unit(w, 11, "/b.service", 2);
  put_in_unit(w, 12, "/b.service", 1);
  world_run(w, 1);
  put_in_unit(w, 5, "/d.service", 3);
  put_in_unit(w, 13, "/b.service", 3);
  put_in_unit(w, 15, "/d.service", 3);
  world_run(w, HOUR);
  world_assert_members(w, "b.service=3 rest=2");
  assert_int_equal(world_counts(w)->groups_refused, 3);
  exec(w, 10, 1, "gone");
  world_run(w, 1);
  assert_null(world_find(w, "a.service"));
  world_run(w, HOUR);
  world_assert_members(w, "3=3 rest=2");
  assert_int_equal(world_counts(w)->groups_refused, 2);
}

/* NAMES_PER_CYCLE processes that nobody has seen, under names likewise. */
#define NAMES_PER_CYCLE 50

static void rename_all(struct world *w, unsigned cycle) {
  for (unsigned i = 0; i < NAMES_PER_CYCLE; i++) {
    char comm[16];
    struct fake f;

    snprintf(comm, sizeof(comm), "n%u", cycle * NAMES_PER_CYCLE + i);
    f = named(100 + i, 1, comm);
    f.starttime = 1000 + cycle;
    world_put(w, f);
  }
}

#define DAYS 2
#define INTERVAL 1200
#define FORGED (DAYS * 86400 / INTERVAL * NAMES_PER_CYCLE)

/* And groups that come and go leave nothing behind. */
WORLD_TEST(forged_names_make_so_many_groups_an_hour) {
  static bool has_been[FORGED + 1];
  const struct group *g;
  unsigned made = 0, granted = 0;
  uint64_t count;
  size_t used = 0;

  w->settings.max_groups = 20;
  w->settings.policy.refresh = REFRESH_NEVER;
  for (uint32_t i = 0; i < NAMES_PER_CYCLE; i++)
    put(w, 100 + i, 1, "first");
  world_group(w, "%{comm}", "Comm", "n*", NULL, NULL);
  world_other(w, "rest");
  for (unsigned cycle = 0; cycle < FORGED / NAMES_PER_CYCLE; cycle++) {
    size_t cursor = 0;

    rename_all(w, cycle);
    world_run(w, INTERVAL);
    granted = 0;
    while ((g = collector_next_group(w->collector, &cursor)))
      if (g->name[0] == 'n') {
        made += !has_been[atoi(g->name + 1)];
        granted++;
        has_been[atoi(g->name + 1)] = true;
      }
    count = world_counts(w)->groups_refused;
    assert_int_equal(count + granted, NAMES_PER_CYCLE);
    assert_int_equal(world_members(w, "rest"), NAMES_PER_CYCLE - granted);
    assert_in_range(world_groups(w), 1, 20 + 1);
    if (cycle == FORGED / NAMES_PER_CYCLE / 4)
      used = mallinfo2().uordblks;
  }
  /* An allocator that is not the C library's counts nothing. */
  assert_in_range(mallinfo2().uordblks, 0, used + 16 * 1024);
  assert_in_range(made, 20 * (DAYS * 24 / 2), 20 * DAYS * 24);
  assert_int_equal(world_diag(w, DIAG_GROUP_REFUSED)->count,
                   NAMES_PER_CYCLE - granted);
  /* Those that stay come in, as there is room. */
  world_run(w, HOUR);
  assert_int_equal(world_groups(w), 20 + 1);
}

/* Beside processes of lower pids that live for an interval and have ever new
 * names: it waits for what an hour has for one name, and not for ever. */
WORLD_TEST(a_service_is_let_in_before_newcomers) {
  uint32_t name = 0;

  w->settings.max_groups = 4;
  w->settings.policy.refresh = REFRESH_NEVER;
  world_group(w, "%{comm}", "Comm", "*", NULL, NULL);
  world_other(w, "rest");
  for (int cycle = 0; cycle < 60; cycle++) {
    uint32_t first = 10 + 2 * (uint32_t)(cycle % 20);

    for (uint32_t i = 0; i < 2; i++) {
      char comm[16];

      snprintf(comm, sizeof(comm), "n%u", name++);
      put(w, first + i, 1, comm);
    }
    if (cycle == 20)
      put(w, 5000, 1, "service");
    world_run(w, HOUR / 12);
    proctree_end(&w->tree, first);
    proctree_end(&w->tree, first + 1);
    put(w, 1, 1, "init");
    if (cycle >= 20 && world_members(w, "service") == 1)
      return;
  }
  fail_msg("it was not let in for %d hours", 40 / 12);
}
