#include "scarce.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PLENTY (LONG_MAX / 2)

static atomic_long left = PLENTY;

void scarce_after(size_t n) { atomic_store(&left, (long)n); }

bool scarce_end(void) { return atomic_exchange(&left, PLENTY) < 0; }

static bool is_out(void) { return atomic_fetch_sub(&left, 1) == 0; }

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
  return is_out() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size) {
  return is_out() ? NULL : __real_calloc(n, size);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size) {
  return is_out() ? NULL : __real_realloc(old, size);
}

void *__real_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size) {
  return is_out() ? NULL : __real_reallocarray(old, n, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) {
  return is_out() ? NULL : __real_strdup(text);
}
