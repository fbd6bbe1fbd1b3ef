/* Forks beside the truth, while nothing is read but what a test asks for. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "estimate/address_space.h"
#include "estimate/newborn.h"
#include "memory_world.h"
#include "proc/amount.h"
#include "process/process.h"

#define MIB_PAGES 256
#define LIBRARY 0
#define BUFFERS 2

struct family {
  struct memory_world world;
  struct memory_view views[MEMORY_SLOTS];
  struct process *processes[MEMORY_SLOTS];
  struct process_table table;
  struct estimator estimator;
  struct sharing set; /* of the group that all are in */
  struct diag diags[DIAGS];
  uint64_t now_ns;
  unsigned hidden;  /* slots that cannot be looked at */
  unsigned outside; /* slots that are in no group */
};

static struct family the_family; /* too large for a stack */

static int make(void **state) {
  static const uint32_t objects[MEMORY_OBJECTS] = {512, 64, 4096, 64};
  struct family *f = *state = &the_family;

  memset(f, 0, sizeof(*f));
  memory_world_init(&f->world, 4096, objects);
  f->estimator.page_size = 4096;
  f->now_ns = NS_PER_S;
  sharing_init(&f->set, 0);
  return 0;
}

static void gone(void *ctx, struct process *p) {
  (void)ctx;
  track_free(p);
  free(p->groups);
  p->groups = NULL;
}

static int unmake(void **state) {
  struct family *f = *state;

  process_table_done(&f->table, gone, NULL);
  return 0;
}

#define FAMILY_TEST(name) TEST_WITH(name, make, unmake, struct family *f)

/* --- cycles --- */

static int compare_entries(const void *left, const void *right) {
  const struct procfs_entry *a = left, *b = right;

  return (a->pid > b->pid) - (a->pid < b->pid);
}

static void update_process(struct family *f, unsigned slot) {
  const struct memory_process *from = &f->world.processes[slot];
  const struct memory_view *view = &f->views[slot];
  struct process *p = process_table_find(&f->table, from->pid);

  f->processes[slot] = p;
  p->state = f->hidden >> slot & 1 ? PROCESS_UNKNOWN : PROCESS_ALIVE;
  p->threads = 1;
  p->starttime_ticks = from->starttime;
  p->start_stack = 0x7ff000000000 + (from->program << 16);
  p->statm = (struct statm_sample){.size_pages = view->resident_pages,
                                   .resident_pages = view->resident_pages,
                                   .shared_pages = view->shared_pages,
                                   .text_pages = 40};
  if (!p->is_linked)
    p->parent_pid = from->parent_pid;
  if (p->n_groups || f->outside >> slot & 1)
    return;
  p->groups = calloc(1, sizeof(struct group *));
  assert_non_null(p->groups);
  p->n_groups = 1;
}

static void update_table(struct family *f) {
  struct procfs_entry entries[MEMORY_SLOTS];
  size_t n = 0;

  memory_view_all(&f->world, f->views);
  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++)
    if (f->world.processes[slot].is_alive)
      entries[n++] =
          (struct procfs_entry){.pid = f->world.processes[slot].pid,
                                .ino = f->world.processes[slot].starttime};
  qsort(entries, n, sizeof(entries[0]), compare_entries);
  assert_int_equal(process_table_update(&f->table, entries, n, gone, NULL), 0);
  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++)
    if (f->world.processes[slot].is_alive)
      update_process(f, slot);
  address_space_relate(&f->table, f->diags);
}

static void observe(struct family *f, unsigned slot) {
  struct track *t = f->processes[slot]->track;
  bool is_hidden = f->hidden >> slot & 1;
  struct observation o = {.resident_pages =
                              (uint32_t)f->views[slot].resident_pages,
                          .shared_pages = (uint32_t)f->views[slot].shared_pages,
                          .threads = 1};

  if (!t || f->outside >> slot & 1)
    return;
  if (estimator_wants_faults(t)) {
    o.minor_faults = f->world.processes[slot].minor_faults;
    o.has_faults = true;
  }
  if (estimator_wants_swap(&f->estimator, t, &o)) {
    o.vm_swap_kb = f->views[slot].vm_swap_kb;
    o.has_swap = true;
  }
  estimator_observe(&f->estimator, t, &f->set, is_hidden ? NULL : &o);
}

