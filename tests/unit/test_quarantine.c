#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <smaps/policy.h>
#include <smaps/quarantine.h>

#include "proctree.h"

struct fixture {
  struct proctree tree;
  struct trouble troubles[TROUBLES];
  struct quarantine q;
  struct process p;
  struct statm_sample statm;
};

static uint64_t now_ns;

static uint64_t clock_ns(void) { return now_ns; }

static int make(void **state) {
  static const struct statm_sample statm = {
      .size_pages = 100, .resident_pages = 50, .text_pages = 10};
  static struct fixture f;
  struct fake fake = {.pid = 10, .comm = "hung\n1", .private_kb = 100};

  now_ns = 1000 * NS_PER_S;
  f = (struct fixture){.p = {.pid = 10, .statm = statm}, .statm = statm};
  proctree_make(&f.tree);
  proctree_put(&f.tree, &fake);
  f.q = (struct quarantine){.troubles = f.troubles,
                            .stall_timeout_ns = NS_PER_S,
                            .clock_ns = clock_ns};
  assert_int_equal(procfs_new(f.tree.root, &f.q.procfs), 0);
  *state = &f;
  return 0;
}

static int unmake(void **state) {
  struct fixture *f = *state;

  procfs_free(f->q.procfs);
  proctree_remove(&f->tree);
  return 0;
}

static void take_as(struct fixture *f, enum read_kind kind, int result) {
  struct read_job job = {
      .process = &f->p, .kind = kind, .result = result, .file = "cmdline"};

  quarantine_take(&f->q, &job);
}

static void take(struct fixture *f, enum read_kind kind) {
  take_as(f, kind, READ_STALLED);
}

/* For how many seconds it is left alone from now on. */
static uint64_t seconds(const struct fixture *f) {
  uint64_t n = 0;

  while (quarantine_has(&f->p, now_ns + n * NS_PER_S))
    n++;
  return n;
}

static void each_stall_doubles_the_time_up_to_an_hour(void **state) {
  static const uint64_t wanted[] = {2,   4,   8,    16,   32,   64,  128,
                                    256, 512, 1024, 2048, 3600, 3600};
  struct fixture *f = *state;

  assert_int_equal(seconds(f), 0);
  for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
    take(f, READ_STAT);
    assert_int_equal(seconds(f), wanted[i]);
    now_ns += wanted[i] * NS_PER_S;
    assert_int_equal(seconds(f), 0);
  }
  for (int i = 0; i < 300; i++)
    take(f, READ_STAT);
  assert_int_equal(seconds(f), 3600);
}

/* It has not cost anything. */
static void time_of_one_that_hangs_still_stays_the_same(void **state) {
  struct fixture *f = *state;

  take(f, READ_STAT);
  for (int i = 0; i < 3; i++) {
    take_as(f, READ_ROLLUP, READ_HANGING);
    assert_int_equal(seconds(f), 2);
  }
  take(f, READ_STAT);
  assert_int_equal(seconds(f), 4);
  take_as(f, READ_STAT, READ_HANGING);
  assert_int_equal(seconds(f), 4);
  /* One that we know nothing of, since its pid went away and came back. */
  f->p = (struct process){.pid = 10};
  take_as(f, READ_SIGHTING, READ_HANGING);
  assert_int_equal(seconds(f), 2);
}

static void time_goes_by_the_timeout(void **state) {
  struct fixture *f = *state;

  f->q.stall_timeout_ns = 60 * NS_PER_S;
  take(f, READ_STAT);
  assert_int_equal(seconds(f), 120);
}

/* A stat that goes well says nothing of the mmap lock. */
static void only_the_read_that_hung_can_make_up_for_it(void **state) {
  struct fixture *f = *state;

  take(f, READ_ROLLUP);
  take(f, READ_ROLLUP);
  quarantine_forgive(&f->p, READ_STAT);
  take(f, READ_ROLLUP);
  assert_int_equal(seconds(f), 8);
  quarantine_forgive(&f->p, READ_ROLLUP);
  take(f, READ_ROLLUP);
  assert_int_equal(seconds(f), 2);
}

static void released_is_free_and_has_its_past(void **state) {
  struct fixture *f = *state;

  take(f, READ_STAT);
  quarantine_release(&f->p);
  assert_int_equal(seconds(f), 0);
  take(f, READ_STAT);
  assert_int_equal(seconds(f), 4);
}

/* Names are those of a stranger; this one was not identified yet. */
static void each_process_is_named_once(void **state) {
  struct fixture *f = *state;
  const struct trouble *t = &f->troubles[TROUBLE_STALLED];

  take(f, READ_SIGHTING);
  assert_int_equal(t->count, 1);
  assert_int_equal(t->pid, 10);
  assert_string_equal(t->file, "cmdline");
  assert_string_equal(t->comm, "hung\\x0a1");
  take(f, READ_SIGHTING);
  quarantine_forgive(&f->p, READ_SIGHTING);
  take(f, READ_SIGHTING);
  assert_int_equal(t->count, 1);
}

static void vanished_process_has_no_name(void **state) {
  struct fixture *f = *state;

  proctree_end(&f->tree, 10);
  take(f, READ_SIGHTING);
  assert_string_equal(f->troubles[TROUBLE_STALLED].comm, "");
}

static bool has_changed(struct fixture *f) {
  return quarantine_has_changed(&f->q, &f->p, &f->statm);
}

static void another_name_or_program_is_a_change_once(void **state) {
  struct fixture *f = *state;

  take(f, READ_ROLLUP);
  assert_false(has_changed(f));
  proctree_write(&f->tree, "10/comm", "other\n", 6);
  assert_true(has_changed(f));
  assert_false(has_changed(f));
  f->p.statm.resident_pages = 1;
  f->p.statm.size_pages = 9999;
  assert_false(has_changed(f));
  f->p.statm.text_pages = 11;
  assert_true(has_changed(f));
  f->statm = (struct statm_sample){0}; /* never seen before */
  assert_false(has_changed(f));
}

/* A kernel ends it with a newline, and adds that itself. */
static void name_without_a_newline_is_whole(void **state) {
  struct fixture *f = *state;

  proctree_write(&f->tree, "10/comm", "cut", 3);
  take(f, READ_SIGHTING);
  assert_string_equal(f->troubles[TROUBLE_STALLED].comm, "cut");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, unmake)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(each_stall_doubles_the_time_up_to_an_hour),
      TEST(time_of_one_that_hangs_still_stays_the_same),
      TEST(time_goes_by_the_timeout),
      TEST(only_the_read_that_hung_can_make_up_for_it),
      TEST(released_is_free_and_has_its_past),
      TEST(each_process_is_named_once),
      TEST(vanished_process_has_no_name),
      TEST(another_name_or_program_is_a_change_once),
      TEST(name_without_a_newline_is_whole),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
