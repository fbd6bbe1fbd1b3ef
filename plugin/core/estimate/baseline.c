#include "estimate/baseline.h"

#include "proc/arith.h"

/* A pebibyte. */
#define KIB_MOST ((UINT64_C(1) << 40) - 1)

static uint64_t distance(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

static void set_amount(struct baseline *b, enum rollup_field f,
                       uint64_t bytes) {
  uint64_t kib = min(bytes / 1024, KIB_MOST);

  b->kib_low[f] = (uint32_t)kib;
  b->kib_high[f] = (uint8_t)(kib >> 32);
}

void baseline_take(struct baseline *b, const struct rollup *rollup,
                   const struct observation *o, uint64_t page_size) {
  *b = (struct baseline){.known = rollup->known, .at = *o};
  for (int f = 0; f < ROLLUP_FIELDS; f++)
    set_amount(b, (enum rollup_field)f, rollup->bytes[f]);
  b->off_pages = amount_narrow(
      distance(o->resident_pages, rollup->bytes[ROLLUP_RSS] / page_size));
}

void baseline_get(const struct baseline *b, struct rollup *ret) {
  ret->known = b->known;
  for (int f = 0; f < ROLLUP_FIELDS; f++)
    ret->bytes[f] = baseline_bytes(b, (enum rollup_field)f);
}

bool baseline_has(const struct baseline *b, enum rollup_field f) {
  return (b->known >> f) & 1;
}

uint64_t baseline_bytes(const struct baseline *b, enum rollup_field f) {
  return ((uint64_t)b->kib_high[f] << 32 | b->kib_low[f]) * 1024;
}

uint64_t baseline_uss(const struct baseline *b) {
  return baseline_bytes(b, ROLLUP_PRIVATE_CLEAN) +
         baseline_bytes(b, ROLLUP_PRIVATE_DIRTY);
}

uint64_t baseline_cow_bytes(const struct baseline *b) {
  if (!baseline_has(b, ROLLUP_PSS_ANON))
    return 0;
  return minus(baseline_bytes(b, ROLLUP_ANONYMOUS),
               baseline_bytes(b, ROLLUP_PSS_ANON));
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

  return min(amount_from((double)baseline_cow_bytes(b) * n / (n - 1)),
             baseline_bytes(b, ROLLUP_ANONYMOUS));
}

double baseline_cow_cost(const struct baseline *b) {
  double shared = (double)baseline_cow_shared(b);

  return shared > 0 ? 1 - (double)baseline_cow_bytes(b) / shared : 0;
}

/* All private memory that cannot be files or shmem (before 5.3 all of it can);
 * or the anonymous memory that is not shared, if that is more. */
static uint64_t private_anonymous(const struct baseline *b) {
  uint64_t uss = baseline_uss(b);
  uint64_t files = baseline_has(b, ROLLUP_PSS_FILE)
                       ? baseline_bytes(b, ROLLUP_PSS_FILE) +
                             baseline_bytes(b, ROLLUP_PSS_SHMEM)
                       : uss;
  uint64_t least = minus(uss, files);
  uint64_t rest = baseline_bytes(b, ROLLUP_ANONYMOUS) - baseline_cow_shared(b);

  return min(max(rest, least), uss);
}

struct private_bytes baseline_private(const struct baseline *b) {
  uint64_t uss = baseline_uss(b), anon = private_anonymous(b);
  uint64_t file = min(minus(uss, anon), baseline_bytes(b, ROLLUP_PSS_FILE));

  return (struct private_bytes){
      .anon = anon, .file = file, .shmem = minus(uss, anon + file)};
}

bool baseline_is_of_shmem(const struct baseline *b) {
  struct private_bytes own = baseline_private(b);

  return minus(baseline_bytes(b, ROLLUP_PSS_SHMEM), own.shmem) >
         minus(baseline_bytes(b, ROLLUP_PSS_FILE), own.file);
}

uint64_t baseline_private_file_bytes(const struct baseline *b) {
  return baseline_uss(b) - private_anonymous(b);
}

double baseline_anonymous_cost(const struct baseline *b) {
  double anonymous = (double)baseline_bytes(b, ROLLUP_ANONYMOUS);

  return anonymous > 0 ? 1 - (double)baseline_cow_bytes(b) / anonymous : 1;
}

double baseline_shared_cost(const struct baseline *b, uint64_t page_size) {
  double shared = (double)b->at.shared_pages * (double)page_size;
  double pss = (double)(baseline_bytes(b, ROLLUP_PSS_FILE) +
                        baseline_bytes(b, ROLLUP_PSS_SHMEM));

  if (!baseline_has(b, ROLLUP_PSS_FILE)) /* before 5.3 */
    pss = (double)minus(baseline_bytes(b, ROLLUP_PSS),
                        baseline_bytes(b, ROLLUP_ANONYMOUS));
  return shared > 0 && pss < shared ? pss / shared : 1;
}

double baseline_swap_cost(const struct baseline *b) {
  double swapped = b->at.vm_swap_kb * 1024.0;
  double pss = (double)baseline_bytes(b, ROLLUP_SWAP_PSS);

  return swapped > 0 && pss < swapped ? pss / swapped : 1;
}

double baseline_private_swap_part(const struct baseline *b) {
  double n = sharers(b);
  double part = (baseline_swap_cost(b) - 1 / n) / (1 - 1 / n);

  return part > 0 ? part : 0;
}
