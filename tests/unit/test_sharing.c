#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/sharing.h>

#define SECOND UINT64_C(1000000000)
#define MEMBERS 10

/* A set of members with so many pages each, and the time. */
struct set {
  struct sharing sharing;
  struct sharing_since since; /* a reading of any of them */
  uint64_t pages[MEMBERS], before[MEMBERS];
  uint64_t now;
};

static void count(struct set *s) {
  s->now += SECOND;
  for (int i = 0; i < MEMBERS; i++) {
    if (s->pages[i])
      sharing_count(&s->sharing, s->now, s->pages[i], s->before[i]);
    s->before[i] = s->pages[i];
  }
  sharing_advance(&s->sharing, &s->since);
}

/* With n members of 1,000 pages, a cycle later. */
static struct set make(int n) {
  struct set s = {.now = SECOND};

  sharing_init(&s.sharing, NULL, 0);
  for (int i = 0; i < n; i++)
    s.pages[i] = 1000;
  count(&s);
  return s;
}

static double error_of(struct set *s) {
  experience_conclude(&s->sharing.experience, s->now);
  return s->sharing.experience.error;
}

static void mark(struct set *s) {
  sharing_see_kind(&s->sharing, 1000, 0);
  s->since = SHARING_JUST_READ;
}

static void expect(double got, double wanted) {
  if (got < wanted - 0.001 || got > wanted + 0.001)
    fail_msg("%f, not %f", got, wanted);
}

static void nothing_moves_in_an_idle_set(void **state) {
  struct set s = make(4);

  (void)state;
  mark(&s);
  count(&s);
  count(&s);
  expect(s.since.cost, 1);
  expect(s.since.moved, 0);
}

static void who_joins_makes_it_cheaper_for_all(void **state) {
  struct set s = make(4);

  (void)state;
  mark(&s);
  s.pages[4] = 1000;
  count(&s);
  expect(s.since.cost, 4.0 / 5);
  expect(s.since.moved, 1.0 / 5);
}

static void who_leaves_makes_it_dearer(void **state) {
  struct set s = make(5);

  (void)state;
  mark(&s);
  s.pages[2] = 0;
  count(&s);
  expect(s.since.cost, 5.0 / 4);
}

static void one_for_another_costs_the_same_but_has_moved(void **state) {
  struct set s = make(4);

  (void)state;
  mark(&s);
  s.pages[0] = 0;
  s.pages[9] = 1000;
  count(&s);
  expect(s.since.cost, 1);
  expect(s.since.moved, 0.5);
}

/* What one takes up and another leaves behind are not the same pages. */
static void moves_of_two_members_do_not_cancel_out(void **state) {
  struct set s = make(4);

  (void)state;
  mark(&s);
  s.pages[0] = 1500;
  s.pages[1] = 500;
  count(&s);
  expect(s.since.cost, 1);
  expect(s.since.moved, 0.25);
}

static void what_members_touch_is_taken_to_be_old(void **state) {
  struct set s = make(4);

  (void)state;
  mark(&s);
  s.pages[0] = s.pages[1] = 2000;
  count(&s);
  expect(s.since.cost, 4.0 / 6);
  expect(s.since.moved, 2.0 / 6);
}

static void pages_found_to_be_shared_are_no_change(void **state) {
  struct set s = make(4);

  (void)state;
  mark(&s);
  sharing_correct(&s.sharing, -600);
  s.pages[0] = s.before[0] = 400;
  count(&s);
  expect(s.since.cost, 1);
  expect(s.since.moved, 0);
}

static void first_members_have_not_moved_anything(void **state) {
  struct set s = {.now = SECOND};

  (void)state;
  sharing_init(&s.sharing, NULL, 0);
  mark(&s);
  s.pages[0] = 1000;
  count(&s);
  expect(s.since.cost, 1);
  expect(s.since.moved, 0);
}

static void set_that_empties_and_fills_again_keeps_its_cost(void **state) {
  struct set s = make(2);

  (void)state;
  mark(&s);
  s.pages[0] = s.pages[1] = 0;
  count(&s);
  s.pages[0] = s.pages[1] = 1000;
  count(&s);
  expect(s.since.cost, 1);
}

static void part_of_a_set_goes_on_from_where_that_was(void **state) {
  struct set s = make(4);
  struct sharing part;

  (void)state;
  mark(&s);
  s.sharing.experience.error = 0.3;
  s.sharing.newness = 0.7;
  sharing_init(&part, &s.sharing, 1000);
  sharing_advance(&part, &s.since);
  expect(s.since.cost, 1);
  expect(s.since.moved, 0);
  expect(part.experience.error, 0.3);
  expect(part.newness, 0.7);
}

static void the_kind_is_what_costs_more(void **state) {
  struct set s = make(4);

  (void)state;
  sharing_see_kind(&s.sharing, 1000, 0);
  assert_false(s.sharing.is_shmem);
  sharing_see_kind(&s.sharing, 100, 5000);
  assert_true(s.sharing.is_shmem);
  sharing_see_kind(&s.sharing, 1000, 0);
  assert_true(s.sharing.is_shmem);
}

static struct sharing_lesson lesson(double expected, double found,
                                    double doubted, double moved) {
  return (struct sharing_lesson){
      .expected = expected, .found = found, .doubted = doubted, .moved = moved};
}

/* What a page costs a member that was not read in this cycle. */
static double cost_for_others(struct set *s) {
  struct sharing_since since = s->since;

  sharing_take_lessons(&s->sharing, &since);
  return since.cost;
}

