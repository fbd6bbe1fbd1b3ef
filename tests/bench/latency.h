/* SPDX-License-Identifier: MIT */
/* Collects the latencies of operations, and does not lose the rare long ones.
 */
#ifndef SMAPS_TESTS_BENCH_LATENCY_H
#define SMAPS_TESTS_BENCH_LATENCY_H

#include <inttypes.h>
#include <stdatomic.h>

#include "bench.h"

/* Counts latencies by size. There are 64 bins per power of two, so the width of
 * a bin is at most 1.6 % of its values. */
#define LATENCY_BIN_BITS 6
#define LATENCY_BINS (1U << LATENCY_BIN_BITS)
#define LATENCY_N_BINS (64 * LATENCY_BINS)

struct latencies {
  atomic_uint bins[LATENCY_N_BINS];
  atomic_ulong max_ns;
};

static inline unsigned latency_bin(uint64_t ns) {
  unsigned power;

  if (ns < LATENCY_BINS)
    return (unsigned)ns;
  power = 63 - (unsigned)__builtin_clzll(ns);
  return (power - LATENCY_BIN_BITS + 1) * LATENCY_BINS +
         (unsigned)(ns >> (power - LATENCY_BIN_BITS) & (LATENCY_BINS - 1));
}

/* The upper end of a bin. */
static inline uint64_t latency_bin_ns(unsigned bin) {
  unsigned power = bin / LATENCY_BINS;

  if (power == 0)
    return bin;
  return ((uint64_t)(LATENCY_BINS + bin % LATENCY_BINS + 1) << (power - 1)) - 1;
}

/* Only one thread may add. */
static inline void latencies_add(struct latencies *l, uint64_t ns) {
  atomic_fetch_add(&l->bins[latency_bin(ns)], 1);
  if (ns > atomic_load(&l->max_ns))
    atomic_store(&l->max_ns, ns);
}

static inline void latencies_clear(struct latencies *l) {
  for (unsigned i = 0; i < LATENCY_N_BINS; i++)
    atomic_store(&l->bins[i], 0);
  atomic_store(&l->max_ns, 0);
}

static inline uint64_t latencies_count(const struct latencies *l) {
  uint64_t n = 0;

  for (unsigned i = 0; i < LATENCY_N_BINS; i++)
    n += atomic_load(&l->bins[i]);
  return n;
}

/* The latency that `per_mille` of the samples do not exceed. */
static inline uint64_t latencies_quantile_ns(const struct latencies *l,
                                             unsigned per_mille) {
  uint64_t rank = (latencies_count(l) * per_mille + 999) / 1000, seen = 0;

  for (unsigned i = 0; i < LATENCY_N_BINS; i++) {
    seen += atomic_load(&l->bins[i]);
    if (seen >= rank)
      return latency_bin_ns(i);
  }
  return 0;
}

/* Prints one line of key=value. */
static inline void latencies_print(const struct latencies *l) {
  printf("n=%" PRIu64 " p50_ns=%" PRIu64 " p99_ns=%" PRIu64 " p999_ns=%" PRIu64
         " max_ns=%" PRIu64 "\n",
         latencies_count(l), latencies_quantile_ns(l, 500),
         latencies_quantile_ns(l, 990), latencies_quantile_ns(l, 999),
         (uint64_t)atomic_load(&l->max_ns));
}

#endif
