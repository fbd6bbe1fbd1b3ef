#include "estimate/estimate_error.h"

#include "proc/amount.h"
#include "proc/arith.h"

static double magnitude(double x) { return x < 0 ? -x : x; }

static double larger(double a, double b) { return a > b ? a : b; }

/* --- files and shmem --- */

/* Pages that came or went cost anything from nothing to all. */
static double own_bound(const struct baseline *b, const struct change *c) {
  double cost = baseline_shared_cost(b, c->page_size);

  return magnitude((double)c->shared) * larger(cost, 1 - cost);
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

uint64_t estimate_shared_bound(const struct baseline *b,
                               const struct change *c) {
  return amount_from(own_bound(b, c) + others_bound(b, c));
}

/* The part of its shared pages that came or went. */
static double own_part(const struct baseline *b, const struct change *c) {
  double before = (double)b->shared_pages * (double)c->page_size;
  double now = before + (double)c->shared;

  if (c->shared == 0)
    return 0;
  return now > before ? 1 - before / now : 1 - now / before;
}

/* A process that has changed a lot itself is no longer like the others, from
 * which the usual part was learnt. */
static double shared_error(const struct baseline *b, const struct change *c,
                           double usual) {
  return own_bound(b, c) * larger(own_part(b, c), usual) +
         others_bound(b, c) * usual;
}

/* --- anonymous memory --- */

/* Memory that came since the baseline can have come before the fork. */
static double anonymous_most(const struct baseline *b, const struct change *c) {
  return (double)baseline_bytes(b, ROLLUP_ANONYMOUS) +
         larger((double)c->anon, 0);
}

static double relatives_bound(const struct baseline *b,
                              const struct change *c) {
  return c->relatives_moved * anonymous_most(b, c);
}

uint64_t estimate_relatives_bound(const struct baseline *b,
                                  const struct change *c) {
  return amount_from(relatives_bound(b, c));
}

/* A process shares no more than it has. */
static double again_bound(const struct baseline *b, const struct change *c) {
  return clamp((double)c->shared_again, 0, anonymous_most(b, c));
}

uint64_t estimate_again_bound(const struct baseline *b,
                              const struct change *c) {
  return amount_from(again_bound(b, c));
}

/* The estimate takes it to cost half way between its least and its most. */
static double returned_error(const struct baseline *b, const struct change *c) {
  return (double)c->returned * (1 - baseline_swap_cost(b)) / 2;
}

/* Anonymous memory that went was shared as likely as any other of it. */
static double gone_error(const struct baseline *b, const struct change *c) {
  uint64_t anonymous = baseline_bytes(b, ROLLUP_ANONYMOUS);

  if (c->anon >= 0 || anonymous == 0)
    return 0;
  return (double)-c->anon * (double)baseline_cow_bytes(b) / (double)anonymous;
}

/* Pages that were not merged cannot be taken apart; before 6.7 the kernel does
 * not say which were. */
static double ksm_error(const struct baseline *b, const struct change *c) {
  if (c->is_ksm_merged)
    return (double)baseline_bytes(b, ROLLUP_ANONYMOUS);
  if (!c->is_ksm_split)
    return 0;
  return (double)baseline_bytes(
      b, baseline_has(b, ROLLUP_KSM) ? ROLLUP_KSM : ROLLUP_ANONYMOUS);
}

/* --- time --- */

uint64_t estimate_unseen_bytes(const struct baseline *b) {
  return minus(baseline_bytes(b, ROLLUP_PSS), baseline_uss(b)) +
         baseline_private_file_bytes(b);
}

/* At most all is shared by all, or by nobody any more. */
static double drift(const struct baseline *b, double part) {
  double most = (double)(baseline_bytes(b, ROLLUP_SHARED_CLEAN) +
                         baseline_bytes(b, ROLLUP_SHARED_DIRTY) +
                         baseline_private_file_bytes(b));
  double error = (double)estimate_unseen_bytes(b) * part;

  return error < most ? error : most;
}

struct doubt estimate_error(const struct baseline *b, const struct change *c,
                            const struct error_parts *parts) {
  double shared = shared_error(b, c, parts->shared);
  double newborn = c->derived_anon * parts->newborn_anon +
                   c->derived_files * parts->newborn_files;
  double others =
      ((double)c->broken + (double)c->broken_by_relatives) * parts->cow +
      returned_error(b, c) + again_bound(b, c) * parts->again +
      gone_error(b, c) + relatives_bound(b, c) * parts->relatives +
      drift(b, parts->drift) + ksm_error(b, c);

  return (struct doubt){.common = shared * parts->shared_in_common +
                                  newborn * parts->newborn_in_common + others,
                        .independent =
                            shared * (1 - parts->shared_in_common) +
                            newborn * (1 - parts->newborn_in_common)};
}
