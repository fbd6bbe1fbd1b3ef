#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <smaps/follow.h>

#include "proctree.h"

#define KIB UINT64_C(1024)
#define PAGE UINT64_C(4096)
#define SECOND UINT64_C(1000000000)
#define MEMBERS 4

/* Processes of a group, each for itself, or relatives. */
struct fixture {
  struct proctree tree;
  struct circumstances now;
  struct group group;
  struct group *groups[1];
  struct family family;
  struct process p[MEMBERS];
};

/* In kB: its own; shared by copy on write with so many, itself included; and
 * of a file that so many map. */
struct memory {
  unsigned own, cow, sharers, file, mappers;
};

static const struct memory relative = {1024, 8192, 4, 0, 1};
static const struct memory mapper = {1024, 0, 1, 65536, 2};

static int make(void **state) {
  static struct fixture f;

  f = (struct fixture){.now = {.now_ns = 1000 * SECOND, .page_size = PAGE}};
  proctree_make(&f.tree);
  proctree_write(&f.tree, "10/comm", "x\n", 2);
  assert_int_equal(procfs_new(f.tree.root, &f.now.procfs), 0);
  f.groups[0] = &f.group;
  sharing_init(&f.group.sharing, NULL, 0);
  for (uint32_t i = 0; i < MEMBERS; i++)
    f.p[i] = (struct process){.pid = 10 + i, .groups = f.groups, .n_groups = 1};
  *state = &f;
  return 0;
}

static int unmake(void **state) {
  struct fixture *f = *state;

  procfs_free(f->now.procfs);
  proctree_remove(&f->tree);
  return 0;
}

/* Makes relatives of the first n, of whom nothing was learnt yet. */
static void relate(struct fixture *f, uint32_t n) {
  f->family = (struct family){.members = n,
                              .cow_breaks = 1,
                              .cow_error = 0.5,
                              .experience = EXPERIENCE_NONE};
  sharing_init(&f->family.sharing, NULL, 0);
  for (uint32_t i = 0; i < n; i++)
    f->p[i].family = &f->family;
}

static void have(struct process *p, const struct memory *m) {
  p->statm = (struct statm_sample){.size_pages = 100000,
                                   .resident_pages =
                                       (m->own + m->cow + m->file) * KIB / PAGE,
                                   .shared_pages = m->file * KIB / PAGE};
}

static struct rollup rollup_of(const struct memory *m) {
  uint64_t anon = (m->own + m->cow / m->sharers) * KIB;
  uint64_t file = m->file / m->mappers * KIB;
  bool is_files_owner = m->mappers == 1;

  return (struct rollup){
      .known = (1U << ROLLUP_FIELDS) - 1,
      .bytes = {[ROLLUP_RSS] = (m->own + m->cow + m->file) * KIB,
                [ROLLUP_PSS] = anon + file,
                [ROLLUP_PSS_DIRTY] = anon,
                [ROLLUP_PSS_ANON] = anon,
                [ROLLUP_PSS_FILE] = file,
                [ROLLUP_SHARED_CLEAN] = is_files_owner ? 0 : m->file * KIB,
                [ROLLUP_SHARED_DIRTY] = m->cow * KIB,
                [ROLLUP_PRIVATE_CLEAN] = is_files_owner ? m->file * KIB : 0,
                [ROLLUP_PRIVATE_DIRTY] = m->own * KIB,
                [ROLLUP_REFERENCED] = (m->own + m->cow + m->file) * KIB,
                [ROLLUP_ANONYMOUS] = (m->own + m->cow) * KIB}};
}

/* Has it, and is read. */
static void take(struct fixture *f, struct process *p, const struct memory *m) {
  struct rollup_reading read = {.rollup = rollup_of(m),
                                .has_statm = true,
                                .faults_before = 5000,
                                .faults_after = 5000};

  have(p, m);
  read.statm = p->statm;
  p->statm.resident_pages -= 9; /* came while it was read */
  follow_from(&f->now, p, &read);
  p->statm = read.statm;
}

