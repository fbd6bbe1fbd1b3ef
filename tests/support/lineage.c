/* SPDX-License-Identifier: MIT */
#include "lineage.h"

#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "estimate/track.h"
#include "member/newborn.h"
#include "memory_table.h"
#include "test.h"

static struct family the_family; /* too large for a stack */

int lineage_make(void **state) {
  static const uint32_t objects[MEMORY_OBJECTS] = {512, 64, 4096, 64};
  struct family *f = *state = &the_family;

  memset(f, 0, sizeof(*f));
  memory_world_init(&f->world, 4096, objects);
  f->cycle.page_size = 4096;
  f->now_ns = NS_PER_S;
  sharing_init(&f->set, 0);
  sharing_init(&f->other_set, 0);
  return 0;
}

int lineage_unmake(void **state) {
  struct family *f = *state;

  memory_table_done(&f->table);
  return 0;
}

/* --- cycles --- */

static void join_group(struct process *p) {
  p->groups = calloc(1, sizeof(struct group *));
  assert_non_null(p->groups);
  p->n_groups = 1;
}

void lineage_update(struct family *f) {
  memory_view_all(&f->world, f->views);
  memory_table_update(&f->table, &f->world, f->views, f->processes);
  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++) {
    struct process *p = f->processes[slot];

    if (!p)
      continue;
    if (f->hidden >> slot & 1)
      p->state = PROCESS_UNKNOWN;
    if (p->n_groups == 0 && !(f->outside >> slot & 1))
      join_group(p);
  }
  address_space_relate(&f->table, f->diags);
}

static void observe(struct family *f, unsigned slot) {
  struct member *m = f->processes[slot]->member;
  struct track *t;
  bool is_hidden = f->hidden >> slot & 1;
  struct observation o = {.resident_pages =
                              (uint32_t)f->views[slot].resident_pages,
                          .shared_pages = (uint32_t)f->views[slot].shared_pages,
                          .threads = 1};

  if (!m || f->outside >> slot & 1)
    return;
  t = &m->track;
  if (track_wants_faults(t)) {
    o.minor_faults = f->world.processes[slot].minor_faults;
    o.has_faults = true;
  }
  o.vm_swap_kb = estimator_wants_swap(&f->cycle, t, &o)
                     ? f->views[slot].vm_swap_kb
                     : t->baseline.at.vm_swap_kb;
  estimator_observe(&f->cycle, t,
                    f->others >> slot & 1 ? &f->other_set : &f->set,
                    is_hidden ? NULL : &o);
}

void lineage_pass(struct family *f, unsigned seconds) {
  f->now_ns += seconds * NS_PER_S;
  lineage_update(f);
  f->cycle.before_ns = f->cycle.now_ns;
  f->cycle.now_ns = f->now_ns;
  f->cycle.is_swap_used = memory_is_swap_used(&f->world);
  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++)
    if (f->world.processes[slot].is_alive)
      observe(f, slot);
  newborn_estimate_all(&f->cycle, &f->table);
  for (size_t i = 0; i < f->table.n; i++)
    if (f->table.processes[i]->member)
      estimator_advance(&f->table.processes[i]->member->track);
}

void lineage_read(struct family *f, unsigned slot) {
  const struct memory_view *view = &f->views[slot];
  struct track *t = &f->processes[slot]->member->track;
  struct observation after = t->now;

  after.resident_pages = (uint32_t)view->resident_pages;
  after.shared_pages = (uint32_t)view->shared_pages;
  after.minor_faults = f->world.processes[slot].minor_faults;
  after.has_faults |= after.minor_faults > 0;
  after.vm_swap_kb = view->vm_swap_kb;
  estimator_correct(&f->cycle, t, &view->rollup, &after);
}

/* --- what is estimated, and what is --- */

struct sums lineage_estimate(const struct family *f) {
  struct sums s = {0};

  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++) {
    struct prediction p;

    if (!f->world.processes[slot].is_alive)
      continue;
    assert_true(track_has_baseline(&f->processes[slot]->member->track));
    estimator_predict(&f->cycle, &f->processes[slot]->member->track, &p);
    s.pss += (double)p.rollup.bytes[ROLLUP_PSS] / 1024;
    s.uss += (double)rollup_uss(&p.rollup) / 1024;
    s.swap += (double)p.rollup.bytes[ROLLUP_SWAP_PSS] / 1024;
    s.error += error_bytes(p.error.pss) / 1024;
  }
  return s;
}

struct sums lineage_truth(const struct family *f) {
  struct sums s = {0};

  for (unsigned slot = 0; slot < MEMORY_SLOTS; slot++) {
    const struct rollup *r = &f->views[slot].rollup;

    s.pss += (double)r->bytes[ROLLUP_PSS] / 1024;
    s.uss += (double)rollup_uss(r) / 1024;
    s.swap += (double)r->bytes[ROLLUP_SWAP_PSS] / 1024;
  }
  return s;
}

void lineage_assert_near(double got, double want, double most,
                         const char *what) {
  if (got < want - most || got > want + most)
    fail_msg("%s is estimated as %.0f kB and is %.0f kB", what, got, want);
}

void lineage_expect_within(const struct family *f, double pss_kb,
                           double uss_kb) {
  struct sums got = lineage_estimate(f), want = lineage_truth(f);

  lineage_assert_near(got.pss, want.pss, pss_kb, "PSS");
  lineage_assert_near(got.uss, want.uss, uss_kb, "USS");
  lineage_assert_near(got.pss, want.pss, got.error, "PSS within its error");
}

void lineage_start_parent(struct family *f) {
  memory_start(&f->world, 0);
  memory_grow(&f->world, 0, 40 * MIB_PAGES);
  memory_map(&f->world, 0, LIBRARY, 256, 0, true);
  lineage_pass(f, 1);
  lineage_read(f, 0);
}
