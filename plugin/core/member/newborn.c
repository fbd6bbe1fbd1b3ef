/* SPDX-License-Identifier: MIT */
#include "member/newborn.h"

#include <assert.h>
#include <math.h>

#include "base/ablate.h"
#include "base/arith.h"
#include "member/member.h"

/* The division of a few pages is not worth an estimate. */
#define LENT_LEAST_BYTES (UINT64_C(64) << 10)

static uint64_t part_of(uint64_t bytes, double part) {
  return amount_from((double)bytes * part);
}

/* --- parent and child --- */

static bool is_newborn(const struct process *p) {
  return member_is_measured(p) && p->member->track.role == ROLE_NEWBORN;
}

/* The parent of a newborn that can be estimated with it; NULL of all others. */
static struct track *find_lender(const struct process_table *t,
                                 const struct process *p) {
  const struct process *of = is_newborn(p) ? process_table_parent(t, p) : NULL;
  struct track *parent;

  if (!of || !member_is_measured(of) || is_newborn(of))
    return NULL;
  parent = &of->member->track;
  return parent->family && parent->family == p->member->track.family &&
                 track_has_baseline(parent) &&
                 rollup_has(&parent->baseline.rollup, ROLLUP_PSS_ANON)
             ? parent
             : NULL;
}

static uint64_t anonymous_bytes(const struct cycle *cycle,
                                const struct track *t) {
  return minus(t->now.resident_pages, t->now.shared_pages) * cycle->page_size;
}

/* The bytes that a child has copied: its faults, times the part of faults that
 * copied in its siblings, as their first readings have shown. */
static uint64_t own_bytes(const struct cycle *cycle,
                          const struct track *child) {
  double breaks = child->family->newborns.breaks;
  uint64_t anon = anonymous_bytes(cycle, child);
  uint64_t faulted =
      child->now.has_faults ? track_faulted_bytes(cycle, &child->now) : 0;

  if (breaks >= 0)
    faulted = part_of(faulted, breaks);
  return min(faulted, anon);
}

static void add_up(struct rollup *u) {
  u->bytes[ROLLUP_PSS] = u->bytes[ROLLUP_PSS_ANON] + u->bytes[ROLLUP_PSS_FILE] +
                         u->bytes[ROLLUP_PSS_SHMEM];
  estimate_settle(u);
}

/* --- the parent's memory before and after --- */

struct inheritance {
  struct baseline before; /* the parent's, as it was estimated */
  uint64_t shared;        /* by copy on write already; each pays a part of n */
  uint64_t lent;          /* that was private, and is the newborns' as well */
  double n, sharers;
};

static struct inheritance inheritance_of(const struct cycle *cycle,
                                         const struct track *parent) {
  struct inheritance i = {.n = fork_family_size(parent),
                          .sharers = 1.0 + parent->newborns};
  struct rollup now;
  uint64_t lent;

  assert(parent->newborns > 0);
  estimate_rollup(cycle, parent, &now);
  baseline_take(&i.before, &now, &parent->now, cycle->page_size);
  i.before.relatives = fork_family_size(parent);
  i.shared = baseline_cow_shared(&i.before);
  lent = parent->lent_bytes / parent->newborns;
  i.lent = min(minus(lent, i.shared), baseline_private(&i.before).anon);
  return i;
}

/* The share of a page of files or shmem that a newborn pays in this cycle. Its
 * parent has nearly all of them as well. */
static double file_share(const struct inheritance *i,
                         const struct fork_family *family, uint64_t page_size) {
  double share = baseline_file_share(&i->before, page_size) *
                 sharing_change(&family->sharing);

  if (family->newborns.file_share >= 0)
    return family->newborns.file_share;
  return fmin(share, 1 / i->sharers);
}

static void fill_anonymous(const struct inheritance *i, uint64_t own,
                           uint64_t borrowed, struct rollup *u) {
  uint64_t old = min(borrowed, i->shared);
  uint64_t pss =
      own + part_of(old, 1 / i->n) + part_of(borrowed - old, 1 / i->sharers);

  u->bytes[ROLLUP_ANONYMOUS] = own + borrowed;
  u->bytes[ROLLUP_PSS_ANON] = u->bytes[ROLLUP_PSS_DIRTY] = pss;
  u->bytes[ROLLUP_PRIVATE_DIRTY] = own;
  u->bytes[ROLLUP_SHARED_DIRTY] = borrowed;
}