/* It has had so many faults since it was read. */
static void fault(struct fixture *f, struct process *p, uint32_t pages) {
  p->minor_faults = p->reading.minor_faults + pages;
  follow_look(&f->now, p);
}

/* The next cycle, for those who are in their sets. */
static void count(struct fixture *f, int n) {
  f->now.now_ns += SECOND;
  for (int i = 0; i < n; i++)
    follow_count(&f->now, &f->p[i]);
  for (int i = 0; i < n; i++)
    follow_set(&f->p[i]);
}

static uint64_t estimate(const struct fixture *f, const struct process *p,
                         enum rollup_field field) {
  struct rollup rollup;

  follow_estimate(&f->now, p, &rollup);
  return rollup.bytes[field];
}

static void expect_near(double got, double wanted) {
  double apart = got - wanted;

  if (apart > 0.001 * wanted + 1e-6 || apart < -0.001 * wanted - 1e-6)
    fail_msg("%f, not %f", got, wanted);
}

static void private_memory_is_followed_exactly(void **state) {
  static const int pages[] = {0, 1, 1000, -1, -200};
  struct fixture *f = *state;
  struct process *p = &f->p[0];

  for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
    struct memory m = mapper;
    struct rollup wanted, got;

    take(f, p, &m);
    m.own += (unsigned)(pages[i] * (int)(PAGE / KIB));
    have(p, &m);
    follow_look(&f->now, p);
    follow_estimate(&f->now, p, &got);
    wanted = rollup_of(&m);
    assert_int_equal(got.known, wanted.known);
    assert_memory_equal(got.bytes, wanted.bytes, sizeof(got.bytes));
    assert_int_equal(follow_doubt(&f->now, p), 0);
  }
}

static void no_more_is_in_doubt_than_all_that_is_resident(void **state) {
  struct fixture *f = *state;
  struct process *p = &f->p[0];
  struct rollup_reading huge = {.rollup = rollup_of(&mapper)};

  have(p, &mapper);
  follow_look(&f->now, p);
  assert_int_equal(follow_doubt(&f->now, p), (1024 + 65536) * KIB);
  /* Nor is there one that does not fit: 4 TiB. */
  huge.rollup.bytes[ROLLUP_RSS] = UINT64_C(1) << 42;
  follow_from(&f->now, p, &huge);
  assert_int_equal(follow_doubt(&f->now, p), (1024 + 65536) * KIB);
  /* With one there is no more than that either. */
  take(f, p, &mapper);
  p->unsure = 1e12F;
  assert_int_equal(follow_doubt(&f->now, p), (1024 + 65536) * KIB);
}

/* So many kB were thought to be broken out of what relatives share; and so many
 * of them were. */
static void learn(struct fixture *f, unsigned expected, unsigned found) {
  struct memory m = relative;
  struct process *p = &f->p[0];
  struct rollup truth;

  take(f, p, &m);
  fault(f, p, (uint32_t)((double)(expected / 4) / f->family.cow_breaks));
  m.own += found;
  m.cow -= found;
  truth = rollup_of(&m);
  follow_learn(&f->now, p, &truth);
}

static void faults_that_came_true_are_less_in_doubt(void **state) {
  struct fixture *f = *state;

  relate(f, 4);
  learn(f, 1024, 1024);
  expect_near(f->family.cow_breaks, 1);
  expect_near(f->family.cow_error, 0.5 - 0.25 * 0.49);
  for (int i = 0; i < 30; i++)
    learn(f, 1024, 1024);
  assert_true(f->family.cow_error > 0 && f->family.cow_error < 0.02);
}

