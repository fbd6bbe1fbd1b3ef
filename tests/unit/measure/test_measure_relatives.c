/* SPDX-License-Identifier: MIT */
/* Relatives that come and go between the list of processes and the readings. */
#include "test.h"

#include "measured.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, measured_setup, world_teardown, struct world *w)

/* Of 8 MiB, a quarter of which it shares with its child. */
#define PARENT_KB 8192
#define SHARED_KB 2048

static struct fake parent(void) { return measured_sharer(10, "g"); }

/* Returns a child in another group, with a little memory of its own. */
static struct fake child(void) {
  struct fake mother = parent(), f = fake_child(&mother, 20);

  f.comm = "child";
  f.private_kb = 1024;
  return f;
}

static struct fake alone(void) {
  struct fake f = parent();

  f.private_kb = PARENT_KB;
  f.shared_kb = f.cow_kb = 0;
  return f;
}

static void start(struct world *w) {
  world_put(w, parent());
  measured_group(w, "g");
  measured_group(w, "child");
}

/* It maps a file, so that it is read, and that finds nothing. */
static void end_while_it_is_read(struct world *w) {
  struct fake f = child();

  f.shared_kb += 4096;
  world_put(w, f);
  proctree_write(&w->tree, "20/smaps_rollup", "", 0);
}

WORLD_TEST(child_that_ends_leaves_its_part_to_an_estimate) {
  start(w);
  world_put(w, child());
  world_walks_take(50000); /* so that following is worth it */
  world_run_reading(w, 1, 2);
  world_assert(w, "g", "pss=%uk", PARENT_KB - SHARED_KB / 2);
  world_run_reading(w, 1, 0);
  end_while_it_is_read(w);
  world_run_reading(w, 1, 0);
  assert_int_equal(world_members(w, "child"), 0);
  world_assert(w, "g", "pss=%uk uss=%uk", PARENT_KB, PARENT_KB);
}

WORLD_TEST(child_that_ends_leaves_its_part_to_a_reading) {
  w->settings.policy.refresh = REFRESH_ALWAYS;
  start(w);
  world_put(w, child());
  world_run_reading(w, 1, 2);
  world_assert(w, "g", "pss=%uk pss_error=0", PARENT_KB - SHARED_KB / 2);
  end_while_it_is_read(w);
  world_run_reading(w, 1, 1);
  world_assert(w, "g", "pss=%uk", PARENT_KB);
  assert_true(world_kb(w, "g", "pss_error") >= SHARED_KB / 2.0);
}

/* Reads the parent while it shares with a child that is in no list, and whose
 * part of its memory is counted with it. */
static void meet_child(struct world *w, unsigned seconds, struct fake mother) {
  world_put(w, mother);
  world_run_reading(w, seconds, 1);
  world_assert(w, "g", "pss=%uk age=0", PARENT_KB);
  assert_true(world_kb(w, "g", "pss_error") >= mother.cow_kb / 2.0);
}

WORLD_TEST(child_that_nobody_has_listed_is_counted_with_its_parent) {
  start(w);
  world_put(w, alone());
  world_run_reading(w, 1, 1);
  meet_child(w, 3600, parent());
}

/* Its parent was forked by a process that is gone. */
WORLD_TEST(strangers_that_stay_are_read_twice) {
  start(w);
  world_run_reading(w, 1, 1);
  world_run_reading(w, 1, 1);
  world_assert(w, "g", "pss=%uk pss_error=0", PARENT_KB - SHARED_KB / 2);
  for (int i = 0; i < 10; i++) {
    world_run_reading(w, 1, 0);
    world_assert(w, "g", "pss=%uk", PARENT_KB - SHARED_KB / 2);
  }
}

/* The reading of its parent has counted it already. */
WORLD_TEST(child_that_is_listed_later_divides_nothing_twice) {
  start(w);
  world_walks_take(50000); /* so that following is worth it */
  world_budget_for_one(w);
  world_run_reading(w, 1, 1);
  world_put(w, child());
  world_run(w, 0);
  assert_int_equal(world_members(w, "child"), 1);
  world_assert(w, "g", "pss=%uk", PARENT_KB - SHARED_KB / 2);
}

/* The child has memory of its own, and could have given back that. */
WORLD_TEST(shared_memory_that_is_given_back_has_all_relatives_read) {
  struct fake mother = parent(), f = child();

  start(w);
  world_put(w, mother);
  world_put(w, f);
  world_walks_take(50000); /* so that following is worth it */
  world_run_reading(w, 1, 2);
  world_run_reading(w, 1, 0);
  f.shared_kb = f.cow_kb -= 1024;
  world_put(w, f);
  mother.shared_kb = mother.cow_kb -= 1024;
  mother.private_kb += 1024;
  world_put(w, mother);
  world_run_reading(w, 1, 2);
  world_assert(w, "g", "pss=%uk", PARENT_KB - SHARED_KB / 4);
}

/* Forked by the parent, whose child it is not (CLONE_PARENT). */
static struct fake sibling(uint32_t pid) {
  struct fake f = parent();

  f.starttime += pid;
  f.pid = pid;
  f.comm = "child";
  f.private_kb = 1024;
  f.sharers = 3;
  return f;
}

WORLD_TEST(siblings_that_share_have_their_oldest_read) {
  struct fake oldest = parent();

  oldest.sharers = 3;
  start(w);
  world_put(w, alone());
  world_walks_take(50000); /* so that following is worth it */
  world_run_reading(w, 1, 1);
  world_put(w, oldest);
  world_put(w, sibling(20));
  world_put(w, sibling(30));
  world_run_reading(w, 1, 2);
  assert_true(world_kb(w, "child", "pss_error") >= SHARED_KB);
  world_run_reading(w, 1, 3);
  world_assert(w, "g", "pss=%uk", PARENT_KB - SHARED_KB + SHARED_KB / 3);
  for (int i = 0; i < 5; i++)
    world_run_reading(w, 1, 0);
}