static void reading_moves_the_cost_for_the_others(void **state) {
  struct set s = make(4);
  struct sharing_lesson dearer = lesson(1000, 1100, 500, 0.5);
  double before;

  (void)state;
  mark(&s);
  sharing_learn(&s.sharing, &dearer);
  before = cost_for_others(&s);
  assert_true(before > 1 && before < 1.1);
  sharing_learn(&s.sharing, &dearer);
  assert_true(cost_for_others(&s) > before);
  count(&s);
  expect(cost_for_others(&s), 1);
}

static void one_surprise_is_not_believed_in_full(void **state) {
  struct set s = make(4);
  struct sharing_lesson huge = lesson(1, 1e12, 1, 0.5);

  (void)state;
  mark(&s);
  sharing_learn(&s.sharing, &huge);
  expect(cost_for_others(&s), 1.25);
}

/* Thousands of readings in one cycle agree; what they say is believed, and no
 * more than that. */
static void many_readings_say_no_more_than_each_of_them(void **state) {
  struct set s = make(4);
  struct sharing_lesson dearer = lesson(1000, 1500, 500, 0.5);

  (void)state;
  mark(&s);
  for (int i = 0; i < 100000; i++)
    sharing_learn(&s.sharing, &dearer);
  expect(cost_for_others(&s), 1.5);
}

/* Experience counts once a cycle, however many readings there are. */
static void what_comes_true_is_trusted_more_and_more(void **state) {
  struct set s = make(4);
  struct sharing_lesson right = lesson(1000, 1010, 1000, 0.5);

  (void)state;
  for (int i = 0; i < 10; i++)
    sharing_learn(&s.sharing, &right);
  expect(error_of(&s), 1);
  count(&s);
  assert_true(error_of(&s) < 0.95 && error_of(&s) > 0.85);
  for (int i = 0; i < 100; i++) {
    sharing_learn(&s.sharing, &right);
    count(&s);
  }
  assert_true(error_of(&s) > 0 && error_of(&s) < 0.05);
}

static void mistake_is_taken_to_heart_at_once(void **state) {
  struct set s = make(4);
  struct sharing_lesson wrong = lesson(1000, 1500, 1000, 0.5);

  (void)state;
  s.sharing.experience.error = 0.02;
  sharing_learn(&s.sharing, &wrong);
  count(&s);
  expect(error_of(&s), 0.5);
}

static void new_pages_are_learnt_to_be_new(void **state) {
  struct set s = make(4);
  double cost = 0;

  (void)state;
  for (int i = 0; i < 60; i++) {
    struct sharing_lesson right;

    mark(&s);
    for (int j = 0; j < 4; j++)
      s.pages[j] += s.pages[j] / 20;
    count(&s);
    cost = s.since.cost;
    /* In truth each page costs what it did. */
    right = lesson(1000 * cost, 1000, 50, 0.05);
    sharing_learn(&s.sharing, &right);
  }
  assert_true(cost > 0.995 && cost < 1.005);
}

static void nothing_expected_teaches_nothing(void **state) {
  struct set s = make(4);
  struct sharing_lesson none = lesson(0, 1000, 0, 0);

  (void)state;
  mark(&s);
  sharing_learn(&s.sharing, &none);
  count(&s);
  expect(s.since.cost, 1);
  expect(error_of(&s), 1);
}

/* Whatever the larger one is of, with its lead. */
static void a_set_that_comes_of_another_is_of_the_same_kind(void **state) {
  (void)state;
  for (int is_shmem = 0; is_shmem < 2; is_shmem++) {
    struct set s = make(2);
    struct sharing part;

    sharing_see_kind(&s.sharing, is_shmem ? 0 : 1000, is_shmem ? 1000 : 0);
    sharing_init(&part, &s.sharing, 1000);
    assert_int_equal(part.is_shmem, is_shmem);
    sharing_see_kind(&part, is_shmem ? 900 : 0, is_shmem ? 0 : 900);
    assert_int_equal(part.is_shmem, is_shmem);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_moves_in_an_idle_set),
      cmocka_unit_test(who_joins_makes_it_cheaper_for_all),
      cmocka_unit_test(who_leaves_makes_it_dearer),
      cmocka_unit_test(one_for_another_costs_the_same_but_has_moved),
      cmocka_unit_test(moves_of_two_members_do_not_cancel_out),
      cmocka_unit_test(what_members_touch_is_taken_to_be_old),
      cmocka_unit_test(pages_found_to_be_shared_are_no_change),
      cmocka_unit_test(first_members_have_not_moved_anything),
      cmocka_unit_test(set_that_empties_and_fills_again_keeps_its_cost),
      cmocka_unit_test(part_of_a_set_goes_on_from_where_that_was),
      cmocka_unit_test(the_kind_is_what_costs_more),
      cmocka_unit_test(reading_moves_the_cost_for_the_others),
      cmocka_unit_test(one_surprise_is_not_believed_in_full),
      cmocka_unit_test(many_readings_say_no_more_than_each_of_them),
      cmocka_unit_test(what_comes_true_is_trusted_more_and_more),
      cmocka_unit_test(mistake_is_taken_to_heart_at_once),
      cmocka_unit_test(new_pages_are_learnt_to_be_new),
      cmocka_unit_test(nothing_expected_teaches_nothing),
      cmocka_unit_test(a_set_that_comes_of_another_is_of_the_same_kind),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