static void pass(struct family *f, unsigned seconds) {
  f->now_ns += seconds * NS_PER_S;
  update_table(f);
  estimator_begin(&f->estimator, f->now_ns, memory_is_swap_used(&f->world));
  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++)
    if (f->world.processes[slot].is_alive)
      observe(f, slot);
  newborn_estimate_all(&f->estimator, &f->table);
  for (size_t i = 0; i < f->table.n; i++)
    if (f->table.processes[i]->track)
      estimator_expect(&f->estimator, f->table.processes[i]->track);
}

static void read_one(struct family *f, unsigned slot) {
  const struct memory_view *view = &f->views[slot];
  uint32_t faults = f->world.processes[slot].minor_faults;
  struct reading reading = {.rollup = &view->rollup,
                            .has_statm = true,
                            .resident_pages = (uint32_t)view->resident_pages,
                            .shared_pages = (uint32_t)view->shared_pages,
                            .faults_before = faults,
                            .faults_after = faults,
                            .vm_swap_kb = view->vm_swap_kb};

  estimator_correct(&f->estimator, f->processes[slot]->track, &reading);
}

/* --- what is estimated, and what is --- */

struct sums {
  double pss, uss, swap, error;
};

static struct sums estimated(const struct family *f) {
  struct sums s = {0};

  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++) {
    struct prediction p;

    if (!f->world.processes[slot].is_alive)
      continue;
    assert_true(estimator_has_baseline(f->processes[slot]->track));
    estimator_predict(&f->estimator, f->processes[slot]->track, &p);
    s.pss += (double)p.rollup.bytes[ROLLUP_PSS] / 1024;
    s.uss += (double)rollup_uss(&p.rollup) / 1024;
    s.swap += (double)p.rollup.bytes[ROLLUP_SWAP_PSS] / 1024;
    s.error += doubt_bytes(p.pss_error) / 1024;
  }
  return s;
}

static struct sums truth(const struct family *f) {
  struct sums s = {0};

  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++) {
    const struct rollup *r = &f->views[slot].rollup;

    s.pss += (double)r->bytes[ROLLUP_PSS] / 1024;
    s.uss += (double)rollup_uss(r) / 1024;
    s.swap += (double)r->bytes[ROLLUP_SWAP_PSS] / 1024;
  }
  return s;
}

static void assert_near(double got, double want, double most,
                        const char *what) {
  if (got < want - most || got > want + most)
    fail_msg("%s is estimated as %.0f kB and is %.0f kB", what, got, want);
}

static void expect_within(const struct family *f, double pss_kb,
                          double uss_kb) {
  struct sums got = estimated(f), want = truth(f);

  assert_near(got.pss, want.pss, pss_kb, "PSS");
  assert_near(got.uss, want.uss, uss_kb, "USS");
  assert_near(got.pss, want.pss, got.error, "PSS within its error");
}

static void start_parent(struct family *f) {
  memory_start(&f->world, 0);
  memory_grow(&f->world, 0, 40 * MIB_PAGES);
  memory_map(&f->world, 0, LIBRARY, 256, 0, true);
  pass(f, 1);
  read_one(f, 0);
}

/* --- two --- */

FAMILY_TEST(a_fork_counts_no_page_twice) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 200);
  pass(f, 1);
  expect_within(f, 1100, 2300);
}

FAMILY_TEST(faults_of_a_child_are_its_own_memory) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  memory_write(&f->world, 1, 8 * MIB_PAGES, 0);
  pass(f, 1);
  /* The pages are the parent's alone as well, which nothing shows. */
  expect_within(f, 1100, 8 * 1024 + 1100);
}

FAMILY_TEST(growth_of_a_child_is_its_own) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  memory_grow(&f->world, 1, 20 * MIB_PAGES);
  pass(f, 1);
  expect_within(f, 1100, 1100);
}

FAMILY_TEST(after_its_end_all_is_the_parents_again) {
  start_parent(f);
  for (int i = 0; i < 50; i++) {
    memory_fork(&f->world, 0, 1, 100);
    pass(f, 10);
    expect_within(f, 1100, 1300);
    memory_exit(&f->world, 1);
    pass(f, 10);
    expect_within(f, 100, 100);
  }
}