static void faults_that_broke_only_half_are_expected_to(void **state) {
  struct fixture *f = *state;

  relate(f, 4);
  learn(f, 1024, 512);
  expect_near(f->family.cow_breaks, 1 - 0.25 * 0.5);
  expect_near(f->family.cow_error, 0.5);
  for (int i = 0; i < 30; i++)
    learn(f, 1024, (unsigned)(512 / f->family.cow_breaks));
  assert_true(f->family.cow_breaks > 0.49 && f->family.cow_breaks < 0.51);
  assert_true(f->family.cow_error < 0.05);
  learn(f, 1024, 1024 + 512);
  assert_true(f->family.cow_breaks > 0.55);
}

/* What was found besides is not of the faults. */
static void no_more_breaks_than_there_are_faults(void **state) {
  struct fixture *f = *state;

  relate(f, 4);
  learn(f, 1024, 6144);
  expect_near(f->family.cow_breaks, 1);
  expect_near(f->family.cow_error, 0.5 + 0.25 * 0.5);
  for (int i = 0; i < 30; i++)
    learn(f, 1024, 6144);
  expect_near(f->family.cow_breaks, 1);
  expect_near(f->family.cow_error, 1);
}

static void the_more_a_reading_tells_the_more_it_weighs(void **state) {
  static const struct {
    unsigned kb;
    double weight;
  } cases[] = {
      {60, 0}, {64, 1.0 / 49}, {1024, 0.25}, {3072, 0.5}, {6144, 2.0 / 3}};
  struct fixture *f = *state;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    relate(f, 4);
    learn(f, cases[i].kb, cases[i].kb / 4);
    expect_near(f->family.cow_breaks, 1 - 0.75 * cases[i].weight);
    expect_near(f->family.cow_error, 0.5 + 0.25 * cases[i].weight);
  }
}

/* A page that is broken while the kernel walks may be in the rollup or not. */
static void faults_while_it_is_read_stay_in_doubt(void **state) {
  struct fixture *f = *state;
  struct process *p = &f->p[0];
  struct rollup_reading read = {.rollup = rollup_of(&relative),
                                .faults_before = 5000,
                                .faults_after = 5100};

  relate(f, 4);
  have(p, &relative);
  follow_from(&f->now, p, &read);
  assert_int_equal(follow_doubt(&f->now, p), 100 * PAGE);
  for (int i = 0; i < 10; i++) {
    count(f, 4);
    follow_look(&f->now, p);
    assert_true(follow_doubt(&f->now, p) >= 100 * PAGE);
  }
  take(f, p, &relative);
  assert_int_equal(follow_doubt(&f->now, p), 0);
  /* None are known before the first one. */
  read.faults_before = 0;
  follow_from(&f->now, p, &read);
  assert_int_equal(follow_doubt(&f->now, p), 0);
}

/* 2 MiB of 8: the same is paid by one less. */
static void what_one_breaks_makes_it_dearer_for_the_others(void **state) {
  struct fixture *f = *state;

  for (uint32_t n = 2; n <= MEMBERS; n++) {
    struct memory m = relative;
    double before, more = 2048 * 1024.0 / (n * (n - 1));

    m.sharers = n;
    relate(f, n);
    for (uint32_t i = 0; i < n; i++)
      take(f, &f->p[i], &m);
    before = (double)estimate(f, &f->p[1], ROLLUP_PSS);
    /* In two cycles, and a third one in which nothing happens. */
    fault(f, &f->p[0], 300);
    fault(f, &f->p[0], 512);
    fault(f, &f->p[0], 512);
    for (uint32_t i = 1; i < n; i++) {
      expect_near((double)estimate(f, &f->p[i], ROLLUP_PSS), before + more);
      expect_near((double)follow_doubt(&f->now, &f->p[i]), more / 2);
    }
    /* Who is read has it in the reading. */
    take(f, &f->p[1], &m);
    expect_near((double)estimate(f, &f->p[1], ROLLUP_PSS), before);
  }
}

