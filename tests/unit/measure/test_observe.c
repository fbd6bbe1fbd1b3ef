/* Observations, of processes whose files change within a cycle. */
#include "test.h"

#include <stdlib.h>

#include "config/policy.h"
#include "estimate/estimator.h"
#include "estimate/fork_family.h"
#include "estimate/group_track.h"
#include "estimate/member.h"
#include "match/group.h"
#include "measure/observe.h"
#include "process/process.h"

#include "proctree.h"

#define TEXT_PAGES 40

/* A process of which statm was read some time ago, with 4 MiB. */
struct fixture {
  struct proctree tree;
  struct procfs *procfs;
  struct diag diags[DIAGS];
  struct reader reader;
  struct policy policy;
  struct group_track group_track;
  struct group group, *groups[1];
  struct process process, *processes[1];
  struct member member;
  struct process_table table;
  struct cycle cycle;
  struct observer observer;
};

static uint64_t clock_ns(void) { return NS_PER_S; }

/* It has 6 MiB by now. */
static void put(const struct fixture *f, unsigned text_pages) {
  struct fake fake = fake_process(10, "worker");

  fake.starttime = 110;
  fake.text = text_pages;
  fake.private_kb = 6144;
  proctree_put(&f->tree, &fake);
}

static int make(void **state) {
  static struct fixture f;
  struct reader_setup setup = {.read_timeout_ns = 60 * NS_PER_S,
                               .clock_ns = clock_ns};

  f = (struct fixture){
      .policy = {.refresh = REFRESH_ADAPTIVE, .max_lock_hold_ns = NS_PER_S},
      .process = {.pid = 10,
                  .starttime_ticks = 110,
                  .state = PROCESS_ALIVE,
                  .threads = 1,
                  .n_groups = 1,
                  .statm = {.size_pages = 9999,
                            .resident_pages = 1024,
                            .text_pages = TEXT_PAGES}}};
  proctree_make(&f.tree);
  put(&f, TEXT_PAGES);
  assert_int_equal(procfs_new(f.tree.root, &f.procfs), 0);
  setup.procfs = f.procfs;
  setup.diags = f.diags;
  assert_int_equal(reader_init(&f.reader, &setup), 0);
  reader_begin(&f.reader, NS_PER_S);
  sharing_init(&f.group_track.sharing, 0);
  f.group.policy = &f.policy;
  f.group.track = &f.group_track;
  f.groups[0] = &f.group;
  f.process.groups = f.groups;
  f.process.member = &f.member;
  f.processes[0] = &f.process;
  f.table = (struct process_table){.processes = f.processes, .n = 1};
  f.cycle = (struct cycle){.now_ns = NS_PER_S, .page_size = PAGE};
  f.observer = (struct observer){.cycle = &f.cycle,
                                 .procfs = f.procfs,
                                 .reader = &f.reader,
                                 .table = &f.table};
  *state = &f;
  return 0;
}

static int unmake(void **state) {
  struct fixture *f = *state;

  reader_done(&f->reader);
  procfs_free(f->procfs);
  proctree_remove(&f->tree);
  return 0;
}

#define FIXTURE_TEST(name) TEST_WITH(name, make, unmake, struct fixture *f)

FIXTURE_TEST(statm_of_others_is_read_once_in_a_cycle) {
  f->member.track.has_newborn = true;
  observe_all(&f->observer);
  assert_true(f->member.track.now.has_faults);
  assert_int_equal(f->member.track.now.resident_pages, 1024);
}

/* Between statm and stat. Its memory would be in doubt, and be read for that.
 */
FIXTURE_TEST(a_process_without_stat_has_ended) {
  f->member.track.has_newborn = true;
  proctree_end(&f->tree, 10);
  observe_all(&f->observer);
  assert_int_equal(f->process.state, PROCESS_GONE);
  assert_int_equal(f->observer.vanished, 1);
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
FIXTURE_TEST(what_a_member_had_that_has_ended_is_known) {
  struct track *track = &f->member.track;

  for (int was_read = 0; was_read < 2; was_read++) {
    f->group.usage = (struct usage){0};
    f->process.state = PROCESS_ALIVE;
    if (was_read)
      track->baseline.at_ns = 1;
    track->baseline.resident_pages = 1000;
    track->baseline.kib_low[ROLLUP_PSS] = 3000;
    track->baseline.kib_low[ROLLUP_PRIVATE_DIRTY] = 2000;
    observe_end(&f->observer, &f->process);
    observe_end(&f->observer, &f->process); /* it is known */
    if (was_read)
      assert_ended(&f->group.usage, 3096, 2096, 0, 0);
    else
      assert_ended(&f->group.usage, 0, 0, 1, 4096);
  }
}

FIXTURE_TEST(what_a_zombie_had_is_noted_once) {
  struct track *track = &f->member.track;

  track->baseline.at_ns = 1;
  track->baseline.kib_low[ROLLUP_PSS] = 3000;
  track->baseline.resident_pages = 1023;
  f->process.state = PROCESS_GONE;
  for (int i = 0; i < 2; i++) {
    observe_all(&f->observer);
    assert_ended(&f->group.usage, 3004, 4, 0, 0);
  }
}
