#include "estimate/strangers.h"

#include "proc/arith.h"

/* More than can be forked between the listing and a reading. */
#define SHARERS_MOST 64
/* Sharing has to grow by 1 / NEWS_PART to count as new. */
#define NEWS_PART 4
/* The kernel rounds off less than this. */
#define SHARERS_NEAR 0.1

static uint32_t most(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint64_t resident_bytes(const struct rollup *r) {
  return minus(rollup_cow_bytes(r), r->bytes[ROLLUP_KSM]);
}

/* The anonymous memory in swap: VmSwap, at most Swap, which includes shmem but
 * was read together with SwapPss. 0 if it cannot be used: before 5.3, and with
 * KSM, because the kernel does not show how much of it was merged. */
static uint64_t swap_of(const struct rollup *r, uint32_t vm_swap_kb) {
  return rollup_has(r, ROLLUP_PSS_ANON) && r->bytes[ROLLUP_KSM] == 0
             ? min(vm_swap_kb * UINT64_C(1024), r->bytes[ROLLUP_SWAP])
             : 0;
}

static uint64_t swapped_bytes(const struct rollup *r, uint32_t vm_swap_kb) {
  return minus(swap_of(r, vm_swap_kb), r->bytes[ROLLUP_SWAP_PSS]);
}

/* At least how many processes, on average, share a page by copy on write. */
static double sharers(uint64_t shared, uint64_t cost) {
  if (cost <= shared / SHARERS_MOST)
    return SHARERS_MOST;
  return (double)shared / (double)cost;
}

/* The least private anonymous memory: the rest of uss may be files or shmem. */
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

/* The most sharers: if all private memory is anonymous. */
static double most_sharers(const struct rollup *r) {
  uint64_t own = min(rollup_uss(r), r->bytes[ROLLUP_PSS_ANON]);

  return sharers(minus(r->bytes[ROLLUP_ANONYMOUS], own),
                 r->bytes[ROLLUP_PSS_ANON] - own);
}

/* True if all relatives share all of it: otherwise the mean would differ. */
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
  /* The shared memory less the part that each of n + more processes pays. */
  lacking = (double)resident_bytes(found) * more / (n * (n + more - 1));
  /* The cost of merged pages is scaled, too. */
  scaled = (double)shared_cost(found) * more / n;
  return lacking > scaled ? lacking : scaled;
}