static void fill_files(uint64_t bytes, double share, bool is_shmem,
                       struct rollup *u) {
  uint64_t pss = part_of(bytes, share);

  u->bytes[is_shmem ? ROLLUP_PSS_SHMEM : ROLLUP_PSS_FILE] = pss;
  u->bytes[is_shmem ? ROLLUP_SHARED_DIRTY : ROLLUP_SHARED_CLEAN] += bytes;
  u->bytes[ROLLUP_PSS_DIRTY] += is_shmem ? pss : 0;
}

/* Swap that was the parent's alone is divided as well. */
static uint64_t swap_pss(const struct inheritance *i) {
  uint64_t all = i->before.rollup.bytes[ROLLUP_SWAP_PSS];
  uint64_t own = min(part_of(i->before.at.vm_swap_kb * UINT64_C(1024),
                             baseline_private_swap_part(&i->before)),
                     all);

  return RULE(newborn_swap) ? all - own + part_of(own, 1 / i->sharers) : all;
}

static void give(const struct cycle *cycle, const struct track *parent,
                 struct track *child) {
  struct inheritance i = inheritance_of(cycle, parent);
  uint64_t own = own_bytes(cycle, child);
  uint64_t anon = anonymous_bytes(cycle, child);
  uint64_t files = child->now.shared_pages * cycle->page_size;
  double share = file_share(&i, child->family, cycle->page_size);
  struct rollup u = {.known = i.before.rollup.known};
  double off = (double)anon * (1 - 1 / i.n) +
               (double)files * (share > 0.5 ? share : 1 - share);

  fill_anonymous(&i, own, anon - own, &u);
  /* The children also share the pages that the parent had alone. */
  fill_files(files, share, rollup_is_of_shmem(&i.before.rollup), &u);
  u.bytes[ROLLUP_SWAP] = i.before.rollup.bytes[ROLLUP_SWAP];
  u.bytes[ROLLUP_SWAP_PSS] = swap_pss(&i);
  u.bytes[ROLLUP_RSS] = u.bytes[ROLLUP_REFERENCED] = anon + files;
  add_up(&u);
  child->now.vm_swap_kb = parent->now.vm_swap_kb;
  estimator_derive(cycle, child, &u, parent->baseline.at_ns, ORIGIN_INHERITED,
                   off);
}

/* The parent pays only its part now of what it has lent. */
static void divide(const struct cycle *cycle, struct track *parent) {
  struct inheritance i = inheritance_of(cycle, parent);
  struct rollup u = i.before.rollup;
  uint64_t less = part_of(i.lent, 1 - 1 / i.sharers);
  uint64_t dirty = min(i.lent, u.bytes[ROLLUP_PRIVATE_DIRTY]);

  if (i.lent < LENT_LEAST_BYTES && swap_pss(&i) == u.bytes[ROLLUP_SWAP_PSS])
    return;
  u.bytes[ROLLUP_PRIVATE_DIRTY] -= dirty;
  u.bytes[ROLLUP_SHARED_DIRTY] += dirty;
  u.bytes[ROLLUP_PSS_ANON] -= min(less, u.bytes[ROLLUP_PSS_ANON]);
  u.bytes[ROLLUP_PSS_DIRTY] -= min(less, u.bytes[ROLLUP_PSS_DIRTY]);
  u.bytes[ROLLUP_SWAP_PSS] = swap_pss(&i);
  add_up(&u);
  /* From now on its error is CAUSE_LENT, even if it is an heir itself. */
  estimator_derive(cycle, parent, &u, parent->baseline.at_ns, ORIGIN_DIVIDED,
                   (double)less);
}

/* --- all of a cycle --- */

static void count(const struct cycle *cycle, struct track *lender,
                  const struct track *child) {
  lender->newborns++;
  lender->lent_bytes += anonymous_bytes(cycle, child) - own_bytes(cycle, child);
}

static void end_fork(const struct cycle *cycle, struct track *t) {
  if (t->newborns)
    divide(cycle, t);
  kinship_apply(t, KINSHIP_FORK_OVER, NULL);
  t->newborns = 0;
  t->lent_bytes = 0;
}

/* All children are counted before the first one gets its part, and a parent is
 * divided last: each child takes from the estimate that its parent had before.
 */
void newborn_estimate_all(const struct cycle *cycle,
                          const struct process_table *t) {
  struct process *const *p = t->processes;

  if (!RULE(newborns))
    return;
  for (size_t i = 0; i < t->n; i++) {
    struct track *lender = find_lender(t, p[i]);

    if (lender)
      count(cycle, lender, &p[i]->member->track);
  }
  for (size_t i = 0; i < t->n; i++) {
    const struct track *lender = find_lender(t, p[i]);

    if (lender)
      give(cycle, lender, &p[i]->member->track);
  }
  for (size_t i = 0; i < t->n; i++)
    if (p[i]->member)
      end_fork(cycle, &p[i]->member->track);
}
