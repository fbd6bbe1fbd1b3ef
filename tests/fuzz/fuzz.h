/* SPDX-License-Identifier: MIT */
/*
 * The fuzz targets share these functions. Each target is a file fuzz_*.c with
 * the function that libFuzzer calls; without libFuzzer replay.c calls it with
 * files.
 */
#ifndef SMAPS_TESTS_FUZZ_H
#define SMAPS_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <smaps/text.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A condition that must hold for every input. */
#define require(condition)                                                     \
  do {                                                                         \
    if (!(condition))                                                          \
      fuzz_fail(#condition, __FILE__, __LINE__);                               \
  } while (0)
__attribute__((noreturn)) void fuzz_fail(const char *condition,
                                         const char *file, int line);

/* The bytes that are not used yet. */
struct fuzz_bytes {
  const uint8_t *at;
  size_t left;
};

/* Returns the next byte; 0 at the end. */
uint8_t fuzz_byte(struct fuzz_bytes *b);

/* Copies some of the next bytes (one byte gives their number, in units of
 * `unit`) into their own allocation, which ends at the last byte or in a NUL.
 * The caller frees it. */
struct span fuzz_text(struct fuzz_bytes *b, size_t unit);
char *fuzz_string(struct fuzz_bytes *b);

/* Copies all bytes in the same way. The caller frees them. */
char *fuzz_copy(const uint8_t *data, size_t size);

/* Checks that a parser leaves its result unchanged if it fails: called before
 * and after. */
void fuzz_taint(void *ret, size_t size);
void fuzz_require_untouched(const void *ret, size_t size);

/* True if one span lies in the other. */
bool fuzz_is_within(struct span inner, struct span outer);

bool fuzz_is_printable(const char *text);

#endif
