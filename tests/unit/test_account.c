#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <smaps/account.h>

#define KIB UINT64_C(1024)
#define PAGE UINT64_C(4096)
#define SECOND UINT64_C(1000000000)
#define FIELDS                                                                 \
  (1U << ROLLUP_RSS | 1U << ROLLUP_PSS | 1U << ROLLUP_PRIVATE_DIRTY)

/* A member of 8 MiB in two groups, in the second one with another of 4 MiB that
 * is private. */
struct fixture {
  struct circumstances now;
  struct group alone, both;
  struct group *groups[2];
  struct process p;
};

static const struct rollup other = {
    .known = FIELDS,
    .bytes = {[ROLLUP_RSS] = 4096 * KIB,
              [ROLLUP_PSS] = 4096 * KIB,
              [ROLLUP_PRIVATE_DIRTY] = 4096 * KIB}};

static const struct rollup halves = {
    .known = FIELDS,
    .bytes = {[ROLLUP_RSS] = 8192 * KIB,
              [ROLLUP_PSS] = 5120 * KIB,
              [ROLLUP_PRIVATE_DIRTY] = 2048 * KIB}};

static int make(void **state) {
  static struct fixture f;
  struct statm_sample statm = {.size_pages = 1024, .resident_pages = 1024};

  f = (struct fixture){
      .now = {.now_ns = 1000 * SECOND,
              .page_size = PAGE,
              .kernel_fields = FIELDS},
      .groups = {&f.alone, &f.both},
      .p = {.state = PROCESS_ALIVE,
            .threads = 3,
            .statm = {.size_pages = 4096, .resident_pages = 2048},
            .n_groups = 2,
            .is_asked = true}};
  f.p.groups = f.groups;
  sharing_init(&f.alone.sharing, NULL, 0);
  sharing_init(&f.both.sharing, NULL, 0);
  usage_add_process(&f.both.usage, 1);
  usage_add_statm(&f.both.usage, &statm, PAGE);
  usage_add_rollup(&f.both.usage, &other, 4096 * KIB);
  *state = &f;
  return 0;
}

/* As it was found, so many seconds ago. */
static void have_read(struct fixture *f, unsigned seconds) {
  struct circumstances then = f->now;
  struct rollup_reading read = {
      .rollup = halves, .has_statm = true, .statm = f->p.statm};

  then.now_ns -= seconds * SECOND;
  follow_from(&then, &f->p, &read);
}

static void make_read(struct fixture *f) {
  have_read(f, 0);
  f->p.is_read = true;
}

static void make_estimated(struct fixture *f) {
  have_read(f, 7);
  f->p.doubt = 1000;
}

static void make_guessed(struct fixture *f) { (void)f; }

static void make_unasked(struct fixture *f) {
  have_read(f, 7);
  f->p.is_asked = false;
}

static void make_failed(struct fixture *f) {
  have_read(f, 7);
  f->p.has_failed = true;
}

static void make_denied(struct fixture *f) {
  f->p.denied_until_ns = f->now.now_ns + 1;
}

static void make_vfork(struct fixture *f) {
  f->p.is_in_parents_mm = true;
  f->p.is_read = true; /* of the cycle before */
}

static void make_unknown(struct fixture *f) { f->p.state = PROCESS_UNKNOWN; }

static void make_gone(struct fixture *f) {
  make_read(f);
  f->p.state = PROCESS_GONE;
}