static void relatives_that_came_are_doubted_less_with_experience(void **state) {
  struct fixture *f = *state;
  struct process *p = &f->p[0];
  uint64_t before;
  struct rollup as_expected;

  relate(f, 3);
  take(f, p, &relative);
  f->family.members = 4;
  before = follow_doubt(&f->now, p);
  assert_int_equal(before, 9216 * KIB / 4);
  follow_estimate(&f->now, p, &as_expected);
  follow_learn(&f->now, p, &as_expected);
  f->now.now_ns += SECOND;
  assert_in_range(follow_doubt(&f->now, p), before / 2, before * 19 / 20);
}

/* 64 MiB of a file that two map, and then a third one too. */
static void let_third_join(struct fixture *f) {
  for (int i = 0; i < 3; i++)
    have(&f->p[i], &mapper);
  count(f, 2);
  for (int i = 0; i < 2; i++)
    take(f, &f->p[i], &mapper);
  count(f, 2);
  count(f, 3);
  follow_look(&f->now, &f->p[0]);
}

static void who_joins_the_set_makes_files_cheaper(void **state) {
  struct fixture *f = *state;
  struct process *p = &f->p[0];
  struct rollup as_expected;
  uint64_t before;

  let_third_join(f);
  expect_near((double)estimate(f, p, ROLLUP_PSS_FILE), 65536.0 * 1024 / 3);
  before = follow_doubt(&f->now, p);
  assert_true(before > 8192 * KIB);
  /* So it is: then there is less doubt the next time. */
  follow_estimate(&f->now, p, &as_expected);
  follow_learn(&f->now, p, &as_expected);
  count(f, 3);
  assert_in_range(follow_doubt(&f->now, p), before / 2, before * 19 / 20);
}

/* Before its reading it was taken to share them. */
static void pages_found_to_be_its_own_have_not_left_the_set(void **state) {
  static const struct memory owner = {1024, 0, 1, 4096, 1};
  struct fixture *f = *state;

  have(&f->p[0], &mapper);
  have(&f->p[1], &owner);
  count(f, 2);
  take(f, &f->p[0], &mapper);
  take(f, &f->p[1], &owner);
  count(f, 2);
  f->now.now_ns = f->p[0].reading.at_ns; /* without the doubt of age */
  assert_int_equal(estimate(f, &f->p[0], ROLLUP_PSS_FILE), 32768 * KIB);
  assert_int_equal(follow_doubt(&f->now, &f->p[0]), 0);
}

/* status costs as much as statm again. */
static void swap_is_asked_for_where_there_can_be_any(void **state) {
  static const struct {
    bool is_swap_used, was_swap_used;
    unsigned swap_kb; /* at the reading */
    int pages;        /* have come since */
    const char *status;
    unsigned wanted_kb;
  } cases[] = {
      {true, true, 0, -100, "VmSwap: 4096 kB\n", 4096},
      {true, true, 0, 0, "VmSwap: 4096 kB\n", 0},
      {true, true, 0, 100, "VmSwap: 4096 kB\n", 0},
      {true, true, 1024, 0, "VmSwap: 4096 kB\n", 4096},
      {true, true, 1024, 100, "VmSwap: 0 kB\n", 0},
      {false, true, 0, -100, "VmSwap: 4096 kB\n", 0},
      {false, true, 1024, -100, "VmSwap: 4096 kB\n", 4096},
      {false, true, 1024, 0, "VmSwap: 0 kB\n", 0},
      {false, true, 1024, 0, NULL, 0},
      {true, true, 1024, -100, "Threads:\t1\n", 1024},
      {true, true, 1024, -100, "VmSwap: many\n", 1024},
      {true, true, 1024, -100, NULL, 1024},
      {false, false, 1024, 0, NULL, 1024},
      {false, false, 1024, 0, "Threads:\t1\n", 1024},
  };
  struct fixture *f = *state;
  struct process *p = &f->p[0];

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct rollup_reading read = {.rollup = rollup_of(&mapper)};

    proctree_write(&f->tree, "10/status", "VmSwap: 1024 kB\n", 16);
    read.rollup.bytes[ROLLUP_SWAP] = cases[i].swap_kb * KIB;
    f->now.is_swap_used = cases[i].was_swap_used;
    have(p, &mapper);
    follow_from(&f->now, p, &read);
    f->now.is_swap_used = cases[i].is_swap_used;
    proctree_unlink(&f->tree, "10/status");
    if (cases[i].status)
      proctree_write(&f->tree, "10/status", cases[i].status,
                     strlen(cases[i].status));
    p->statm.resident_pages += (uint64_t)(int64_t)cases[i].pages;
    follow_look(&f->now, p);
    assert_int_equal(estimate(f, p, ROLLUP_SWAP), cases[i].wanted_kb * KIB);
  }
}

