/* SPDX-License-Identifier: MIT */
#include "estimate/estimate.h"

#include <math.h>

#include "base/ablate.h"
#include "base/arith.h"

/* --- fields that change together --- */

/* Adds, and stops at zero. */
static void move(struct rollup *u, enum rollup_field f, int64_t by) {
  if (by < 0)
    u->bytes[f] = minus(u->bytes[f], (uint64_t)-by);
  else
    u->bytes[f] += (uint64_t)by;
}

static void move_resident(struct rollup *u, int64_t by) {
  move(u, ROLLUP_REFERENCED, by);
  move(u, ROLLUP_RSS, by);
}

static void move_pss_anon(struct rollup *u, int64_t by) {
  move(u, ROLLUP_PSS, by);
  move(u, ROLLUP_PSS_ANON, by);
  move(u, ROLLUP_PSS_DIRTY, by);
}

static void scale_above(struct rollup *u, enum rollup_field f, uint64_t base,
                        double factor) {
  uint64_t kept = min(u->bytes[f], base);

  u->bytes[f] = kept + amount_from((double)(u->bytes[f] - kept) * factor);
}

static void cap(struct rollup *u, enum rollup_field f, uint64_t most) {
  u->bytes[f] = min(u->bytes[f], most);
}

/* --- causes, in the order in which they are applied --- */

/* Each pays so many times as much. A count of 0 is unknown. */
static double relatives_factor(const struct track *t) {
  uint32_t before = t->baseline.relatives;

  return before == 0 || !RULE(relatives_factor)
             ? 1
             : (double)before / fork_family_size(t);
}

/* The last of a fork family shares with nobody. */
static bool is_last(const struct track *t) {
  return RULE(last_owns) && t->baseline.relatives > 1 &&
         fork_family_size(t) == 1;
}

static void own_all(const struct baseline *b, struct rollup *u) {
  uint64_t shared = min(baseline_cow_shared(b), u->bytes[ROLLUP_SHARED_DIRTY]);

  u->bytes[ROLLUP_PRIVATE_DIRTY] += shared;
  u->bytes[ROLLUP_SHARED_DIRTY] -= shared;
}

/* With more relatives a shared page costs each of them less, and so it does
 * with more processes that map it. Private memory stays as it is. */
static void scale_shared_part(const struct track *t, struct rollup *u) {
  const struct baseline *b = &t->baseline;
  struct private_bytes own = baseline_private(b);
  double factor = relatives_factor(t), share = t->since.share;
  bool is_of_shmem = rollup_is_of_shmem(&b->rollup);
  uint64_t own_swap =
      amount_from((double)b->at.vm_swap_kb * baseline_private_swap_part(b)) *
      1024;

  scale_above(u, ROLLUP_PSS_DIRTY, u->bytes[ROLLUP_PRIVATE_DIRTY], factor);
  scale_above(u, ROLLUP_SWAP_PSS, own_swap, factor);
  if (!rollup_has(u, ROLLUP_PSS_ANON)) {
    scale_above(u, ROLLUP_PSS, rollup_uss(u), factor);
    return;
  }
  scale_above(u, ROLLUP_PSS_ANON, own.anon, factor);
  /* Not all of them had shared every page. */
  cap(u, ROLLUP_PSS_ANON, u->bytes[ROLLUP_ANONYMOUS]);
  scale_above(u, ROLLUP_PSS_FILE, own.file, is_of_shmem ? factor : share);
  scale_above(u, ROLLUP_PSS_SHMEM, own.shmem, is_of_shmem ? share : factor);
  u->bytes[ROLLUP_PSS] = u->bytes[ROLLUP_PSS_ANON] + u->bytes[ROLLUP_PSS_FILE] +
                         u->bytes[ROLLUP_PSS_SHMEM];
  if (is_last(t))
    own_all(b, u);
}

/* Anonymous memory that came or went is private and dirty. Memory beyond the
 * private memory was shared, and cost its part only. */
static void move_anonymous(const struct baseline *b, struct rollup *u,
                           int64_t by) {
  uint64_t private_most = baseline_private(b).anon;
  int64_t private_by =
      RULE(shared_goes) && by < 0 && (uint64_t)-by > private_most
          ? -(int64_t)private_most
          : by;
  double cow_share = baseline_cow_share(b);
  uint64_t from_clean = 0;

  if (private_by < 0)
    from_clean = minus((uint64_t)-private_by, u->bytes[ROLLUP_PRIVATE_DIRTY]);
  move(u, ROLLUP_PRIVATE_DIRTY, private_by);
  move(u, ROLLUP_PRIVATE_CLEAN, -(int64_t)from_clean);
  move_pss_anon(u, private_by + amount_change_from((double)(by - private_by) *
                                                   cow_share));
  move(u, ROLLUP_ANONYMOUS, by);
  move_resident(u, by);
}

