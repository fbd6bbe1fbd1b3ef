/* SPDX-License-Identifier: MIT */
#include "estimate/track.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/ablate.h"
#include "base/arith.h"

/* Between two readings a page does not become dearer or cheaper by more: a
 * million members would have to come or go. */
#define SHARE_MOST 1e6

/* --- sets that share files and shmem --- */

void sharing_init(struct sharing *s, uint64_t pages) {
  double n = (double)pages;

  *s = (struct sharing){.now = n, .before = n, .left = n};
}

/* Counts the pages of a member, and its pages of the cycle before (0 if it was
 * not there). */
static void count(struct sharing *s, uint64_t cycle_ns, uint64_t pages,
                  uint64_t before) {
  if (s->cycle_ns != cycle_ns) {
    s->cycle_ns = cycle_ns;
    s->before = s->now;
    s->left = s->now = s->moved = 0;
  }
  s->now += (double)pages;
  s->left += (double)before;
  s->moved += (double)distance(pages, before);
}

/* The pages that members map are taken to be the same as before: the more often
 * they are mapped, the less each of them costs. */
double sharing_change(const struct sharing *s) {
  return s->before > 0 && s->now > 0 ? s->before / s->now : 1;
}

void sharing_advance(const struct sharing *s, struct sharing_since *since) {
  double most = s->before > s->now ? s->before : s->now;
  double moved = fabs(s->before - s->left) + s->moved;

  if (RULE(share_by_mappers))
    since->share =
        clamp(since->share * sharing_change(s), 1 / SHARE_MOST, SHARE_MOST);
  since->moved_pages += moved;
  if (most > 0)
    since->moved = clamp(since->moved + moved / most, 0, 1);
}

/* --- families --- */

static void enter(struct track *t, struct fork_family *family) {
  t->family = family;
  t->told = family->told;
}

static void leave(struct track *t) {
  struct fork_family *family = t->family;

  t->family = NULL;
  if (!family)
    return;
  family->has_lost_head |= t->kinship == KINSHIP_HEAD;
  t->family_pages = 0;
  family->changes++;
  if (--family->members == 0)
    free(family);
}

void kinship_apply(struct track *t, enum kinship_event event,
                   struct fork_family *family) {
  bool has_family = t->family != NULL;

  assert(has_family ==
         (t->kinship == KINSHIP_HEAD || t->kinship == KINSHIP_CHILD));
  switch (event) {
  case KINSHIP_NOT_FOUND:
    assert(t->kinship == KINSHIP_UNDECIDED);
    t->kinship = KINSHIP_ALONE;
    return;
  case KINSHIP_FOUNDS:
    assert(!has_family);
    enter(t, family);
    t->kinship = KINSHIP_HEAD;
    return;
  case KINSHIP_JOINS:
    assert(t->kinship == KINSHIP_ALONE);
    enter(t, family);
    t->kinship = KINSHIP_CHILD;
    t->role = ROLE_NEWBORN;
    return;
  case KINSHIP_FORKED:
    assert(has_family);
    if (t->role != ROLE_NEWBORN)
      t->role = ROLE_PARENT;
    return;
  case KINSHIP_SUCCEEDS:
    assert(t->kinship == KINSHIP_CHILD && t->family->has_lost_head);
    t->family->has_lost_head = false;
    t->kinship = KINSHIP_HEAD;
    return;
  case KINSHIP_DOUBTED:
    if (!has_family)
      t->kinship = KINSHIP_UNDECIDED;
    return;
  case KINSHIP_LEAVES:
    leave(t);
    t->kinship = KINSHIP_UNDECIDED;
    return;
  case KINSHIP_FORK_OVER:
    t->role = ROLE_NONE;
    return;
  }
}

static int found_family(struct track *parent) {
  struct fork_family *family = calloc(1, sizeof(*family));

  if (!family)
    return -ENOMEM;
  *family = (struct fork_family){
      .members = 1, .cow_breaks = 1, .newborns = NEWBORN_LESSONS_AT_FIRST};
  sharing_init(&family->sharing, parent->group_pages);
  parent->family_pages = parent->group_pages;
  kinship_apply(parent, KINSHIP_FOUNDS, family);
  return 0;
}

int fork_family_join(struct track *t, struct track *parent) {
  if (!parent->family && found_family(parent) < 0)
    return -ENOMEM;
  kinship_apply(t, KINSHIP_JOINS, parent->family);
  kinship_apply(parent, KINSHIP_FORKED, NULL);
  t->family_pages = 0;
  t->family->members++;
  t->family->changes++;
  /* If it was read before its parent could be looked at, it shared then, too.
   */
  if (track_has_baseline(t))
    t->baseline.relatives = fork_family_size(t);
  return 0;
}

void fork_family_leave(struct track *t) {
  kinship_apply(t, KINSHIP_LEAVES, NULL);
}

uint16_t fork_family_size(const struct track *t) {
  uint32_t members = t->family ? t->family->members : 1;

  return members < UINT16_MAX ? (uint16_t)members : UINT16_MAX;
}