/* All of 8 MiB is broken out, or the last relative has gone: there is nothing
 * left to ask stat for after the rollup. */
static void faults_are_no_doubt_where_nothing_is_shared_any_more(void **state) {
  static const struct memory loner = {9216, 0, 1, 0, 1};
  struct fixture *f = *state;
  struct process *p = &f->p[0];
  struct rollup_reading read = {
      .rollup = rollup_of(&loner), .faults_before = 5000, .faults_after = 0};

  have(p, &loner);
  follow_from(&f->now, p, &read);
  assert_int_equal(follow_doubt(&f->now, p), 0);
}

/* n relatives share 8 MiB; one breaks out 2. */
static void what_one_breaks_leaves_the_sum_right(void **state) {
  struct fixture *f = *state;
  int wrong = 0;

  for (uint32_t n = 2; n <= MEMBERS; n++) {
    struct memory m = relative;
    double sum = 0, wanted = n * 1024.0 + 8192 + 2048;

    m.sharers = n;
    relate(f, n);
    for (uint32_t i = 0; i < n; i++)
      take(f, &f->p[i], &m);
    fault(f, &f->p[0], 512);
    for (uint32_t i = 0; i < n; i++)
      sum += (double)estimate(f, &f->p[i], ROLLUP_PSS) / 1024;
    wrong += sum > wanted + 8 || sum < wanted - 8;
  }
  assert_int_equal(wrong, 0);
}

/* A huge page comes with one fault and goes again: what was thought to be
 * broken becomes less for a while, and was not broken twice. */
static void what_one_breaks_is_told_to_the_others_once(void **state) {
  struct fixture *f = *state;
  struct process *p = &f->p[0];
  struct memory m = relative;
  double before;

  m.sharers = 2;
  relate(f, 2);
  take(f, p, &m);
  take(f, &f->p[1], &m);
  fault(f, p, 512);
  before = (double)estimate(f, &f->p[1], ROLLUP_PSS) / 1024;
  for (int i = 0; i < 3; i++) {
    p->statm.resident_pages += 512;
    fault(f, p, 513);
    p->statm.resident_pages -= 512;
    fault(f, p, 513);
  }
  expect_near((double)estimate(f, &f->p[1], ROLLUP_PSS) / 1024, before);
}

/* Whatever came true so far, the next time it may not: a twentieth stays. */
static void good_experience_leaves_some_doubt(void **state) {
  struct fixture *f = *state;
  struct process *p = &f->p[0];
  double doubted;

  let_third_join(f);
  p->reading.at_ns = f->now.now_ns; /* without the doubt of age */
  doubted = (double)follow_doubt(&f->now, p);
  assert_true(doubted > 8192 * 1024.0);
  for (int i = 0; i < 100; i++) {
    struct rollup as_expected;

    follow_estimate(&f->now, p, &as_expected);
    follow_learn(&f->now, p, &as_expected);
    count(f, 3);
    p->reading.at_ns = f->now.now_ns;
  }
  expect_near((double)follow_doubt(&f->now, p), doubted / 20);
}

/* What the kernel does not tell apart teaches nothing (before 5.3); nor do a
 * few pages. */