/* Each interval finds another child than the one before. */
FAMILY_TEST(child_after_child_adds_up_to_one) {
  start_parent(f);
  for (int i = 0; i < 50; i++) {
    memory_exit(&f->world, 1);
    memory_exit(&f->world, 2);
    memory_fork(&f->world, 0, i % 2 ? 1 : 2, 100);
    pass(f, 10);
    expect_within(f, 1100, 1300);
  }
}

FAMILY_TEST(the_parent_is_corrected_when_only_the_child_is_read) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 100);
  pass(f, 1);
  read_one(f, 1);
  expect_within(f, 1100, 1100);
}

FAMILY_TEST(the_child_is_corrected_when_only_the_parent_is_read) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 100);
  pass(f, 1);
  read_one(f, 0);
  expect_within(f, 1100, 1100);
}

FAMILY_TEST(the_parents_writes_after_a_fork_are_followed) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  pass(f, 1);
  memory_write(&f->world, 0, 10 * MIB_PAGES, 0);
  pass(f, 1);
  expect_within(f, 1100, 10 * 1024 + 1100);
}

FAMILY_TEST(memory_in_swap_is_divided) {
  start_parent(f);
  memory_swap_out(&f->world, 0, 10 * MIB_PAGES, 0);
  pass(f, 1);
  memory_fork(&f->world, 0, 1, 0);
  pass(f, 1);
  expect_within(f, 1100, 1100);
  assert_near(estimated(f).swap, truth(f).swap, 100, "swap");
}

/* --- more --- */

FAMILY_TEST(many_children_at_once_divide_what_they_have) {
  start_parent(f);
  for (unsigned child = 1; child <= 8; child++)
    memory_fork(&f->world, 0, child, 0);
  pass(f, 1);
  /* Each has had a hundred faults, which can have been copies. */
  expect_within(f, 8 * 400, 9 * 400);
}

FAMILY_TEST(children_of_two_parents_inherit_each_from_their_own) {
  start_parent(f);
  memory_swap_out(&f->world, 0, 10 * MIB_PAGES, 0);
  memory_start(&f->world, 8);
  memory_grow(&f->world, 8, MIB_PAGES);
  pass(f, 1);
  read_one(f, 8);
  for (unsigned i = 1; i <= 4; i++) {
    memory_fork(&f->world, 0, i, 0);
    memory_fork(&f->world, 8, 8 + i, 0);
  }
  pass(f, 1);
  expect_within(f, 8 * 450, 9 * 450);
  assert_near(estimated(f).swap, truth(f).swap, 100, "swap");
}

/* The next child alone shares with the parent the memory that this has got
 * since it forked last. */
FAMILY_TEST(a_new_worker_shares_what_came_since_the_others) {
  start_parent(f);
  for (unsigned child = 1; child <= 7; child++)
    memory_fork(&f->world, 0, child, 0);
  pass(f, 1);
  for (unsigned slot = 0; slot <= 7; slot++)
    read_one(f, slot);
  memory_grow(&f->world, 0, 16 * MIB_PAGES);
  memory_fork(&f->world, 0, 8, 0);
  pass(f, 1);
  expect_within(f, 1100, 1100);
}

FAMILY_TEST(a_grandchild_inherits_what_its_parent_has_inherited) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  pass(f, 1);
  memory_fork(&f->world, 1, 2, 0);
  pass(f, 1);
  expect_within(f, 7000, 2300);
}

/* --- what the first readings teach --- */

static void replace_worker(struct family *f, unsigned slot) {
  memory_exit(&f->world, slot);
  memory_fork(&f->world, 0, slot, 64);
  memory_map(&f->world, slot, BUFFERS, 1024, 0, true);
  memory_write(&f->world, slot, MIB_PAGES, 0);
  memory_grow(&f->world, slot, 2 * MIB_PAGES);
}

FAMILY_TEST(workers_are_known_from_those_before) {
  start_parent(f);
  for (unsigned slot = 1; slot <= 8; slot++)
    replace_worker(f, slot);
  pass(f, 1);
  for (unsigned slot = 0; slot <= 8; slot++)
    read_one(f, slot);
  for (unsigned i = 0; i < 200; i++) {
    unsigned slot = 1 + i % 8;

    replace_worker(f, slot);
    pass(f, 1);
    if (i > 100) {
      expect_within(f, 0.01 * truth(f).pss, 0.05 * truth(f).uss);
      assert_true(estimated(f).error < 0.3 * truth(f).pss);
    }
    if (i % 2)
      read_one(f, slot);
    if (i % 20 == 0)
      read_one(f, 0);
  }
}