/*
 * Memory that comes back from swap was shared there as SwapPss says. If all
 * relatives get it back (swapoff) it costs as much as it did; if only this
 * process asked for it, all. The estimate is half way, and calls nothing
 * private that may be shared.
 */
static void move_returned(const struct baseline *b, struct rollup *u,
                          uint64_t bytes) {
  double share = (1 + baseline_swap_share(b)) / 2;
  uint64_t own =
      min(amount_from((double)bytes * baseline_private_swap_part(b)), bytes);

  move(u, ROLLUP_PRIVATE_DIRTY, (int64_t)own);
  move(u, ROLLUP_SHARED_DIRTY, (int64_t)(bytes - own));
  move_pss_anon(u, amount_change_from((double)bytes * share));
  move(u, ROLLUP_ANONYMOUS, (int64_t)bytes);
  move_resident(u, (int64_t)bytes);
}

static double file_share(const struct cycle *cycle, const struct track *t) {
  return baseline_file_share(&t->baseline, cycle->page_size);
}

static void move_shared(const struct cycle *cycle, const struct track *t,
                        struct rollup *u) {
  double share = file_share(cycle, t) * t->since.share;
  int64_t pss_by = amount_change_from((double)t->change.shared * share);
  bool is_shmem = rollup_is_of_shmem(u);

  move(u, ROLLUP_PSS, pss_by);
  move(u, is_shmem ? ROLLUP_PSS_SHMEM : ROLLUP_PSS_FILE, pss_by);
  move_resident(u, t->change.shared);
}

/* Pages that were shared are copied; before, they cost little here. */
static void move_broken(const struct baseline *b, struct rollup *u,
                        uint64_t bytes) {
  uint64_t from_dirty = min(bytes, u->bytes[ROLLUP_SHARED_DIRTY]);

  move(u, ROLLUP_PRIVATE_DIRTY, (int64_t)bytes);
  move(u, ROLLUP_SHARED_DIRTY, -(int64_t)from_dirty);
  move(u, ROLLUP_SHARED_CLEAN, -(int64_t)(bytes - from_dirty));
  move_pss_anon(
      u, amount_change_from((double)bytes * (1 - baseline_cow_share(b))));
}

/* A page of two that one has copied is the other's alone. */
static void move_broken_by_relatives(const struct track *t, struct rollup *u) {
  uint64_t pss = track_broken_by_relatives(t);
  uint64_t own = fork_family_size(t) == 2
                     ? min(2 * pss, u->bytes[ROLLUP_SHARED_DIRTY])
                     : 0;

  move(u, ROLLUP_PSS, (int64_t)pss);
  move(u, ROLLUP_PSS_ANON, (int64_t)pss);
  move(u, ROLLUP_PRIVATE_DIRTY, (int64_t)own);
  move(u, ROLLUP_SHARED_DIRTY, -(int64_t)own);
}

/* Memory that goes out is shared as the anonymous memory was; what comes back,
 * as the swap was. */
static void move_swap(const struct track *t, struct rollup *u) {
  const struct baseline *b = &t->baseline;
  double share = baseline_anonymous_share(b),
         swapped = b->at.vm_swap_kb * 1024.0;

  move(u, ROLLUP_SWAP, t->change.swap);
  if (t->change.swap < 0)
    u->bytes[ROLLUP_SWAP_PSS] =
        amount_from((double)u->bytes[ROLLUP_SWAP_PSS] *
                    (1 + (double)t->change.swap / swapped));
  else
    move(u, ROLLUP_SWAP_PSS,
         amount_change_from((double)t->change.swap * share));
}

/* --- relations that the kernel guarantees --- */

/* Splits `whole` over two fields as they stand to each other. */
static void split(struct rollup *u, enum rollup_field a, enum rollup_field b,
                  uint64_t whole) {
  uint64_t sum = u->bytes[a] + u->bytes[b];
  double part = sum ? (double)u->bytes[a] / (double)sum : 1;

  if (sum == whole)
    return;
  u->bytes[a] = min(amount_from((double)whole * part), whole);
  u->bytes[b] = whole - u->bytes[a];
}

/* A field and the one that it is a part of, which comes before its own parts.
 * estimate_settle() has another rule for the rest. */
