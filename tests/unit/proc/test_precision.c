/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "proc/precision.h"

/* fs/proc/task_mmu.c reads a percpu_counter without its parts, whose batch is
 * max(32, 2 * CPUs) (lib/percpu_counter.c); before 6.2 each thread keeps the
 * pages of TASK_RSS_EVENTS_THRESH faults, each of which maps up to 64 KiB. */
TEST(first_precision_is_by_the_release) {
  static const struct {
    unsigned major, minor, cpus;
    uint32_t threads;
    uint64_t want;
  } cases[] = {
      {4, 14, 8, 1, 1024},
      {5, 10, 8, 10, 10240},
      {6, 0, 8, 1, 1024},
      {6, 1, 8192, 3, 3072},
      {6, 2, 8, 100, 256},
      {6, 16, 8, 1, 256},
      {6, 17, 8, 1, 0},
      {6, 18, 8, 100, 0},
      {7, 0, 8, 1, 0},
      {16, 6, 8, 1, 0},
      {6, 8, 1, 1, 32},
      {6, 8, 2, 1, 64},
      {6, 8, 15, 1, 480},
      {6, 8, 16, 1, 512},
      {6, 8, 17, 1, 578},
      {6, 8, 64, 1, 8192},
      {6, 8, 0, 1, 0},
      {6, 8, 8192, 1, 134217728},
      {6, 8, 100000, 1, UINT64_C(20000000000)},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct precision p;
    uint64_t got;

    precision_init(&p, cases[i].major, cases[i].minor, cases[i].cpus);
    got = precision_pages(&p, cases[i].threads, false, 1000);
    if (got != cases[i].want)
      fail_msg("%u.%u with %u CPUs and %u threads: %ju", cases[i].major,
               cases[i].minor, cases[i].cpus, cases[i].threads, (uintmax_t)got);
  }
}

/* 60 threads of a process whose statm was exact: not a quarter of 1.6 GB. */
TEST(a_reading_shows_if_faults_map_many_pages) {
  struct precision p;

  precision_init(&p, 6, 1, 8);
  assert_int_equal(precision_pages(&p, 60, false, 0), 61440);
  assert_int_equal(precision_pages(&p, 60, true, 0), 3840);
  assert_int_equal(precision_pages(&p, 40, true, 38000), 78560);
}

static void learn(struct precision *p, int n, uint64_t off_pages) {
  for (int i = 0; i < n; i++)
    precision_learn(p, off_pages);
}

TEST(a_kernel_that_was_mended_is_found_out) {
  struct precision p;

  precision_init(&p, 6, 12, 64);
  learn(&p, 15, 0);
  assert_int_equal(precision_pages(&p, 1, false, 0), 8192);
  learn(&p, 1, 0);
  assert_int_equal(precision_pages(&p, 1, false, 0), 0);
  assert_int_equal(precision_pages(&p, 1, false, 1000), 0);
}

TEST(a_kernel_that_is_off_is_found_out) {
  struct precision p = {.n = 0};

  for (uint64_t i = 0; i < 40; i++)
    precision_learn(&p, i % 31);
  assert_int_equal(precision_pages(&p, 1, false, 0), 60);
  /* A large one was farther off than all others. */
  assert_int_equal(precision_pages(&p, 1, false, 500), 1000);
}

/* A few processes map what statm counts otherwise, or change while they are
 * read: that says nothing of the kernel. */
TEST(a_few_differences_prove_nothing) {
  struct precision p = {.n = 0};

  learn(&p, 49, 0);
  learn(&p, 15, 100000);
  assert_int_equal(precision_pages(&p, 1, false, 100000), 0);
  learn(&p, 16, 100000);
  assert_int_equal(precision_pages(&p, 1, false, 0), 200000);
}

TEST(learnt_peaks_are_forgotten) {
  struct precision p = {.n = 0};

  learn(&p, 1000000, UINT64_MAX);
  assert_int_equal(precision_pages(&p, 1, false, 0), 2 * (uint64_t)UINT32_MAX);
  learn(&p, 64, 7);
  assert_int_equal(precision_pages(&p, 1, false, 0), 14);
  learn(&p, 64, 0);
  assert_int_equal(precision_pages(&p, 1, false, 0), 0);
}