/* Two map the buffers before it, three with it. */
FAMILY_TEST(files_of_a_child_cost_what_those_of_the_one_before_did) {
  struct prediction child;

  start_parent(f);
  memory_start(&f->world, 8);
  for (unsigned i = 0; i < 10; i++) {
    for (unsigned slot = 0; slot <= 8; slot += 8)
      memory_map(&f->world, slot, BUFFERS, 4096, 0, true);
    memory_exit(&f->world, 1);
    pass(f, 10);
    read_one(f, 0);
    memory_fork(&f->world, 0, 1, 0);
    memory_map(&f->world, 1, BUFFERS, 4096, 0, true);
    pass(f, 10);
    estimator_predict(&f->estimator, f->processes[1]->track, &child);
    if (i > 0)
      assert_near((double)child.rollup.bytes[ROLLUP_PSS_SHMEM] / 1024,
                  16384.0 / 3, 100, "PSS of the buffers");
    read_one(f, 1);
  }
}

FAMILY_TEST(without_a_reading_of_the_parent_there_is_nothing_to_inherit) {
  memory_start(&f->world, 0);
  memory_grow(&f->world, 0, 40 * MIB_PAGES);
  memory_fork(&f->world, 0, 1, 200);
  pass(f, 1);
  assert_false(estimator_has_baseline(f->processes[1]->track));
  /* Nor later, when it is no newborn any more. */
  read_one(f, 0);
  pass(f, 1);
  assert_false(estimator_has_baseline(f->processes[1]->track));
}

/* It shares nothing with the parent that it had. */
FAMILY_TEST(an_heir_that_execs_has_nothing) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 200);
  pass(f, 1);
  memory_exec(&f->world, 1);
  memory_grow(&f->world, 1, MIB_PAGES);
  pass(f, 1);
  assert_false(estimator_has_baseline(f->processes[1]->track));
  read_one(f, 1);
  expect_within(f, 1100, 1100);
}

FAMILY_TEST(an_heir_that_execs_teaches_its_own_children_nothing) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 200);
  pass(f, 1);
  memory_exec(&f->world, 1);
  memory_map(&f->world, 1, LIBRARY, 64, 0, true);
  memory_fork(&f->world, 1, 2, 0);
  pass(f, 1);
  read_one(f, 1);
  assert_true(f->processes[2]->track->family->newborns.file_cost < 0);
}

/* Memory is copied also between the look at the faults and the reading. */
FAMILY_TEST(a_reading_amid_copies_teaches_nothing_wrong) {
  double error = 1, before = 1;

  start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  pass(f, 1);
  read_one(f, 0);
  read_one(f, 1);
  for (unsigned i = 0; i < 8; i++) {
    memory_write(&f->world, 0, 2 * MIB_PAGES, (uint16_t)(i * 0x1999));
    pass(f, 1);
    memory_write(&f->world, 0, MIB_PAGES, (uint16_t)(i * 0x1999 + 0xccc));
    update_table(f);
    read_one(f, 0);
    expect_within(f, 600, 20000);
    assert_true(f->processes[0]->track->family->cow_breaks > 0.99);
    error = f->processes[0]->track->family->cow_error.usual;
    assert_true(error <= before);
    before = error;
  }
  assert_true(error < 0.6);
}

/* The relative was read before. */
FAMILY_TEST(copies_made_during_a_reading_are_told_to_relatives) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  pass(f, 1);
  read_one(f, 0);
  read_one(f, 1);
  pass(f, 1);
  read_one(f, 1);
  memory_write(&f->world, 0, 16 * MIB_PAGES, 0);
  update_table(f);
  read_one(f, 0);
  pass(f, 1);
  expect_within(f, 100, 100);
}

/* --- what cannot be looked at for a while --- */

static void pass_without(struct family *f, unsigned slot) {
  f->hidden = 1U << slot;
  pass(f, 1);
  f->hidden = 0;
}

FAMILY_TEST(a_child_that_is_seen_late_is_a_newborn_still) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  pass_without(f, 1);
  pass(f, 1);
  expect_within(f, 1100, 1100);
}