static const struct {
  enum rollup_field part, whole;
} wholes[] = {
    {ROLLUP_PSS, ROLLUP_RSS},
    {ROLLUP_PSS_DIRTY, ROLLUP_PSS},
    {ROLLUP_REFERENCED, ROLLUP_RSS},
    {ROLLUP_ANONYMOUS, ROLLUP_RSS},
    {ROLLUP_KSM, ROLLUP_ANONYMOUS},
    {ROLLUP_LAZY_FREE, ROLLUP_ANONYMOUS},
    {ROLLUP_ANON_HUGE_PAGES, ROLLUP_ANONYMOUS},
    {ROLLUP_SHMEM_PMD_MAPPED, ROLLUP_RSS},
    {ROLLUP_FILE_PMD_MAPPED, ROLLUP_RSS},
    {ROLLUP_SWAP_PSS, ROLLUP_SWAP},
    {ROLLUP_LOCKED, ROLLUP_PSS},
};
_Static_assert(ROLLUP_FIELDS == 22, "it was decided of each field");

/* Makes the parts of Pss add up to it, as far as the kernel has parts. */
static void settle_pss(struct rollup *u) {
  uint64_t pss = u->bytes[ROLLUP_PSS];

  if (!rollup_has(u, ROLLUP_PSS_ANON))
    return;
  cap(u, ROLLUP_PSS_ANON, min(pss, u->bytes[ROLLUP_ANONYMOUS]));
  split(u, ROLLUP_PSS_FILE, ROLLUP_PSS_SHMEM, pss - u->bytes[ROLLUP_PSS_ANON]);
}

/* uss gives way to Pss and not the other way round, see usage.h. */
void estimate_settle(struct rollup *u) {
  uint64_t rss = u->bytes[ROLLUP_RSS];
  uint64_t uss;

  for (size_t i = 0; i < sizeof(wholes) / sizeof(*wholes); i++)
    cap(u, wholes[i].part, u->bytes[wholes[i].whole]);
  uss = min(rollup_uss(u), u->bytes[ROLLUP_PSS]);
  split(u, ROLLUP_PRIVATE_CLEAN, ROLLUP_PRIVATE_DIRTY, uss);
  split(u, ROLLUP_SHARED_CLEAN, ROLLUP_SHARED_DIRTY, rss - uss);
  settle_pss(u);
}

/* --- all together --- */

static bool has_set_changed(const struct track *t) {
  double share = t->since.share;

  return t->baseline.relatives != fork_family_size(t) || share < 1 || share > 1;
}

static bool is_unchanged(const struct track *t) {
  return t->change.anon == 0 && t->change.shared == 0 && t->change.swap == 0 &&
         t->broken_bytes == 0 && track_broken_by_relatives(t) == 0 &&
         !has_set_changed(t);
}

void estimate_rollup(const struct cycle *cycle, const struct track *t,
                     struct rollup *ret) {
  const struct baseline *b = &t->baseline;

  *ret = b->rollup;
  if (is_unchanged(t))
    return;
  if (has_set_changed(t))
    scale_shared_part(t, ret);
  move_anonymous(b, ret, t->change.anon - (int64_t)t->change.returned);
  move_returned(b, ret, t->change.returned);
  move_shared(cycle, t, ret);
  if (!is_last(t)) {
    move_broken(b, ret, t->broken_bytes);
    move_broken_by_relatives(t, ret);
  }
  move_swap(t, ret);
  estimate_settle(ret);
}

/* --- what can be wrong: files and shmem --- */

/* Pages that came or went cost anything from nothing to all. */
static double own_bound(const struct cycle *cycle, const struct track *t) {
  double share = file_share(cycle, t);

  return fabs((double)t->change.shared) * fmax(share, 1 - share);
}

/* Another process that maps a private page takes half of what it costs. */
static double no_longer_private(const struct cycle *cycle,
                                const struct track *t) {
  double moved = t->since.moved_pages * (double)cycle->page_size;

  return fmin(moved, (double)baseline_private_file_bytes(&t->baseline)) / 2;
}

/* Pages that stayed cost more or less as well, if other processes mapped or
 * unmapped them. */
static double others_bound(const struct cycle *cycle, const struct track *t) {
  const struct rollup *r = &t->baseline.rollup;
  uint64_t pss =
      r->bytes[rollup_is_of_shmem(r) ? ROLLUP_PSS_SHMEM : ROLLUP_PSS_FILE];

  if (!rollup_has(r, ROLLUP_PSS_FILE)) /* before 5.3 */
    pss = minus(r->bytes[ROLLUP_PSS], rollup_uss(r));
  return (double)pss * t->since.moved + no_longer_private(cycle, t);
}

