/* SPDX-License-Identifier: MIT */
#include "estimate/baseline.h"

#include "base/arith.h"

/* More than can be forked between the listing and a reading. */
#define SHARERS_MOST 64

void baseline_take(struct baseline *b, const struct rollup *rollup,
                   const struct observation *o, uint64_t page_size) {
  *b = (struct baseline){.rollup = *rollup, .at = *o};
  b->off_pages = amount_narrow(
      distance(o->resident_pages, rollup->bytes[ROLLUP_RSS] / page_size));
}

/* The number of processes that share memory since a fork. A process alone in
 * its family counts as two: its parent has ended, or its relatives are unknown.
 */
static double sharers(const struct baseline *b) {
  return b->relatives > 1 ? b->relatives : 2;
}

/* Each of n sharers pays an n-th of the memory; Pss lacks the rest. */
uint64_t baseline_cow_shared(const struct baseline *b) {
  double n = sharers(b);

  return min(amount_from((double)rollup_cow_bytes(&b->rollup) * n / (n - 1)),
             b->rollup.bytes[ROLLUP_ANONYMOUS]);
}

double baseline_cow_share(const struct baseline *b) {
  double shared = (double)baseline_cow_shared(b);

  return shared > 0 ? 1 - (double)rollup_cow_bytes(&b->rollup) / shared : 0;
}

/* All private memory that cannot be files or shmem (before 5.3 all of it can);
 * or the anonymous memory that is not shared, if that is more. */
static uint64_t private_anonymous(const struct baseline *b) {
  uint64_t uss = rollup_uss(&b->rollup);
  uint64_t files =
      rollup_has(&b->rollup, ROLLUP_PSS_FILE)
          ? b->rollup.bytes[ROLLUP_PSS_FILE] + b->rollup.bytes[ROLLUP_PSS_SHMEM]
          : uss;
  uint64_t least = minus(uss, files);
  uint64_t rest = b->rollup.bytes[ROLLUP_ANONYMOUS] - baseline_cow_shared(b);

  return min(max(rest, least), uss);
}

struct private_bytes baseline_private(const struct baseline *b) {
  uint64_t uss = rollup_uss(&b->rollup), anon = private_anonymous(b);
  uint64_t file = min(minus(uss, anon), b->rollup.bytes[ROLLUP_PSS_FILE]);

  return (struct private_bytes){
      .anon = anon, .file = file, .shmem = minus(uss, anon + file)};
}

uint64_t baseline_private_file_bytes(const struct baseline *b) {
  return rollup_uss(&b->rollup) - private_anonymous(b);
}

double baseline_anonymous_share(const struct baseline *b) {
  double anonymous = (double)b->rollup.bytes[ROLLUP_ANONYMOUS];

  return anonymous > 0 ? 1 - (double)rollup_cow_bytes(&b->rollup) / anonymous
                       : 1;
}

double baseline_file_share(const struct baseline *b, uint64_t page_size) {
  double shared = (double)b->at.shared_pages * (double)page_size;
  double pss = (double)(b->rollup.bytes[ROLLUP_PSS_FILE] +
                        b->rollup.bytes[ROLLUP_PSS_SHMEM]);

  if (!rollup_has(&b->rollup, ROLLUP_PSS_FILE)) /* before 5.3 */
    pss = (double)minus(b->rollup.bytes[ROLLUP_PSS],
                        b->rollup.bytes[ROLLUP_ANONYMOUS]);
  return shared > 0 && pss < shared ? pss / shared : 1;
}

double baseline_swap_share(const struct baseline *b) {
  double swapped = b->at.vm_swap_kb * 1024.0;
  double pss = (double)b->rollup.bytes[ROLLUP_SWAP_PSS];

  return swapped > 0 && pss < swapped ? pss / swapped : 1;
}

double baseline_private_swap_part(const struct baseline *b) {
  double n = sharers(b);
  double part = (baseline_swap_share(b) - 1 / n) / (1 - 1 / n);

  return part > 0 ? part : 0;
}

/* --- strangers --- */

/* Without pages that KSM has merged: any process may share these. */
static uint64_t shared_bytes(const struct rollup *r) {
  return minus(rollup_cow_bytes(r), r->bytes[ROLLUP_KSM]);
}

/* The least private anonymous memory: the rest of uss may be files or shmem. */
static uint64_t own_bytes(const struct rollup *r) {
  return minus(rollup_uss(r),
               r->bytes[ROLLUP_PSS_FILE] + r->bytes[ROLLUP_PSS_SHMEM]);
}

static uint64_t shared_pss(const struct rollup *r) {
  return minus(r->bytes[ROLLUP_PSS_ANON], own_bytes(r));
}

/* At least how many processes, on average, share a page by copy on write. */
static double sharers_seen(const struct rollup *r) {
  uint64_t pss = shared_pss(r);
  uint64_t shared =
      minus(r->bytes[ROLLUP_ANONYMOUS], own_bytes(r) + r->bytes[ROLLUP_KSM]);

  return pss <= shared / SHARERS_MOST ? SHARERS_MOST
                                      : (double)shared / (double)pss;
}

uint32_t strangers_seen(const struct rollup *found, uint32_t relatives) {
  double more = sharers_seen(found) - (double)relatives;

  if (shared_bytes(found) < ROLLUP_COW_LEAST_BYTES)
    return 0;
  if (more >= 0.5)
    return (uint32_t)(more + 0.5);
  return relatives == 1;
}

double strangers_part(const struct rollup *found, uint32_t relatives,
                      uint32_t strangers) {
  double n = relatives, more = strangers, lacking, scaled;

  if (strangers == 0)
    return 0;
  /* The shared memory less the part that each of n + more processes pays. */
  lacking = (double)shared_bytes(found) * more / (n * (n + more - 1));
  /* The Pss of merged pages is scaled, too. */
  scaled = (double)shared_pss(found) * more / n;
  return lacking > scaled ? lacking : scaled;
}
