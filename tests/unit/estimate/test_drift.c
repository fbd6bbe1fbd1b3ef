/* Readings show how much changes unseen. */
#include "test.h"

#include "estimate/drift.h"
#include "proc/duration.h"

#define MEMORY 1048576.0

struct watch {
  struct drift drift;
  uint64_t now_ns;
};

static struct watch at_first(void) {
  return (struct watch){.drift = DRIFT_AT_FIRST, .now_ns = NS_PER_S};
}

/* A reading each minute, of which each n-th finds a part changed. */
static void run(struct watch *w, unsigned hours, unsigned n, double part) {
  for (unsigned i = 1; i <= hours * 60; i++) {
    w->now_ns += 60 * NS_PER_S;
    drift_learn(&w->drift, w->now_ns, i % n == 0 ? part * MEMORY : 0, MEMORY,
                60);
  }
  drift_conclude(&w->drift, w->now_ns + 1);
}

TEST(quiet_memory_is_worth_no_reading) {
  struct watch w = at_first();

  run(&w, 6, 1000, 0);
  assert_true(drift_part(&w.drift, 600) < 0.001);
}

TEST(it_grows_with_the_root_of_time) {
  struct watch w = at_first();
  double minute = drift_part(&w.drift, 60);

  assert_true(drift_part(&w.drift, 240) > 1.99 * minute);
  assert_true(drift_part(&w.drift, 240) < 2.01 * minute);
  assert_true(drift_part(&w.drift, 0) <= 0);
}

/* The same in each reading: the root of the mean square is its size. */
TEST(constant_change_is_learnt_exactly) {
  struct watch w = at_first();

  run(&w, 4, 1, 0.05);
  assert_true(drift_part(&w.drift, 60) > 0.045);
  assert_true(drift_part(&w.drift, 60) < 0.055);
}

/* One reading of twenty finds that half has changed: six times the root, which
 * is what is published, is more than that. */
TEST(rare_change_is_within_six_times_the_root) {
  struct watch w = at_first();

  run(&w, 4, 20, 0.5);
  assert_true(6 * drift_part(&w.drift, 60) > 0.5);
}

TEST(change_that_has_ended_is_forgotten_within_hours) {
  struct watch w = at_first();
  double before;

  run(&w, 4, 1, 0.5);
  before = drift_part(&w.drift, 60);
  run(&w, 4, 1000, 0);
  assert_true(drift_part(&w.drift, 60) < before / 20);
}

TEST(change_that_begins_is_learnt_within_minutes) {
  struct watch w = at_first();

  run(&w, 24, 10000, 0);
  for (int i = 0; i < 5; i++) {
    w.now_ns += 10 * NS_PER_S;
    drift_learn(&w.drift, w.now_ns, MEMORY / 2, MEMORY, 10);
  }
  drift_conclude(&w.drift, w.now_ns + 1);
  assert_true(6 * drift_part(&w.drift, 10) > 0.4);
}

/* Many members that are read in one cycle are no more than one lesson. */
TEST(readings_of_a_cycle_are_one_lesson) {
  struct watch one = at_first(), many = at_first();

  drift_learn(&one.drift, one.now_ns, MEMORY, MEMORY, 60);
  for (int i = 0; i < 100; i++)
    drift_learn(&many.drift, many.now_ns, MEMORY, MEMORY, 60);
  drift_conclude(&one.drift, 2 * NS_PER_S);
  drift_conclude(&many.drift, 2 * NS_PER_S);
  assert_true(drift_part(&many.drift, 60) < 1.001 * drift_part(&one.drift, 60));
  assert_true(drift_part(&many.drift, 60) > 0.999 * drift_part(&one.drift, 60));
}

/* Each small member is read in a cycle of its own, and nothing has changed. */
TEST(small_members_do_not_make_a_large_one_forgotten) {
  struct watch w = at_first();
  double before;

  run(&w, 4, 1, 0.5);
  before = drift_part(&w.drift, 60);
  for (int i = 0; i < 20; i++) {
    w.now_ns += 10 * NS_PER_S;
    drift_count(&w.drift, w.now_ns, MEMORY);
    drift_learn(&w.drift, w.now_ns, 0, MEMORY / 1000, 600);
  }
  drift_conclude(&w.drift, w.now_ns + 1);
  assert_true(drift_part(&w.drift, 60) > 0.99 * before);
}

/* Likewise, but none is larger than the others. */
TEST(many_members_of_one_size_are_learnt_from_each) {
  struct watch w = at_first();
  double before;

  run(&w, 4, 1, 0.5);
  before = drift_part(&w.drift, 60);
  for (int i = 0; i < 20; i++) {
    w.now_ns += 10 * NS_PER_S;
    for (int member = 0; member < 100; member++)
      drift_count(&w.drift, w.now_ns, MEMORY / 100);
    drift_learn(&w.drift, w.now_ns, 0, MEMORY / 100, 600);
  }
  drift_conclude(&w.drift, w.now_ns + 1);
  assert_true(drift_part(&w.drift, 60) < 0.2 * before);
}

/* Also where the memory has come to be more than was known. */
TEST(no_more_than_all_has_changed) {
  struct watch w = at_first();

  for (int i = 0; i < 1000; i++) {
    w.now_ns += 60 * NS_PER_S;
    drift_learn(&w.drift, w.now_ns, 100 * MEMORY, MEMORY, 60);
  }
  drift_conclude(&w.drift, w.now_ns + 1);
  assert_true(drift_part(&w.drift, 60) < 1.01);
}
