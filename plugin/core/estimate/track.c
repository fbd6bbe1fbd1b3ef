#include "estimate/track.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "proc/arith.h"
#include "proc/rule.h"

/* Between two readings a page does not become dearer or cheaper by more: a
 * million members would have to come or go. */
#define COST_MOST 1e6

/* --- sets that share files and shmem --- */

void sharing_init(struct sharing *s, uint64_t pages) {
  double n = (double)pages;

  *s = (struct sharing){.now = n, .before = n, .left = n, .grown = n};
}

void sharing_count(struct sharing *s, uint64_t cycle_ns, uint64_t pages,
                   uint64_t before) {
  if (s->cycle_ns != cycle_ns) {
    s->cycle_ns = cycle_ns;
    s->before = s->now;
    s->left = s->grown = s->now = s->shifted = 0;
  }
  s->now += (double)pages;
  if (before == 0)
    return;
  s->left += (double)before;
  s->grown += (double)pages;
  s->shifted += fabs((double)pages - (double)before);
}

void sharing_admit(struct sharing *s, uint64_t cycle_ns, uint64_t pages,
                   uint64_t before) {
  sharing_count(s, cycle_ns, pages, before);
  s->before += (double)before;
}

void sharing_correct(struct sharing *s, double pages) {
  if (RULE(correct_count))
    s->now += pages;
}

bool sharing_has_lost(const struct sharing *s) { return s->left < s->before; }

/* The pages that members map are taken to be the same as before: the more often
 * they are mapped, the less each of them costs. */
double sharing_change(const struct sharing *s) {
  return s->before > 0 && s->now > 0 ? s->before / s->now : 1;
}

void sharing_advance(const struct sharing *s, struct sharing_since *since) {
  double most = s->before > s->now ? s->before : s->now;
  double moved =
      fabs(s->before - s->left) + s->shifted + fabs(s->grown - s->now);

  if (RULE(cost_by_mappers))
    since->cost = (float)clamp((double)since->cost * sharing_change(s),
                               1 / COST_MOST, COST_MOST);
  since->moved_pages += (float)moved;
  if (most > 0)
    since->moved = (float)clamp((double)since->moved + moved / most, 0, 1);
}

/* --- families --- */

void fork_family_leave(struct track *t) {
  struct fork_family *family = t->family;
  bool was_head = !t->is_child;

  t->family = NULL;
  t->is_family_decided = t->is_child = false;
  if (!family)
    return;
  family->has_lost_head |= was_head;
  t->family_pages = 0;
  family->changes++;
  if (--family->members == 0)
    free(family);
}

static void enter(struct track *t, struct fork_family *family) {
  t->family = family;
  t->cow_broken = family->cow_broken;
  t->got_back = family->got_back;
}

static int found_family(struct track *parent) {
  struct fork_family *family = calloc(1, sizeof(*family));

  if (!family)
    return -ENOMEM;
  *family = (struct fork_family){
      .members = 1, .cow_breaks = 1, .newborns = NEWBORN_LESSONS_AT_FIRST};
  sharing_init(&family->sharing, parent->group_pages);
  enter(parent, family);
  parent->family_pages = parent->group_pages;
  parent->is_family_decided = true;
  return 0;
}

int fork_family_join(struct track *t, struct track *parent) {
  if (!parent->family && found_family(parent) < 0)
    return -ENOMEM;
  enter(t, parent->family);
  t->family_pages = 0;
  t->family->members++;
  t->family->changes++;
  /* If it was read before its parent could be looked at, it shared then, too.
   */
  if (track_has_baseline(t))
    t->baseline.relatives = fork_family_size(t);
  t->is_child = t->is_newborn = parent->has_newborn = true;
  return 0;
}

bool fork_family_take_place(struct track *t) {
  if (!t->family->has_lost_head)
    return false;
  t->is_child = t->family->has_lost_head = false;
  return true;
}

