/*
 * What the fuzz targets stand on. Each target is a file fuzz_*.c with the one
 * function that libFuzzer calls; replay.c calls it too, with files, where there
 * is no libFuzzer.
 */
#ifndef SMAPS_TESTS_FUZZ_H
#define SMAPS_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <smaps/scan.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What has to hold of whatever comes. */
#define require(condition)                                                     \
  do {                                                                         \
    if (!(condition))                                                          \
      fuzz_fail(#condition, __FILE__, __LINE__);                               \
  } while (0)
__attribute__((noreturn)) void fuzz_fail(const char *condition,
                                         const char *file, int line);

/* The bytes that are not used up yet. */
struct fuzz_bytes {
  const uint8_t *at;
  size_t left;
};

/* The next byte; 0 at the end. */
uint8_t fuzz_byte(struct fuzz_bytes *b);

/* Some of the next bytes (a byte says how many, in steps of `unit`), as a text
 * of their own that ends at its last byte, or in a NUL. To be freed. */
struct span fuzz_text(struct fuzz_bytes *b, size_t unit);
char *fuzz_string(struct fuzz_bytes *b);

/* All bytes, copied likewise. To be freed. */
char *fuzz_copy(const uint8_t *data, size_t size);

/* Around a call of a parser that has to leave alone what it returns where it
 * fails. */
void fuzz_taint(void *ret, size_t size);
void fuzz_require_untouched(const void *ret, size_t size);

/* Whether one lies in the other. */
bool fuzz_is_within(struct span inner, struct span outer);

bool fuzz_is_printable(const char *text);

#endif
