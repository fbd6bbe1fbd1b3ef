#include "estimate/exposure.h"

#include <math.h>

#include "proc/arith.h"

/* --- files and shmem --- */

/* Pages that came or went cost anything from nothing to all. */
static double own_bound(const struct baseline *b, const struct change *c) {
  double cost = baseline_shared_cost(b, c->page_size);

  return fabs((double)c->shared) * fmax(cost, 1 - cost);
}

/* Another process that maps a private page takes half of what it costs. */
static double no_longer_private(const struct baseline *b,
                                const struct change *c) {
  double most = (double)baseline_private_file_bytes(b);
  double moved = c->moved_pages * (double)c->page_size;

  return (moved < most ? moved : most) / 2;
}

/* And so can, by what other processes did, those that stayed. */
static double others_bound(const struct baseline *b, const struct change *c) {
  uint64_t pss =
      baseline_bytes(b, c->is_of_shmem ? ROLLUP_PSS_SHMEM : ROLLUP_PSS_FILE);

  if (!baseline_has(b, ROLLUP_PSS_FILE)) /* before 5.3 */
    pss = minus(baseline_bytes(b, ROLLUP_PSS), baseline_uss(b));
  return (double)pss * c->shared_moved + no_longer_private(b, c);
}

/* --- anonymous memory --- */

/* Memory that came since the baseline can have come before the fork. */
static double anonymous_most(const struct baseline *b, const struct change *c) {
  return (double)baseline_bytes(b, ROLLUP_ANONYMOUS) + fmax((double)c->anon, 0);
}

/* Relatives share pages of the kind, too, whose cost the set does not know. */
static double relatives_bound(const struct baseline *b,
                              const struct change *c) {
  uint64_t pages =
      baseline_bytes(b, c->is_of_shmem ? ROLLUP_PSS_FILE : ROLLUP_PSS_SHMEM);

  return c->relatives_moved * (anonymous_most(b, c) + (double)pages);
}

/* The estimate takes it to cost half way between its least and its most; but
 * SwapPss does not tell what relatives have in memory. */
static double returned_error(const struct baseline *b, const struct change *c) {
  double part = c->relatives > 1 ? 1 - 1 / (double)c->relatives
                                 : (1 - baseline_swap_cost(b)) / 2;

  return (double)c->returned * part;
}

/* What relatives got back from swap is theirs alone, or is what this process
 * has: then it pays only its part of that. */
static double returned_to_relatives(const struct baseline *b,
                                    const struct change *c) {
  double most = anonymous_most(b, c);

  return fmin((double)c->returned_to_relatives, most) *
         (1 - 1 / (double)c->relatives);
}

/* Anonymous memory that went was shared as likely as any other of it. */
static double gone_error(const struct baseline *b, double gone) {
  uint64_t anonymous = baseline_bytes(b, ROLLUP_ANONYMOUS);

  return anonymous > 0
             ? fmax(gone, 0) * (double)baseline_cow_bytes(b) / (double)anonymous
             : 0;
}

static double swapped_out(const struct change *c) {
  return fmin(fmax((double)-c->anon, 0), fmax((double)c->swap, 0));
}

/* Pages that were not merged cannot be taken apart; before 6.7 the kernel does
 * not say which were. Pages that came since the baseline can be merged, too. */
static double ksm_error(const struct baseline *b, const struct change *c) {
  if (c->is_ksm_merged)
    return anonymous_most(b, c);
  if (!c->is_ksm_split)
    return 0;
  return (double)baseline_bytes(
      b, baseline_has(b, ROLLUP_KSM) ? ROLLUP_KSM : ROLLUP_ANONYMOUS);
}

/* --- time --- */

/* Others share it, or may come to; and faults that cannot be asked for may have
 * broken all copy on write. */
static double unseen_bytes(const struct baseline *b) {
  return (double)(minus(baseline_bytes(b, ROLLUP_PSS), baseline_uss(b)) +
                  baseline_private_file_bytes(b));
}

void exposure_of(const struct baseline *b, const struct change *c,
                 struct exposure *ret) {
  double derived = c->derived_anon + c->derived_files;

  *ret = (struct exposure){
      .bytes = {
          [CAUSE_FILES] = own_bound(b, c) + others_bound(b, c),
          [CAUSE_RELATIVES] = relatives_bound(b, c),
          [CAUSE_COPIES] = (double)c->broken + (double)c->broken_by_relatives +
                           gone_error(b, (double)-c->anon - swapped_out(c)),
          [CAUSE_FORK] = c->is_heir ? derived : 0,
          [CAUSE_LENT] = c->is_heir ? 0 : derived,
          [CAUSE_SWAP] = returned_error(b, c) + returned_to_relatives(b, c) +
                         gone_error(b, swapped_out(c)),
          [CAUSE_TIME] = unseen_bytes(b) * sqrt(c->seconds),
          [CAUSE_KSM] = ksm_error(b, c)}};
}