uint16_t fork_family_size(const struct track *t) {
  uint32_t members = t->family ? t->family->members : 1;

  return members < UINT16_MAX ? (uint16_t)members : UINT16_MAX;
}

/* --- changes --- */

/* Even the one that is left has the pages of those that are gone now. */
struct sharing *track_set(const struct track *t) {
  return t->family && (t->family->members > 1 ||
                       sharing_has_lost(&t->family->sharing))
             ? &t->family->sharing
             : t->group_set;
}

struct audit *track_audit(const struct track *t) {
  return t->family ? &t->family->sharing.audit : &t->group_set->audit;
}

uint64_t track_resident_bytes(const struct cycle *cycle,
                              const struct track *t) {
  return (uint64_t)t->now.resident_pages * cycle->page_size;
}

bool track_wants_faults(const struct track *t) {
  return t->is_newborn || t->has_newborn ||
         (track_has_baseline(t) &&
          rollup_cow_bytes(&t->baseline.rollup) >= ROLLUP_COW_LEAST_BYTES);
}

static uint64_t broken_by_relatives(const struct track *t) {
  int64_t more =
      t->family ? (int64_t)(t->family->cow_broken - t->cow_broken) : 0;

  return min(amount_from((double)more / COW_BROKEN_UNITS),
             rollup_cow_bytes(&t->baseline.rollup));
}

static double seconds_of(const struct cycle *cycle, const struct track *t) {
  return (double)(cycle->now_ns - t->baseline.at_ns) / 1e9;
}

/* unsure_bytes has the error of strangers, who are 0 in both numbers. */
static double moved_part(uint32_t before, uint32_t now) {
  uint32_t most = before > now ? before : now;
  uint32_t moved = before > now ? before - now : now - before;

  return before ? (double)moved / most : 0;
}

static double relatives_moved(const struct track *t) {
  double now = moved_part(t->baseline.relatives, fork_family_size(t));
  double before = (double)t->relatives_moved;

  return now > before ? now : before;
}

uint64_t track_faulted_bytes(const struct cycle *cycle,
                             const struct observation *at) {
  uint64_t around = cycle->page_size < FAULT_AROUND_BYTES
                        ? FAULT_AROUND_BYTES / cycle->page_size
                        : 1;
  uint64_t for_shared = at->shared_pages / around;

  return minus(at->minor_faults, for_shared) * cycle->page_size;
}

struct change track_change(const struct cycle *cycle, const struct track *t) {
  const struct baseline *b = &t->baseline;
  int64_t page_size = (int64_t)cycle->page_size;
  int64_t shared = (int64_t)t->now.shared_pages - b->at.shared_pages;
  int64_t resident = (int64_t)t->now.resident_pages - b->at.resident_pages;
  struct change c = {
      .page_size = cycle->page_size,
      .seconds = seconds_of(cycle, t),
      .anon = (resident - shared) * page_size,
      .shared = shared * page_size,
      .swap = ((int64_t)t->now.vm_swap_kb - b->at.vm_swap_kb) * 1024,
      .is_swap_emptied =
          t->was_swap_used && !cycle->is_swap_used && t->now.vm_swap_kb == 0,
      .broken = amount_from((double)t->broken_bytes),
      .broken_by_relatives = broken_by_relatives(t),
      .relatives = fork_family_size(t),
      .relatives_moved = relatives_moved(t),
      .is_of_shmem = rollup_is_of_shmem(&b->rollup),
      .shared_cost = (double)t->since.cost,
      .shared_moved = (double)t->since.moved,
      .moved_pages = (double)t->since.moved_pages,
      .is_ksm_merged = b->at_ns < cycle->ksm_merged_ns,
      .is_ksm_split = b->at_ns < cycle->ksm_changed_ns,
      .returned_to_relatives =
          t->family ? t->family->got_back - t->got_back : 0};

  if (RULE(returned) && c.anon > 0 && c.swap < 0)
    c.returned = min((uint64_t)c.anon, (uint64_t)-c.swap);
  return c;
}