static void lessons_need_parts_and_some_memory(void **state) {
  static const struct {
    unsigned file_kb;
    bool has_parts, is_lesson;
  } cases[] = {{65536, true, true},
               {65536, false, false},
               {120, true, false},
               {128, true, true}};
  struct fixture *f = *state;
  struct process *p = &f->p[0];

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct memory m = mapper;
    struct rollup truth;
    double before;

    m.file = cases[i].file_kb;
    sharing_init(&f->group.sharing, NULL, 0);
    p->shared_pages = 0;
    take(f, p, &m);
    count(f, 1);
    follow_look(&f->now, p);
    truth = rollup_of(&m);
    truth.bytes[ROLLUP_PSS_FILE] *= 2;
    if (!cases[i].has_parts)
      truth.known &= ~(1U << ROLLUP_PSS_FILE);
    before = p->since.cost;
    follow_learn(&f->now, p, &truth);
    follow_others(p);
    if ((p->since.cost > before) != cases[i].is_lesson)
      fail_msg("case %zu: cost was %f, is %f", i, before, p->since.cost);
  }
}

/* Nobody tells it what others do. */
static void who_is_in_no_set_is_as_it_was_read(void **state) {
  struct fixture *f = *state;
  struct process *p = &f->p[0];
  struct rollup wanted = rollup_of(&mapper), got;

  take(f, p, &mapper);
  p->n_groups = 0;
  p->since.cost = 77;
  follow_others(p);
  assert_true(p->since.cost > 76);
  follow_look(&f->now, p);
  follow_estimate(&f->now, p, &got);
  assert_memory_equal(got.bytes, wanted.bytes, sizeof(got.bytes));
  assert_int_equal(follow_doubt(&f->now, p), 0);
}

/* What others broke is paid up to what it had saved, and not if it was less
 * than at the reading. */
static void what_others_broke_is_paid_within_what_was_shared(void **state) {
  static const struct {
    double more_kb, paid_kb;
  } cases[] = {{0, 0}, {-100, 0}, {100, 100}, {6144, 6144}, {9000, 6144}};
  static const struct memory with_files = {1024, 8192, 4, 8192, 2};
  struct fixture *f = *state;
  struct process *p = &f->p[0];

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    double before;

    relate(f, 4);
    take(f, p, &with_files);
    before = (double)estimate(f, p, ROLLUP_PSS);
    f->family.broken_share +=
        (uint64_t)(int64_t)(cases[i].more_kb * 1024 * BROKEN_UNITS);
    expect_near((double)estimate(f, p, ROLLUP_PSS),
                before + cases[i].paid_kb * 1024);
  }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(private_memory_is_followed_exactly),
      TEST(no_more_is_in_doubt_than_all_that_is_resident),
      TEST(faults_that_came_true_are_less_in_doubt),
      TEST(faults_that_broke_only_half_are_expected_to),
      TEST(no_more_breaks_than_there_are_faults),
      TEST(the_more_a_reading_tells_the_more_it_weighs),
      TEST(faults_while_it_is_read_stay_in_doubt),
      TEST(what_one_breaks_makes_it_dearer_for_the_others),
      TEST(relatives_that_came_are_doubted_less_with_experience),
      TEST(who_joins_the_set_makes_files_cheaper),
      TEST(pages_found_to_be_its_own_have_not_left_the_set),
      TEST(swap_is_asked_for_where_there_can_be_any),
      TEST(faults_are_no_doubt_where_nothing_is_shared_any_more),
      TEST(what_one_breaks_leaves_the_sum_right),
      TEST(what_one_breaks_is_told_to_the_others_once),
      TEST(good_experience_leaves_some_doubt),
      TEST(lessons_need_parts_and_some_memory),
      TEST(who_is_in_no_set_is_as_it_was_read),
      TEST(what_others_broke_is_paid_within_what_was_shared),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
