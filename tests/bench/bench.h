/* SPDX-License-Identifier: MIT */
/* The programs of the benchmarks share these functions. */
#ifndef SMAPS_TESTS_BENCH_H
#define SMAPS_TESTS_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BENCH_NS_PER_MS UINT64_C(1000000)
#define BENCH_NS_PER_S UINT64_C(1000000000)

__attribute__((noreturn)) static inline void bench_die(const char *what) {
  perror(what);
  exit(1);
}

static inline uint64_t bench_now_ns(clockid_t clock) {
  struct timespec t;

  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * BENCH_NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline void bench_sleep_ns(uint64_t ns) {
  struct timespec t = {.tv_sec = (time_t)(ns / BENCH_NS_PER_S),
                       .tv_nsec = (long)(ns % BENCH_NS_PER_S)};

  nanosleep(&t, NULL);
}

/* Parses a decimal number, with K, M or G for bytes. */
static inline bool bench_parse_number(const char *text, uint64_t *ret) {
  static const char units[] = "KMG";
  const char *at = text;
  uint64_t n = 0;

  while (*at >= '0' && *at <= '9' && n < UINT64_MAX / 10 - 1)
    n = n * 10 + (uint64_t)(*at++ - '0');
  if (at == text)
    return false;
  for (unsigned i = 0; *at && units[i]; i++) {
    if (*at != units[i])
      continue;
    n <<= 10 * (i + 1);
    at++;
    break;
  }
  *ret = n;
  return *at == '\0';
}

/* Parses the number of an option; a mistake ends the program. */
static inline uint64_t bench_number_option(char option, const char *text) {
  uint64_t n;

  if (bench_parse_number(text, &n))
    return n;
  fprintf(stderr, "-%c: expected a number, not \"%s\"\n", option, text);
  exit(2);
}

#endif