/* --- anonymous memory --- */

/* Memory that came since the baseline can have come before the fork. */
static double anonymous_most(const struct track *t) {
  return (double)t->baseline.rollup.bytes[ROLLUP_ANONYMOUS] +
         fmax((double)t->change.anon, 0);
}

/* The set knows the share of one kind of pages, files or shmem. Relatives share
 * pages of the other kind, too, whose share nothing shows. */
static double relatives_bound(const struct track *t) {
  const struct rollup *r = &t->baseline.rollup;
  uint64_t pages =
      r->bytes[rollup_is_of_shmem(r) ? ROLLUP_PSS_FILE : ROLLUP_PSS_SHMEM];

  return track_relatives_moved(t) * (anonymous_most(t) + (double)pages);
}

/* The estimate is half way between the least and the most that this memory can
 * share, so it is off by half of the range. With n relatives it is off by up to
 * 1
 * - 1/n: SwapPss does not show what they have in memory. */
static double returned_error(const struct track *t) {
  double n = fork_family_size(t);
  double part = n > 1 ? 1 - 1 / n : (1 - baseline_swap_share(&t->baseline)) / 2;

  return (double)t->change.returned * part;
}

/* Memory that relatives got back from swap is theirs alone, or is shared with
 * this process: then it pays only its part of that. */
static double returned_to_relatives(const struct track *t) {
  uint64_t returned =
      t->family ? t->family->told.got_back - t->told.got_back : 0;

  return fmin((double)returned, anonymous_most(t)) *
         (1 - 1 / (double)fork_family_size(t));
}

/* What it freed is taken for private: if it was not, the process had paid a
 * part only, and now relatives pay that. At most all of them have freed the
 * same pages, and this process is left with these alone. */
static double freed(const struct track *t) {
  const struct baseline *b = &t->baseline;
  double n = fork_family_size(t);
  uint64_t others = t->family ? t->family->told.freed - t->told.freed : 0;
  double same = n > 1 ? (double)others / (n - 1) : 0;

  return (double)t->change.freed * (1 - baseline_cow_share(b)) +
         fmin(same, (double)baseline_cow_shared(b)) * (1 - 1 / n);
}

/* Memory that went to swap was shared as likely as any other. */
static double swapped_out(const struct track *t) {
  double bytes =
      fmin(fmax((double)-t->change.anon, 0), fmax((double)t->change.swap, 0));

  return bytes * (1 - baseline_anonymous_share(&t->baseline));
}

/* Pages that were not merged cannot be taken apart; before 6.7 the kernel does
 * not say which were. Pages that came since the baseline can be merged, too. */
static double ksm_error(const struct cycle *cycle, const struct track *t) {
  const struct baseline *b = &t->baseline;

  if (b->at_ns < cycle->ksm_merged_ns)
    return anonymous_most(t);
  if (b->at_ns >= cycle->ksm_changed_ns)
    return 0;
  return (double)
      b->rollup.bytes[rollup_has(&b->rollup, ROLLUP_KSM) ? ROLLUP_KSM
                                                         : ROLLUP_ANONYMOUS];
}

/* --- time --- */

/* Others share it, or may come to; and faults that cannot be asked for may have
 * broken all copy on write. */
static double unseen_bytes(const struct baseline *b) {
  return (double)(minus(b->rollup.bytes[ROLLUP_PSS], rollup_uss(&b->rollup)) +
                  baseline_private_file_bytes(b));
}

void bounds_of(const struct cycle *cycle, const struct track *t,
               struct bounds *ret) {
  const struct baseline *b = &t->baseline;
  double seconds = (double)(cycle->now_ns - b->at_ns) / 1e9;

  *ret = (struct bounds){
      .bytes = {[CAUSE_FILES] = own_bound(cycle, t) + others_bound(cycle, t),
                [CAUSE_RELATIVES] = relatives_bound(t),
                [CAUSE_COPIES] =
                    (double)t->broken_bytes +
                    (double)track_broken_by_relatives(t) +
                    (double)t->change.unmapped * baseline_cow_share(b),
                [CAUSE_FREED] = freed(t),
                [CAUSE_SWAP] = returned_error(t) + returned_to_relatives(t) +
                               swapped_out(t),
                [CAUSE_TIME] = unseen_bytes(b) * sqrt(seconds),
                [CAUSE_KSM] = ksm_error(cycle, t)}};
}