static const struct {
  const char *label;
  void (*make)(struct fixture *f);
  enum account_source source;
  uint64_t processes, threads, resident, pss, unreadable, unknown, unasked;
} cases[] = {
    {"read", make_read, SOURCE_READ, 1, 3, 8192, 5120, 0, 0, 0},
    {"estimated", make_estimated, SOURCE_ESTIMATED, 1, 3, 8192, 5120, 0, 0, 0},
    {"guessed", make_guessed, SOURCE_GUESSED, 1, 3, 8192, 8192, 0, 0, 0},
    {"unasked", make_unasked, SOURCE_STATM, 1, 3, 8192, 0, 0, 0, 1},
    {"failed", make_failed, SOURCE_UNREADABLE, 1, 3, 8192, 0, 1, 0, 0},
    {"denied", make_denied, SOURCE_UNREADABLE, 1, 3, 8192, 0, 1, 0, 0},
    {"vfork", make_vfork, SOURCE_PARENT, 1, 3, 0, 0, 0, 0, 0},
    {"unknown", make_unknown, SOURCE_NONE, 1, 3, 0, 0, 1, 1, 0},
    {"gone", make_gone, SOURCE_NONE, 0, 0, 0, 0, 0, 0, 0},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static void add(struct fixture *f) {
  if (f->p.state == PROCESS_ALIVE && f->p.is_read && !f->p.is_in_parents_mm)
    account_add_read(&f->now, &f->p, &halves);
  account_add_unread(&f->now, &f->p);
  account_add_guess(&f->now, &f->p);
}

static void each_adds_once_to_each_group(void **state) {
  for (size_t i = 0; i < CASES; i++) {
    struct fixture *f;

    make(state);
    f = *state;
    cases[i].make(f);
    add(f);
    for (int g = 0; g < 2; g++) {
      const struct usage *u = &f->groups[g]->usage;

      if (u->processes != cases[i].processes + (g ? 1 : 0) ||
          u->threads != cases[i].threads + (g ? 1 : 0) ||
          u->resident != (cases[i].resident + (g ? 4096 : 0)) * KIB ||
          u->rollup.bytes[ROLLUP_PSS] !=
              (cases[i].pss + (g ? 4096 : 0)) * KIB ||
          u->unreadable != cases[i].unreadable ||
          u->unknown != cases[i].unknown || u->unasked != cases[i].unasked)
        fail_msg("%s, group %d", cases[i].label, g);
    }
  }
}

/* But for who is counted elsewhere: of that one nothing is known by itself. */
static void one_by_itself_uses_what_it_adds(void **state) {
  for (size_t i = 0; i < CASES; i++) {
    struct fixture *f;
    struct usage u;

    make(state);
    f = *state;
    cases[i].make(f);
    assert_int_equal(account_source(&f->now, &f->p), cases[i].source);
    add(f);
    assert_int_equal(account_usage(&f->now, &f->p, &u), cases[i].source);
    if (cases[i].source == SOURCE_NONE || cases[i].source == SOURCE_PARENT) {
      assert_int_equal(u.unknown, 1);
      assert_int_equal(u.unreadable, 1);
      assert_int_equal(u.resident, 0);
    } else if (memcmp(&u, &f->alone.usage, sizeof(u)) != 0 &&
               cases[i].source != SOURCE_GUESSED) {
      fail_msg("%s", cases[i].label);
    }
    assert_int_equal(u.rollup.bytes[ROLLUP_PSS], cases[i].pss * KIB);
  }
}

static void estimate_has_its_age_and_twice_its_doubt(void **state) {
  struct fixture *f = *state;

  make_estimated(f);
  add(f);
  assert_int_equal(f->alone.usage.oldest_age_ns, 7 * SECOND);
  assert_int_equal(f->alone.usage.doubt, 2000);
  assert_int_equal(f->alone.usage.fresh_pss, 0);
}

static void guess_is_in_doubt_by_all_of_it(void **state) {
  struct fixture *f = *state;

  add(f);
  assert_int_equal(f->alone.usage.doubt, 8192 * KIB);
  assert_int_equal(f->both.usage.doubt, 8192 * KIB);
}

/* As far as it is no larger than they are: the rest is taken for private. */
static void guess_goes_by_the_others_of_each_group(void **state) {
  struct fixture *f = *state;
  struct rollup shared = other;
  struct statm_sample statm = {.size_pages = 1024, .resident_pages = 1024};

  shared.known |= 1U << ROLLUP_ANONYMOUS;
  shared.bytes[ROLLUP_ANONYMOUS] = 4096 * KIB;
  shared.bytes[ROLLUP_PSS] = 1024 * KIB;
  shared.bytes[ROLLUP_PRIVATE_DIRTY] = 0;
  shared.bytes[ROLLUP_SHARED_DIRTY] = 4096 * KIB;
  f->both.usage = (struct usage){0};
  usage_add_process(&f->both.usage, 1);
  usage_add_statm(&f->both.usage, &statm, PAGE);
  usage_add_rollup(&f->both.usage, &shared, 4096 * KIB);
  add(f);
  assert_int_equal(f->alone.usage.rollup.bytes[ROLLUP_PSS], 8192 * KIB);
  assert_int_equal(f->both.usage.rollup.bytes[ROLLUP_PSS],
                   (1024 + 1024 + 4096) * KIB);
}

/* Read, but of more than a reading can hold. */
static void what_was_not_kept_is_guessed_for_one(void **state) {
  struct fixture *f = *state;
  struct usage u;

  f->p.is_read = true;
  assert_int_equal(account_usage(&f->now, &f->p, &u), SOURCE_GUESSED);
  assert_int_equal(u.rollup.bytes[ROLLUP_PSS], 8192 * KIB);
}

static void who_is_in_no_group_has_its_statm(void **state) {
  struct fixture *f = *state;
  struct usage u;

  f->p.n_groups = 0;
  add(f);
  assert_int_equal(f->alone.usage.processes, 0);
  assert_int_equal(account_usage(&f->now, &f->p, &u), SOURCE_STATM);
  assert_int_equal(u.resident, 8192 * KIB);
  assert_int_equal(u.unasked, 1);
}

#define TEST(f) cmocka_unit_test_setup(f, make)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(each_adds_once_to_each_group),
      TEST(one_by_itself_uses_what_it_adds),
      TEST(estimate_has_its_age_and_twice_its_doubt),
      TEST(guess_is_in_doubt_by_all_of_it),
      TEST(guess_goes_by_the_others_of_each_group),
      TEST(what_was_not_kept_is_guessed_for_one),
      TEST(who_is_in_no_group_has_its_statm),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
