#include "estimate/strangers.h"

#include "proc/arith.h"

/* More than ever come between a list and a reading. */
#define SHARERS_MOST 64
/* Sharing has to grow by a fourth to be news. */
#define NEWS_PART 4
/* The kernel rounds off less than this. */
#define SHARERS_NEAR 0.1

static uint32_t most(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint64_t resident_bytes(const struct rollup *r) {
  return minus(rollup_cow_bytes(r), r->bytes[ROLLUP_KSM]);
}

/* Before 5.3 nothing is known of the kind of what is resident. Nor does the
 * kernel say how much of what is in swap was merged, with anybody. Swap, which
 * has shmem in it, was read with SwapPss; VmSwap was not. */
static uint64_t swap_of(const struct rollup *r, uint32_t vm_swap_kb) {
  return rollup_has(r, ROLLUP_PSS_ANON) && r->bytes[ROLLUP_KSM] == 0
             ? min(vm_swap_kb * UINT64_C(1024), r->bytes[ROLLUP_SWAP])
             : 0;
}

static uint64_t swapped_bytes(const struct rollup *r, uint32_t vm_swap_kb) {
  return minus(swap_of(r, vm_swap_kb), r->bytes[ROLLUP_SWAP_PSS]);
}

/* The processes that a page which is shared by copy on write belongs to, on
 * average, or less: each pays its part. */
static double sharers(uint64_t shared, uint64_t cost) {
  if (cost <= shared / SHARERS_MOST)
    return SHARERS_MOST;
  return (double)shared / (double)cost;
}

/* Private memory may be of files as far as these cost anything. */
static uint64_t own_bytes(const struct rollup *r) {
  return minus(rollup_uss(r),
               r->bytes[ROLLUP_PSS_FILE] + r->bytes[ROLLUP_PSS_SHMEM]);
}

static uint64_t shared_cost(const struct rollup *r) {
  return minus(r->bytes[ROLLUP_PSS_ANON], own_bytes(r));
}

static double resident_sharers(const struct rollup *r) {
  return sharers(
      minus(r->bytes[ROLLUP_ANONYMOUS], own_bytes(r) + r->bytes[ROLLUP_KSM]),
      shared_cost(r));
}

static double swap_sharers(const struct rollup *r, uint32_t vm_swap_kb) {
  return sharers(swap_of(r, vm_swap_kb), r->bytes[ROLLUP_SWAP_PSS]);
}

static uint32_t beyond(double all, uint32_t relatives) {
  double more = all - (double)relatives;

  return more > 0 ? (uint32_t)(more + 0.5) : 0;
}

uint32_t strangers_seen(const struct rollup *found, uint32_t vm_swap_kb,
                        uint32_t relatives) {
  bool is_resident = resident_bytes(found) >= ROLLUP_COW_LEAST_BYTES;
  bool is_swapped = swapped_bytes(found, vm_swap_kb) >= ROLLUP_COW_LEAST_BYTES;
  uint32_t seen = 0;

  if (is_resident)
    seen = beyond(resident_sharers(found), relatives);
  if (is_swapped)
    seen = most(seen, beyond(swap_sharers(found, vm_swap_kb), relatives));
  return seen == 0 && relatives == 1 ? is_resident || is_swapped : seen;
}

/* All private memory may be anonymous, so that there are no more sharers. */
static double most_sharers(const struct rollup *r) {
  uint64_t own = min(rollup_uss(r), r->bytes[ROLLUP_PSS_ANON]);

  return sharers(minus(r->bytes[ROLLUP_ANONYMOUS], own),
                 r->bytes[ROLLUP_PSS_ANON] - own);
}

/* One page that more share, or fewer, moves the mean. */
static bool is_mean_of_all(double sharers, uint32_t relatives) {
  double more = sharers - (double)relatives;

  return more >= -SHARERS_NEAR && more <= SHARERS_NEAR;
}

bool strangers_are_ruled_out(const struct rollup *found, uint32_t vm_swap_kb,
                             uint32_t relatives) {
  bool is_swapped = swapped_bytes(found, vm_swap_kb) >= ROLLUP_COW_LEAST_BYTES;

  if (!rollup_has(found, ROLLUP_PSS_ANON) ||
      strangers_seen(found, vm_swap_kb, relatives) > 0)
    return false;
  if (resident_bytes(found) < ROLLUP_COW_LEAST_BYTES)
    return !is_swapped;
  return is_mean_of_all(resident_sharers(found), relatives) &&
         is_mean_of_all(most_sharers(found), relatives) &&
         (!is_swapped ||
          is_mean_of_all(swap_sharers(found, vm_swap_kb), relatives));
}

uint64_t strangers_bytes(const struct rollup *found, uint32_t vm_swap_kb) {
  return resident_bytes(found) + swapped_bytes(found, vm_swap_kb);
}

bool strangers_have_come(uint64_t bytes_before, uint64_t bytes) {
  return bytes >=
         bytes_before + bytes_before / NEWS_PART + ROLLUP_COW_LEAST_BYTES;
}

double strangers_part(const struct rollup *found, uint32_t relatives,
                      uint32_t strangers) {
  double n = relatives, more = strangers, lacking, scaled;

  if (strangers == 0)
    return 0;
  /* Of n + more that share, each is short of all parts but its own. */
  lacking = (double)resident_bytes(found) * more / (n * (n + more - 1));
  /* What merged pages cost is scaled with the rest. */
  scaled = (double)shared_cost(found) * more / n;
  return lacking > scaled ? lacking : scaled;
}