FAMILY_TEST(a_parent_that_is_seen_late_is_corrected_then) {
  start_parent(f);
  memory_fork(&f->world, 0, 1, 0);
  pass_without(f, 0);
  read_one(f, 1);
  pass(f, 1);
  expect_within(f, 1100, 1100);
}

/* A master that runs as another user than its workers, for instance. */
FAMILY_TEST(nothing_more_is_asked_for_relatives_without_a_group) {
  for (unsigned outsider = 0; outsider <= 1; outsider++) {
    unsigned member = 1 - outsider;

    unmake((void **)&f);
    make((void **)&f);
    f->outside = 1U << outsider;
    memory_start(&f->world, 0);
    memory_grow(&f->world, 0, 40 * MIB_PAGES);
    memory_fork(&f->world, 0, 1, 0);
    pass(f, 1);
    assert_false(estimator_wants_faults(f->processes[member]->track));
  }
}

FAMILY_TEST(a_chain_of_forks_counts_no_page_twice) {
  start_parent(f);
  for (unsigned child = 1; child <= 5; child++)
    memory_fork(&f->world, child - 1, child, 0);
  pass(f, 1);
  expect_within(f, 5 * 500, 5 * 600);
}

FAMILY_TEST(swap_is_divided_among_many) {
  start_parent(f);
  memory_swap_out(&f->world, 0, 40 * MIB_PAGES, 0);
  pass(f, 1);
  for (unsigned child = 1; child <= 8; child++)
    memory_fork(&f->world, 0, child, 0);
  pass(f, 1);
  assert_near(estimated(f).swap, truth(f).swap, 100, "swap");
  for (unsigned child = 9; child <= 12; child++) {
    memory_fork(&f->world, 0, child, 0);
    pass(f, 1);
    assert_near(estimated(f).swap, truth(f).swap, 100, "swap");
  }
}

/* --- what is learnt --- */

static double expected_kb(const struct family *f, unsigned slot) {
  const struct track *t = f->processes[slot]->track;

  return ((double)t->expected_common + (double)t->expected_independent) / 1024;
}

/* Children that do nothing, of which each is read. */
static void learn_from_children(struct family *f) {
  start_parent(f);
  for (int i = 0; i < 100; i++) {
    memory_fork(&f->world, 0, 1, 0);
    pass(f, 1);
    read_one(f, 1);
    memory_exit(&f->world, 1);
    pass(f, 1);
    read_one(f, 0);
  }
}

/* Hundreds of them at a time make no error that is worth a reading. */
FAMILY_TEST(children_like_those_before_are_hardly_doubted) {
  learn_from_children(f);
  memory_fork(&f->world, 0, 1, 0);
  pass(f, 1);
  assert_true(f->processes[1]->track->family->newborns.anon.usual < 0.001);
  assert_true(expected_kb(f, 1) < 60);
}

/* The parent is read when its child has gone, and all is its own again. */
FAMILY_TEST(an_error_of_the_parent_is_not_its_childrens) {
  const struct newborn_lessons *lessons;

  learn_from_children(f);
  memory_fork(&f->world, 0, 1, 0);
  pass(f, 1);
  memory_exit(&f->world, 1);
  memory_view_all(&f->world, f->views);
  read_one(f, 0);
  pass(f, 1);
  memory_fork(&f->world, 0, 1, 0);
  pass(f, 1);
  lessons = &f->processes[1]->track->family->newborns;
  assert_true(lessons->lent.usual > 0.9);
  assert_true(lessons->anon.usual < 0.001);
  assert_true(expected_kb(f, 0) > 20000);
}

/* --- what comes while the kernel walks --- */

/* Behind the walk, so that the rollup lacks it and statm after it does not. */
FAMILY_TEST(memory_that_came_during_a_reading_is_not_lost) {
  struct memory_view before;
  struct reading reading = {.rollup = &before.rollup, .has_statm = true};

  start_parent(f);
  pass(f, 1);
  before = f->views[0];
  memory_grow(&f->world, 0, 8 * MIB_PAGES);
  update_table(f);
  reading.resident_pages = (uint32_t)f->views[0].resident_pages;
  reading.shared_pages = (uint32_t)f->views[0].shared_pages;
  estimator_correct(&f->estimator, f->processes[0]->track, &reading);
  pass(f, 1);
  expect_within(f, 4, 4);
}
