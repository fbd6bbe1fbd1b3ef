/* The PSS of an hour ago. */
#include "test.h"

#include <stdlib.h>

#include "proc/duration.h"
#include "snapshot/change.h"

#define MINUTE (60 * NS_PER_S)
#define KERNEL (1U << ROLLUP_PSS)

/* A group whose members were all read. */
struct fixture {
  struct group group;
  struct group *groups[1];
  struct group_table table;
};

static void begin(struct fixture *f) {
  *f = (struct fixture){.table = {.n = 1}};
  f->groups[0] = &f->group;
  f->table.groups = f->groups;
  f->group.usage = (struct usage){
      .processes = 1, .rolled_up = 1, .rollup = {.known = KERNEL}};
}

static void done(struct fixture *f) { free(f->group.history); }

TEST_OBJECT(struct fixture, begin, done)

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

/* An interval at that minute. */
static void note(struct fixture *f, uint64_t minute, uint64_t pss) {
  f->group.usage.rollup.bytes[ROLLUP_PSS] = pss;
  change_note(&f->table, KERNEL, minute * MINUTE);
}

static void assert_change(struct fixture *f, uint64_t minute, uint64_t pss,
                          int64_t bytes, uint64_t age_minutes) {
  struct pss_change g = change_get(&f->group, pss, minute * MINUTE);

  assert_int_equal(g.bytes, bytes);
  assert_int_equal(g.age_ns, age_minutes * MINUTE);
}

FIXTURE_TEST(change_counts_from_the_first_sample) {
  assert_change(f, 100, 5000, 0, 0);
  note(f, 100, 5000);
  assert_change(f, 100, 5000, 0, 0);
  assert_change(f, 103, 5700, 700, 3);
  assert_change(f, 103, 4000, -1000, 3);
}

FIXTURE_TEST(change_of_less_than_a_second_is_unknown) {
  note(f, 1, 5000);
  assert_int_equal(change_get(&f->group, 1, MINUTE + NS_PER_S - 1).age_ns, 0);
  assert_int_equal(change_get(&f->group, 1, MINUTE + NS_PER_S).age_ns,
                   NS_PER_S);
}

FIXTURE_TEST(change_counts_from_an_hour_ago) {
  for (uint64_t minute = 100; minute <= 400; minute++)
    note(f, minute, 1000 * minute);
  /* Samples are of minutes 340, 350 … 400. */
  assert_change(f, 400, 1000 * 400, 60 * 1000, 60);
  for (uint64_t minute = 401; minute < 410; minute++)
    note(f, minute, 1000 * minute);
  assert_change(f, 409, 1000 * 409, 69 * 1000, 69);
  note(f, 410, 1000 * 410);
  assert_change(f, 410, 1000 * 410, 60 * 1000, 60);
}

FIXTURE_TEST(what_is_not_known_is_no_sample) {
  f->group.usage.unreadable = f->group.usage.unmeasured = 1;
  note(f, 100, 5000);
  assert_change(f, 103, 5700, 0, 0);
  begin(f);
  f->group.usage.is_unseen = true;
  note(f, 100, 5000);
  assert_change(f, 103, 5700, 0, 0);
}

/* Its first reading would be a change. */
FIXTURE_TEST(a_guess_is_no_sample) {
  f->group.usage.unmeasured = 1;
  note(f, 100, 5000);
  f->group.usage.unmeasured = 0;
  note(f, 101, 3000);
  assert_change(f, 103, 3500, 500, 2);
}

FIXTURE_TEST(a_guess_that_stays_one_is_a_sample) {
  f->group.usage.processes = f->group.usage.rolled_up = 3;
  f->group.usage.unmeasured = 2;
  f->group.usage.unreadable = 1;
  note(f, 100, 5000);
  assert_change(f, 103, 5700, 0, 0);
  f->group.usage.unmeasured = 1;
  note(f, 101, 5000);
  assert_change(f, 103, 5700, 700, 2);
}

FIXTURE_TEST(an_empty_group_has_a_pss_of_0) {
  f->group.usage = (struct usage){.processes = 0};
  change_note(&f->table, KERNEL, 100 * MINUTE);
  assert_change(f, 103, 5700, 5700, 3);
}
