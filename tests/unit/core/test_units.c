/* SPDX-License-Identifier: MIT */
/* Groups of units by default. */
#include "test.h"

#include <stdio.h>

#include "world.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, world_setup, world_teardown, struct world *w)

static void put(const struct world *w, uint32_t pid, const char *unit) {
  struct fake f = fake_process(pid, "x");
  char path[128];

  snprintf(path, sizeof(path), "/system.slice/%s", unit);
  f.cgroup = path;
  f.private_kb = 100;
  world_put(w, f);
}

static void put_connection(const struct world *w, uint32_t pid, unsigned n) {
  char unit[64];

  snprintf(unit, sizeof(unit), "echo@%u-10.0.0.1:7-10.0.0.9:%u.service", n,
           10000 + n);
  put(w, pid, unit);
}

/* No more groups than services, and the last service has its place. */
WORLD_TEST(two_thousand_connections_are_one_group) {
  w->settings.max_groups = 3;
  put(w, 10, "early.service");
  for (unsigned cycle = 0; cycle < 20; cycle++) {
    for (unsigned i = 0; i < 100; i++)
      put_connection(w, 1000 + 100 * cycle + i, 100 * cycle + i);
    world_run(w, 10);
    world_assert_members(w, "early.service=1 echo@.service=100 other=0");
    for (unsigned i = 0; i < 100; i++)
      proctree_end(&w->tree, 1000 + 100 * cycle + i);
  }
  put(w, 20, "late.service");
  put(w, 21, "run-u5.service");
  world_run(w, 10);
  world_assert_members(w, "early.service=1 late.service=1 other=1");
  assert_int_equal(world_counts(w)->groups_refused, 0);
}
