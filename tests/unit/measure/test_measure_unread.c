/* SPDX-License-Identifier: MIT */
/* Processes that are not read have estimates, from earlier readings and cheap
 * files, with what is in doubt as error. */
#include "test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure/measure.h"
#include "member/member.h"

#include "measured.h"

#define WORLD_TEST(name)                                                       \
  TEST_WITH(name, measured_setup, world_teardown, struct world *w)

#define TIMEOUT_NS (100 * NS_PER_MS)

static void run_until_read(struct world *w) {
  do
    world_run(w, 1);
  while (world_counts(w)->rollup_reads == 0);
}

/* --- one that was read before ----------------------------------------------
 */

/* The last reading stands, statm is followed from there, and what cannot be
 * asked for is in doubt. */
WORLD_TEST(process_whose_rollup_hangs_is_followed_by_statm) {
  struct fake f = measured_member(10, "g");
  double error = 0;

  w->settings.read_timeout_ns = TIMEOUT_NS;
  world_start(w, f);
  f.shared_kb = 8192; /* which is a reason to read it again */
  world_put(w, f);
  proctree_hang(&w->tree, "10/smaps_rollup");
  for (int i = 0; i < 4; i++) {
    f.private_kb += 4096;
    proctree_print(&w->tree, 10, "statm", "10000 %u %u 0 0 0 0\n",
                   (f.private_kb + f.shared_kb) / 4, f.shared_kb / 4);
    world_run_reading(w, 1, 0);
    assert_int_equal(world_counts(w)->hung, 1);
    world_assert(w, "g", "uss=%uk rss=%uk unreadable=0", f.private_kb,
                 f.private_kb + f.shared_kb);
    assert_int_equal((int)(world_value(w, "g", "age") + 0.5), i + 1);
    assert_true(world_kb(w, "g", "pss_error") >= 2048 &&
                world_kb(w, "g", "pss_error") >= error);
    error = world_kb(w, "g", "pss_error");
  }
  proctree_wake(&w->tree, "10/smaps_rollup");
  world_put(w, f);
  run_until_read(w);
  world_assert(w, "g", "pss=%uk", f.private_kb + 4096);
}

/* The host has swap, half of it in use. */
static void put_swap(struct world *w) {
  proctree_print(&w->tree, 0, "meminfo",
                 "MemTotal: 1048576 kB\nSwapTotal: 1000000 kB\n"
                 "SwapFree: 500000 kB\n");
}

/* Process 10 has 4 MiB of it. */
static void put_in_swap(struct world *w) {
  proctree_print(&w->tree, 10, "status",
                 "Uid:\t0\t0\t0\t0\nVmSwap:\t    4096 kB\n");
}

/* As much has come as went, so that nothing but status shows it. */
WORLD_TEST(memory_in_swap_is_not_overlooked_for_longer_than_a_minute) {
  struct fake f = measured_member(10, "g");

  f.shared_kb = 0; /* lest age be a reason to read it */
  w->settings.policy.max_age_ns = 600 * NS_PER_S;
  put_swap(w);
  world_budget_for_one(w); /* nor that it is cheap */
  world_start(w, f);
  put_in_swap(w);
  for (int i = 0; i < 7; i++)
    world_run_reading(w, 10, 0);
  world_assert(w, "g", "swap=4096k");
  world_run_reading(w, 10, 0);
  world_assert(w, "g", "swap=4096k");
}

WORLD_TEST(process_whose_main_thread_is_dead_is_estimated_too) {
  struct fake leader = measured_member(10, "g"),
              live = measured_member(12, "t");

  leader.state = 'Z';
  leader.threads = live.threads = 2;
  leader.size = 0;
  world_watch(w, leader);
  proctree_put_thread(&w->tree, 10, &live);
  for (int i = 0; i < 3; i++) {
    world_run_reading(w, 1, i == 0);
    world_assert(w, "g", "pss=7168k rss=8192k");
  }
}

/* The time for one reading goes to the other group. */
WORLD_TEST(unreadable_faults_stay_in_doubt) {
  struct fake other = measured_member(20, "h");

  world_budget_for_one(w);
  other.size = 600000;
  other.shared_kb = 1 << 20;
  world_put(w, measured_sharer(10, "g"));
  world_put(w, other);
  measured_group(w, "g");
  measured_group(w, "h");
  for (int i = 0; i < 3; i++)
    world_run(w, 1);
  world_assert(w, "g", "uss=6144k");
  measured_put_faulted(w, measured_sharer(10, "g"));
  for (int i = 0; i < 2; i++) {
    if (i == 1)
      proctree_write(&w->tree, "10/stat", "nonsense\n", 9);
    other.shared_kb /= 2;
    world_put(w, other);
    world_run_reading(w, 1, 1);
    world_assert(w, "g", "coverage=0 uss=8192k");
    assert_true(world_kb(w, "g", "pss_error") >= 2 * 2048);
  }
}

/* Not before it has come out of quarantine; meanwhile it may have broken all
 * that it shares. Others are asked in the same cycle. */
