/* SPDX-License-Identifier: MIT */
/* Observations, of processes whose files change within a cycle. */
#include "test.h"

#include "config/policy.h"
#include "estimate/estimator.h"
#include "match/group.h"
#include "measure/measure.h"
#include "member/member.h"

#include "reading.h"

/* A process of which statm was read some time ago, with 4 MiB; it has 8 MiB by
 * now. */
struct fixture {
  struct reading_world *reading;
  struct process *process, *processes[1];
  struct policy policy;
  struct group_track group_track;
  struct group group, *groups[1];
  struct member member;
  struct process_table table;
  struct measurer measurer;
};

static int make(void **state) {
  static struct fixture f;
  struct reading_world *r;

  reading_make(state);
  r = *state;
  f = (struct fixture){
      .reading = r,
      .process = &r->p,
      .processes = {&r->p},
      .policy = {.refresh = REFRESH_ADAPTIVE, .max_lock_hold_ns = NS_PER_S},
      .group = {.policy = &f.policy, .track = &f.group_track},
      .groups = {&f.group},
      .table = {.processes = f.processes, .n = 1}};
  sharing_init(&f.group_track.sharing, 0);
  measurer_init(&f.measurer, r->procfs, &r->reader, r->diags);
  f.measurer.cycle.interval_ns = NS_PER_S;
  r->p.state = PROCESS_ALIVE;
  r->p.threads = 1;
  r->p.statm.resident_pages = 1024;
  r->p.groups = f.groups;
  r->p.n_groups = 1;
  r->p.member = &f.member;
  *state = &f;
  return 0;
}

static int unmake(void **state) {
  struct fixture *f = *state;
  void *reading = f->reading;

  measurer_done(&f->measurer);
  return reading_unmake(&reading);
}

/* Runs a cycle in which readings may take so much of a processor. */
static void run(struct fixture *f, double percent) {
  const struct group_table groups = {.groups = f->groups, .n = 1};
  const struct meminfo_sample meminfo = {0};

  read_budget_init(&f->measurer.budget, percent, 60 * NS_PER_S);
  assert_int_equal(
      measurer_run(&f->measurer, &f->table, &groups, &meminfo, NS_PER_S), 0);
}

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

/* The process ends between the readings of statm and stat. Its memory would be
 * in doubt, and be read for that. */
FIXTURE_TEST(a_process_without_stat_has_ended) {
  f->member.track.role = ROLE_PARENT;
  proctree_end(&f->reading->tree, 10);
  run(f, 0);
  assert_int_equal(f->process->state, PROCESS_GONE);
  assert_int_equal(f->measurer.counts.vanished, 1);
  assert_int_equal(f->group.usage.ended_unread_bytes, 1024 * PAGE);
}

static void assert_ended(const struct usage *u, unsigned pss_kb,
                         unsigned uss_kb, unsigned unread, unsigned unread_kb) {
  assert_int_equal(u->ended_pss, pss_kb * KIB);
  assert_int_equal(u->ended_uss, uss_kb * KIB);
  assert_int_equal(u->ended_unread, unread);
  assert_int_equal(u->ended_unread_bytes, unread_kb * KIB);
}

/* Whatever the size of the other members is. */
FIXTURE_TEST(memory_of_a_member_that_has_ended_stays_known) {
  struct track *track = &f->member.track;

  proctree_end(&f->reading->tree, 10);
  for (int was_read = 0; was_read < 2; was_read++) {
    f->group.usage = (struct usage){0};
    f->process->state = PROCESS_ALIVE;
    track->role = ROLE_PARENT;
    if (was_read)
      track->baseline.at_ns = 1;
    track->baseline.at.resident_pages = 1000;
    track->baseline.rollup.bytes[ROLLUP_PSS] = 3000 * KIB;
    track->baseline.rollup.bytes[ROLLUP_PRIVATE_DIRTY] = 2000 * KIB;
    run(f, 0);
    if (was_read)
      assert_ended(&f->group.usage, 3096, 2096, 0, 0);
    else
      assert_ended(&f->group.usage, 0, 0, 1, 4096);
  }
}

FIXTURE_TEST(memory_of_a_zombie_is_noted_once) {
  struct track *track = &f->member.track;

  track->baseline.at_ns = 1;
  track->baseline.rollup.bytes[ROLLUP_PSS] = 3000 * KIB;
  track->baseline.at.resident_pages = 1023;
  f->process->state = PROCESS_GONE;
  for (int i = 0; i < 2; i++) {
    run(f, 0);
    assert_ended(&f->group.usage, 3004, 4, 0, 0);
  }
}

/* What comes after it is seen in the next cycle. */
FIXTURE_TEST(a_baseline_has_the_statm_of_after_the_reading) {
  f->policy.max_age_ns = 60 * NS_PER_S;
  run(f, 100);
  assert_int_equal(f->measurer.counts.rollup_reads, 1);
  assert_int_equal(f->member.track.now.resident_pages, 1024);
  assert_int_equal(f->member.track.baseline.at.resident_pages, 2048);
}
