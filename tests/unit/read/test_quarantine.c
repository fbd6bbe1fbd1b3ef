/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "config/policy.h"
#include "read/quarantine.h"

#include "proctree.h"

struct fixture {
  struct proctree tree;
  struct diag diags[DIAGS];
  struct reader_setup setup;
  struct process p;
};

static uint64_t now_ns;

static uint64_t clock_ns(void) { return now_ns; }

static void begin(struct fixture *f) {
  struct fake fake = {.pid = 10, .comm = "hung\n1", .private_kb = 100};

  now_ns = 1000 * NS_PER_S;
  *f = (struct fixture){.p = {.pid = 10}};
  proctree_make(&f->tree);
  proctree_put(&f->tree, &fake);
  f->setup = (struct reader_setup){
      .diags = f->diags, .read_timeout_ns = NS_PER_S, .clock_ns = clock_ns};
  assert_int_equal(procfs_new(f->tree.root, &f->setup.procfs), 0);
}

static void done(struct fixture *f) {
  procfs_free(f->setup.procfs);
  proctree_remove(&f->tree);
}

TEST_OBJECT(struct fixture, begin, done)
#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

static void take_as(struct fixture *f, enum read_kind kind, int result) {
  struct read_job job = {
      .process = &f->p, .kind = kind, .result = result, .file = "cmdline"};

  quarantine_take(&f->setup, &job);
}

static void take(struct fixture *f, enum read_kind kind) {
  take_as(f, kind, READ_HUNG);
}

/* For how many seconds it is left alone from now on. */
static uint64_t seconds(const struct fixture *f) {
  uint64_t n = 0;

  while (quarantine_has(&f->p, now_ns + n * NS_PER_S))
    n++;
  return n;
}

FIXTURE_TEST(each_hang_doubles_the_time_up_to_an_hour) {
  static const uint64_t wanted[] = {2,   4,   8,    16,   32,   64,  128,
                                    256, 512, 1024, 2048, 3600, 3600};

  assert_int_equal(seconds(f), 0);
  for (size_t i = 0; i < LENGTH(wanted); i++) {
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
FIXTURE_TEST(time_of_a_lasting_hang_stays_the_same) {
  take(f, READ_STAT);
  for (int i = 0; i < 3; i++) {
    take_as(f, READ_ROLLUP, READ_STILL_HUNG);
    assert_int_equal(seconds(f), 2);
  }
  take(f, READ_STAT);
  assert_int_equal(seconds(f), 4);
  take_as(f, READ_STAT, READ_STILL_HUNG);
  assert_int_equal(seconds(f), 4);
  /* One that we know nothing of, since its pid went away and came back. */
  f->p = (struct process){.pid = 10};
  take_as(f, READ_INSPECTION, READ_STILL_HUNG);
  assert_int_equal(seconds(f), 2);
}

/* A stat that goes well says nothing of the mmap lock. */
FIXTURE_TEST(only_success_of_the_read_that_hung_ends_the_quarantine) {
  take(f, READ_ROLLUP);
  take(f, READ_ROLLUP);
  take_as(f, READ_STAT, 0);
  take(f, READ_ROLLUP);
  assert_int_equal(seconds(f), 8);
  take_as(f, READ_ROLLUP, 0);
  take(f, READ_ROLLUP);
  assert_int_equal(seconds(f), 2);
}

/* The names belong to another process; this one was not identified yet. */
FIXTURE_TEST(each_process_is_named_once) {
  const struct diag *t = &f->diags[DIAG_HUNG];

  take(f, READ_INSPECTION);
  assert_int_equal(t->count, 1);
  assert_int_equal(t->pid, 10);
  assert_string_equal(t->file, "cmdline");
  assert_string_equal(t->comm, "hung\\x0a1");
  take(f, READ_INSPECTION);
  take_as(f, READ_INSPECTION, 0);
  take(f, READ_INSPECTION);
  assert_int_equal(t->count, 1);
}