WORLD_TEST(faults_are_doubted_while_stat_hangs) {
  struct fake f = measured_sharer(10, "g");

  world_walks_take(50000); /* so that following is worth it */
  w->settings.read_timeout_ns = TIMEOUT_NS;
  world_put(w, f);
  world_put(w, measured_sharer(11, "h"));
  measured_group(w, "g");
  measured_group(w, "h");
  world_run(w, 1);
  world_run_reading(w, 1, 2);
  world_run_reading(w, 1, 0);
  assert_true(world_kb(w, "g", "pss_error") < 100);
  proctree_hang(&w->tree, "10/stat");
  measured_put_faulted(w, measured_sharer(11, "h"));
  world_run_hung(w, 1, 1);
  assert_int_equal(world_counts(w)->rollup_reads, 1);
  proctree_wake(&w->tree, "10/stat");
  measured_put_faulted(w, f);
  for (int i = 0; i < 100; i++) {
    assert_true(world_kb(w, "g", "pss_error") >= 2 * 1024);
    assert_true(world_kb(w, "g", "pss_error") < 2 * 1024 + 128);
    sched_yield();
    world_run_hung(w, 0, 1);
    assert_int_equal(world_counts(w)->rollup_reads, 0);
  }
  /* The other may be read while the thread has not come back yet. */
  do
    run_until_read(w);
  while (world_value(w, "g", "coverage") < 100);
}

/* --- one process, without a collector --------------------------------------
 */

/* A member of 8 MiB, half of it anonymous, was read, and there is no time to
 * read it again. */
struct single {
  struct diag diags[DIAGS];
  struct reader reader;
  struct measurer m;
  struct group group;
  struct group *groups[1];
  struct group_table table;
  struct process p, *processes[1];
  struct member member;
};

static void run_single(struct single *s, uint64_t now_ns) {
  const struct process_table t = {.processes = s->processes, .n = 1};
  const struct meminfo_sample meminfo = {0};

  assert_int_equal(measurer_run(&s->m, &t, &s->table, &meminfo, now_ns), 0);
}

static void run_in_doubt(struct single *s, uint64_t now_ns, unsigned kb) {
  run_single(s, now_ns);
  assert_int_equal(error_of_sum(&s->group.track->error), kb * 1024);
}

static struct ksm ksm;

static void read_ksm(struct ksm *ret) { *ret = ksm; }

static int make_single(void **state) {
  static struct single single;
  struct single *s = *state = &single;

  *s = (struct single){
      .reader = {.page_size = 4096},
      .p = {.pid = 10,
            .state = PROCESS_ALIVE,
            .n_groups = 1,
            .statm = {.size_pages = 9999, .resident_pages = 2048}}};
  s->groups[0] = &s->group;
  s->p.groups = s->groups;
  s->processes[0] = &s->p;
  s->group.policy = &settings_defaults.policy;
  s->p.member = &s->member;
  s->table = (struct group_table){.groups = s->groups, .n = 1};
  measurer_init(&s->m, NULL, &s->reader, s->diags);
  run_single(s, 1);
  s->member.track.baseline = (struct baseline){
      .at_ns = NS_PER_S, .at.resident_pages = 2048, .relatives = 1};
  s->member.track.baseline.rollup.bytes[ROLLUP_ANONYMOUS] = 4096 * KIB;
  s->member.track.since = SHARING_JUST_READ;
  s->m.read_ksm = read_ksm;
  return 0;
}

static int unmake_single(void **state) {
  struct single *s = *state;

  measurer_done(&s->m);
  free(s->group.track);
  return 0;
}

#define SINGLE_TEST(name)                                                      \
  TEST_WITH(name, make_single, unmake_single, struct single *s)

/* A merged page that is taken apart when no more are merged is no reason to
 * read processes that had none. */
SINGLE_TEST(process_without_merged_pages_is_trusted_when_pages_split) {
  s->member.track.baseline.rollup.known = 1U << ROLLUP_KSM;
  ksm = s->m.ksm = (struct ksm){.run = 0, .pages_sharing = 500};
  for (uint64_t i = 2; i < 10; i++) {
    ksm.pages_sharing--;
    run_in_doubt(s, i * NS_PER_S, 0);
  }
  s->member.track.baseline.rollup.bytes[ROLLUP_KSM] = 64 * KIB;
  ksm.pages_sharing--;
  run_in_doubt(s, 10 * NS_PER_S, 64);
  /* It merged until it was stopped: anything may have been merged. */
  ksm.run = 1;
  run_single(s, 11 * NS_PER_S);
  s->member.track.baseline.at_ns = 11 * NS_PER_S;
  ksm.run = 0;
  run_in_doubt(s, 12 * NS_PER_S, 4096);
}

/* A cycle sees run before and after, but not between. */
SINGLE_TEST(merging_that_began_and_ended_between_cycles_is_seen) {
  s->member.track.baseline.rollup.known = 1U << ROLLUP_KSM;
  ksm = s->m.ksm = (struct ksm){.run = 0};
  run_in_doubt(s, 2 * NS_PER_S, 0);
  ksm.pages_sharing = 500;
  run_in_doubt(s, 3 * NS_PER_S, 4096);
}

/* A reading from before run or pages_sharing was changed, in whatever way, is
 * not to be trusted, and one from after it is. */
SINGLE_TEST(readings_before_a_change_of_ksm_are_in_doubt) {
  static const struct ksm changes[] = {{2, 1000}, {2, 100}, {2, 0}, {0, 0},
                                       {0, 500},  {0, 499}, {1, 0}};

  ksm = s->m.ksm = (struct ksm){.run = 0};
  for (size_t i = 0; i < LENGTH(changes); i++) {
    uint64_t now_ns = (10 + i) * NS_PER_S;

    run_single(s, now_ns);
    s->member.track.baseline.at_ns = now_ns; /* it is read */
    run_in_doubt(s, now_ns, 0);
    ksm = changes[i];
    run_in_doubt(s, now_ns + 1, 4096);
    run_in_doubt(s, now_ns + 2, 4096);
    s->member.track.baseline.at_ns = now_ns + 1;
    run_in_doubt(s, now_ns + 3, 0);
  }
}
