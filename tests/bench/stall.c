/*
 * Measures the effect of reading smaps_rollup on the process that is read: the
 * walk holds its mmap lock, and a thread that maps memory waits for its end.
 *
 *   stall [-s SIZE]
 *
 * This is the process that is read; its user starts the reader. It has SIZE
 * (4G) of memory in one mapping, and two threads: one maps and unmaps 64 KiB,
 * one drops a page and faults it in again, each some thousand times a second.
 *
 * Prints "READY". Each line of standard input is a number of milliseconds: it
 * measures for that long and prints one line of key=value per thread, with the
 * number of operations and their latency in nanoseconds. Ends at the end of its
 * input.
 */
#include "bench.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define MAP_BYTES (16 * PAGE)
#define SETTLE_NS (100 * BENCH_NS_PER_MS) /* above any latency */
#define REST_NS (100 * UINT64_C(1000))

/* Latencies by size: 64 bins per power of two, so the width of a bin is at most
 * 1.6 % of its values. */
#define BIN_BITS 6
#define BINS (1U << BIN_BITS)
#define N_BINS (64 * BINS)

struct latencies {
  atomic_uint bins[N_BINS];
  atomic_ulong max_ns, total_ns;
};

struct watched {
  atomic_bool is_measuring;
  struct latencies maps, faults;
  char *page; /* that is dropped and faulted in */
};

static unsigned bin_of(uint64_t ns) {
  unsigned power;

  if (ns < BINS)
    return (unsigned)ns;
  power = 63 - (unsigned)__builtin_clzll(ns);
  return (power - BIN_BITS + 1) * BINS +
         (unsigned)(ns >> (power - BIN_BITS) & (BINS - 1));
}

/* The upper end of a bin. */
static uint64_t bin_ns(unsigned bin) {
  unsigned power = bin / BINS;

  if (power == 0)
    return bin;
  return ((uint64_t)(BINS + bin % BINS + 1) << (power - 1)) - 1;
}

/* Each has one writer only. */
static void add_latency(struct latencies *l, uint64_t ns) {
  atomic_fetch_add(&l->bins[bin_of(ns)], 1);
  atomic_fetch_add(&l->total_ns, ns);
  if (ns > atomic_load(&l->max_ns))
    atomic_store(&l->max_ns, ns);
}

static void clear_latencies(struct latencies *l) {
  for (unsigned i = 0; i < N_BINS; i++)
    atomic_store(&l->bins[i], 0);
  atomic_store(&l->max_ns, 0);
  atomic_store(&l->total_ns, 0);
}

static uint64_t count_latencies(const struct latencies *l) {
  uint64_t n = 0;

  for (unsigned i = 0; i < N_BINS; i++)
    n += atomic_load(&l->bins[i]);
  return n;
}

/* The latency that `per_mille` of the samples do not exceed. */
static uint64_t quantile_ns(const struct latencies *l, unsigned per_mille) {
  uint64_t rank = (count_latencies(l) * per_mille + 999) / 1000, seen = 0;

  for (unsigned i = 0; i < N_BINS; i++) {
    seen += atomic_load(&l->bins[i]);
    if (seen >= rank)
      return bin_ns(i);
  }
  return 0;
}

static void print_latencies(const char *name, const struct latencies *l) {
  uint64_t n = count_latencies(l);

  printf("what=%s n=%" PRIu64 " mean_ns=%" PRIu64 " p50_ns=%" PRIu64
         " p99_ns=%" PRIu64 " p999_ns=%" PRIu64 " max_ns=%" PRIu64 "\n",
         name, n, n > 0 ? (uint64_t)atomic_load(&l->total_ns) / n : 0,
         quantile_ns(l, 500), quantile_ns(l, 990), quantile_ns(l, 999),
         (uint64_t)atomic_load(&l->max_ns));
}

static char *map_memory(size_t bytes) {
  char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  if (p == MAP_FAILED)
    bench_die("stall: mmap");
  return p;
}

static char *map_small(size_t bytes) {
  char *p = map_memory(bytes);

  madvise(p, bytes, MADV_NOHUGEPAGE);
  return p;
}

static void write_pages(char *p, size_t bytes) {
  for (size_t at = 0; at < bytes; at += PAGE)
    p[at] = 1;
}

/* An operation that begins in the measured time counts, even if it ends later.
 */
static void measure(const struct watched *w, struct latencies *l,
                    void (*act)(const struct watched *w)) {
  bool is_measured = atomic_load(&w->is_measuring);
  uint64_t start_ns = bench_now_ns(CLOCK_MONOTONIC);

  act(w);
  if (is_measured)
    add_latency(l, bench_now_ns(CLOCK_MONOTONIC) - start_ns);
  bench_sleep_ns(REST_NS);
}

static void act_map(const struct watched *w) {
  (void)w;
  munmap(map_memory(MAP_BYTES), MAP_BYTES);
}

static void act_fault(const struct watched *w) {
  *(volatile char *)w->page = 1;
}

__attribute__((noreturn)) static void *run_mapper(void *arg) {
  struct watched *w = arg;

  for (;;)
    measure(w, &w->maps, act_map);
}

__attribute__((noreturn)) static void *run_faulter(void *arg) {
  struct watched *w = arg;

  for (;;) {
    measure(w, &w->faults, act_fault);
    madvise(w->page, PAGE, MADV_DONTNEED);
  }
}

static void start_thread(void *(*run)(void *), struct watched *w) {
  pthread_t thread;

  if (pthread_create(&thread, NULL, run, w) != 0)
    bench_die("stall: pthread_create");
}

static void answer(struct watched *w) {
  char line[32];

  while (fgets(line, sizeof(line), stdin)) {
    uint64_t ms;

    line[strcspn(line, "\n")] = '\0';
    if (!bench_parse_number(line, &ms))
      bench_die("stall: expected milliseconds");
    clear_latencies(&w->maps);
    clear_latencies(&w->faults);
    atomic_store(&w->is_measuring, true);
    bench_sleep_ns(ms * BENCH_NS_PER_MS);
    atomic_store(&w->is_measuring, false);
    bench_sleep_ns(SETTLE_NS);
    print_latencies("map", &w->maps);
    print_latencies("fault", &w->faults);
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  static struct watched w;
  size_t bytes = (size_t)4 << 30;
  int option;

  while ((option = getopt(argc, argv, "s:")) != -1) {
    if (option != 's') {
      fprintf(stderr, "usage: stall [-s SIZE]\n");
      return 2;
    }
    bytes = bench_number_option('s', optarg);
  }
  write_pages(map_small(bytes), bytes);
  w.page = map_small(PAGE);
  start_thread(run_mapper, &w);
  start_thread(run_faulter, &w);
  puts("READY");
  fflush(stdout);
  answer(&w);
  return 0;
}
