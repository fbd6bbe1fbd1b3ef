#include "estimate/strangers.h"

/* More than ever come between a list and a reading. */
#define SHARERS_MOST 64
/* Sharing has to grow by a fourth to be news. */
#define NEWS_PART 4

static uint64_t minus(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* The processes that a page which is shared by copy on write belongs to, on
 * average, or less: each pays its part. Private memory may be of files as far
 * as these cost anything. */
static double sharers(const struct rollup *r) {
  uint64_t files = r->bytes[ROLLUP_PSS_FILE] + r->bytes[ROLLUP_PSS_SHMEM];
  uint64_t own = minus(rollup_uss(r), files);
  uint64_t shared = minus(r->bytes[ROLLUP_ANONYMOUS], own);
  uint64_t cost = minus(r->bytes[ROLLUP_PSS_ANON], own);

  if (cost <= shared / SHARERS_MOST)
    return SHARERS_MOST;
  return (double)shared / (double)cost;
}

uint32_t strangers_seen(const struct rollup *found, uint32_t relatives) {
  double beyond = sharers(found) - (double)relatives;
  uint32_t seen = beyond > 0 ? (uint32_t)(beyond + 0.5) : 0;

  /* Pages that KSM has merged are shared with anybody. */
  if (rollup_cow_bytes(found) < ROLLUP_COW_LEAST_BYTES ||
      found->bytes[ROLLUP_KSM] > 0)
    return 0;
  return seen == 0 && relatives == 1 ? 1 : seen;
}

bool strangers_have_come(uint64_t cow_bytes_before, uint64_t cow_bytes) {
  return cow_bytes >= cow_bytes_before + cow_bytes_before / NEWS_PART +
                          ROLLUP_COW_LEAST_BYTES;
}

double strangers_part(const struct rollup *found, uint32_t relatives) {
  double n = relatives, more = strangers_seen(found, relatives);

  /* Of n + more that share, each is short of all parts but its own. */
  return more > 0
             ? (double)rollup_cow_bytes(found) * more / (n * (n + more - 1))
             : 0;
}