/* --- its sets --- */

/* Even the one that is left has the pages of those that are gone now. */
struct sharing *track_set(const struct track *t) {
  const struct fork_family *f = t->family;

  return f && (f->members > 1 || f->sharing.left < f->sharing.before)
             ? &t->family->sharing
             : t->group_set;
}

/* Its pages of files and shmem, less those that no other process mapped at the
 * baseline. */
static uint32_t counted_pages(const struct cycle *cycle, const struct track *t,
                              uint32_t shared_pages) {
  uint64_t own =
      track_has_baseline(t)
          ? baseline_private_file_bytes(&t->baseline) / cycle->page_size
          : 0;

  return (uint32_t)minus(shared_pages, own);
}

/* A family is in the set of its group by the one that founded it: what happens
 * among its members does not matter to others. The first child that is counted
 * after that one has left takes its place. */
static void count_in_group(const struct cycle *cycle, struct track *t,
                           uint32_t pages) {
  if (t->kinship != KINSHIP_CHILD) {
    count(t->group_set, cycle->now_ns, pages, t->group_pages);
  } else if (t->family->has_lost_head) {
    kinship_apply(t, KINSHIP_SUCCEEDS, NULL);
    count(t->group_set, cycle->now_ns, pages, t->family_pages);
    t->group_set->before += t->family_pages;
  }
  t->group_pages = t->kinship == KINSHIP_CHILD ? 0 : pages;
}

void track_count(const struct cycle *cycle, struct track *t) {
  uint32_t pages = counted_pages(cycle, t, t->now.shared_pages);

  count_in_group(cycle, t, pages);
  if (t->family)
    count(&t->family->sharing, cycle->now_ns, pages, t->family_pages);
  t->family_pages = t->family ? pages : 0;
}

void track_correct_count(const struct cycle *cycle, struct track *t,
                         uint32_t shared_pages) {
  uint32_t pages = counted_pages(cycle, t, shared_pages);

  if (t->family && RULE(correct_count)) {
    t->family->sharing.now += (double)pages - t->family_pages;
    t->family_pages = pages;
  }
  if (t->kinship != KINSHIP_CHILD && RULE(correct_count)) {
    t->group_set->now += (double)pages - t->group_pages;
    t->group_pages = pages;
  }
}

/* --- changes --- */

struct audit *track_audit(const struct track *t) {
  return t->family ? &t->family->sharing.audit : &t->group_set->audit;
}

uint64_t track_resident_bytes(const struct cycle *cycle,
                              const struct track *t) {
  return (uint64_t)t->now.resident_pages * cycle->page_size;
}

bool track_wants_faults(const struct track *t) {
  return t->role != ROLE_NONE ||
         (track_has_baseline(t) &&
          rollup_cow_bytes(&t->baseline.rollup) >= ROLLUP_COW_LEAST_BYTES);
}

uint64_t track_broken_by_relatives(const struct track *t) {
  int64_t more =
      t->family ? (int64_t)(t->family->told.cow_broken - t->told.cow_broken)
                : 0;

  return min(amount_from((double)more / COW_BROKEN_UNITS),
             rollup_cow_bytes(&t->baseline.rollup));
}

double track_relatives_moved(const struct track *t) {
  uint64_t before = t->baseline.relatives, now = fork_family_size(t);
  double part =
      before ? (double)distance(before, now) / (double)max(before, now) : 0;

  return fmax(part, t->relatives_moved);
}

uint64_t track_faulted_bytes(const struct cycle *cycle,
                             const struct observation *at) {
  uint64_t around = cycle->page_size < FAULT_AROUND_BYTES
                        ? FAULT_AROUND_BYTES / cycle->page_size
                        : 1;
  uint64_t for_shared = at->shared_pages / around;

  return minus(at->minor_faults, for_shared) * cycle->page_size;
}

static void find_gone(const struct baseline *b, struct change *c) {
  uint64_t cow = baseline_cow_shared(b);
  int64_t gone = -c->anon - c->swap;

  if (gone <= 0 || cow == 0)
    return;
  c->unmapped = min(minus((uint64_t)gone, baseline_private(b).anon), cow);
  c->freed = min((uint64_t)gone, cow) - c->unmapped;
}

void track_find_change(const struct cycle *cycle, struct track *t) {
  const struct observation *then = &t->baseline.at;
  int64_t page_size = (int64_t)cycle->page_size;
  int64_t shared = (int64_t)t->now.shared_pages - then->shared_pages;
  int64_t resident = (int64_t)t->now.resident_pages - then->resident_pages;
  struct change c = {.anon = (resident - shared) * page_size,
                     .shared = shared * page_size,
                     .swap = ((int64_t)t->now.vm_swap_kb - then->vm_swap_kb) *
                             1024};

  if (RULE(returned) && c.anon > 0 && c.swap < 0)
    c.returned = min((uint64_t)c.anon, (uint64_t)-c.swap);
  find_gone(&t->baseline, &c);
  t->change = c;
}
