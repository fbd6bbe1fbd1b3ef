#include "estimate/track_change.h"

#include "proc/amount.h"

static uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

struct sharing *track_set(const struct track *t) {
  return t->family ? &t->family->sharing : t->group_set;
}

uint64_t track_resident_bytes(const struct estimator *e,
                              const struct track *t) {
  return (uint64_t)t->now.resident_pages * e->page_size;
}

bool track_is_swap_emptied(const struct estimator *e, const struct track *t) {
  return t->was_swap_used && !e->is_swap_used;
}

static uint64_t broken_by_relatives(const struct track *t) {
  int64_t more =
      t->family ? (int64_t)(t->family->cow_broken - t->cow_broken) : 0;

  return min(amount_from((double)more / COW_BROKEN_UNITS),
             baseline_cow_bytes(&t->baseline));
}

/* A page that two get back from swap, one after the other, costs the first half
 * as much from then on, and the other no more; or less if others have it. */
static uint64_t shared_again(const struct track *t, uint64_t returned) {
  uint64_t own = amount_from((double)t->got_back), all, later;

  if (!t->family)
    return 0;
  all = t->family->returned;
  later = all - t->returned;
  return min(later / 2, own) + min(all > own ? all - own : 0, returned) / 2;
}

double track_seconds(const struct estimator *e, const struct track *t) {
  return (double)(e->now_ns - t->baseline.at_ns) / 1e9;
}

/* Of strangers, of which there are 0, unsure_bytes has the error. */
static double moved_part(uint32_t before, uint32_t now) {
  uint32_t most = before > now ? before : now;
  uint32_t moved = before > now ? before - now : now - before;

  return before ? (double)moved / most : 0;
}

static double relatives_moved(const struct track *t) {
  double now = moved_part(t->baseline.relatives, fork_family_relatives(t));
  double before = (double)t->relatives_moved;

  return now > before ? now : before;
}

uint64_t track_faulted_bytes(const struct estimator *e,
                             const struct observation *at) {
  uint64_t around =
      e->page_size < FAULT_AROUND_BYTES ? FAULT_AROUND_BYTES / e->page_size : 1;
  uint64_t for_shared = at->shared_pages / around;

  return at->minor_faults > for_shared
             ? (at->minor_faults - for_shared) * e->page_size
             : 0;
}

uint64_t track_own_bytes(const struct estimator *e,
                         const struct fork_family *family,
                         const struct observation *at, uint64_t least) {
  uint64_t anon = (at->resident_pages > at->shared_pages
                       ? at->resident_pages - at->shared_pages
                       : 0) *
                  e->page_size;
  double breaks = family->newborns.breaks < 0 ? 1 : family->newborns.breaks;
  uint64_t own = amount_from((double)track_faulted_bytes(e, at) * breaks);

  return min(own > least ? own : least, anon);
}

/* A newborn has mostly been estimated before any of its siblings was read. What
 * is less than a page is rounding. */
static int64_t kept_bytes(const struct estimator *e, const struct track *t) {
  const struct observation at = baseline_observation(&t->baseline);
  int64_t page_size = (int64_t)e->page_size, kept;
  uint64_t own;

  if (!t->is_heir || !t->is_own_by_faults || !t->family)
    return 0;
  own = track_own_bytes(e, t->family, &at, amount_from((double)t->own_least));
  kept = (int64_t)baseline_private(&t->baseline).anon - (int64_t)own;
  return kept > -page_size && kept < page_size ? 0 : kept;
}

struct change track_change(const struct estimator *e, const struct track *t) {
  const struct baseline *b = &t->baseline;
  const struct sharing *set = track_set(t);
  int64_t page_size = (int64_t)e->page_size;
  int64_t shared = (int64_t)t->now.shared_pages - b->shared_pages;
  int64_t resident = (int64_t)t->now.resident_pages - b->resident_pages;
  struct change c = {
      .page_size = e->page_size,
      .seconds = track_seconds(e, t),
      .anon = (resident - shared) * page_size,
      .shared = shared * page_size,
      .swap = ((int64_t)t->now.vm_swap_kb - b->vm_swap_kb) * 1024,
      .swap_left =
          b->vm_swap_kb ? (double)t->now.vm_swap_kb / b->vm_swap_kb : 1,
      .is_swap_emptied = track_is_swap_emptied(e, t) && t->now.vm_swap_kb == 0,
      .broken = amount_from((double)t->broken_bytes),
      .broken_by_relatives = broken_by_relatives(t),
      .kept = kept_bytes(e, t),
      .relatives = fork_family_size(t),
      .strangers = t->strangers_counted,
      .relatives_moved = relatives_moved(t),
      .is_of_shmem = set->is_shmem,
      .shared_cost = (double)t->since.cost,
      .shared_moved = (double)t->since.moved,
      .moved_pages = (double)t->since.moved_pages,
      .is_ksm_merged = b->at_ns < e->ksm_merged_ns,
      .is_ksm_split = b->at_ns < e->ksm_changed_ns,
      .derived_anon = (double)t->derived_anon,
      .derived_files = (double)t->derived_files};

  if (c.anon > 0 && c.swap < 0)
    c.returned = min((uint64_t)c.anon, (uint64_t)-c.swap);
  c.shared_again = shared_again(t, c.returned);
  return c;
}
