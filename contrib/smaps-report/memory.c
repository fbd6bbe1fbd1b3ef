/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *memory_check(void *memory) {
  if (memory)
    return memory;
  fputs("smaps-report: out of memory\n", stderr);
  exit(2);
}

void *memory_array(void *array, size_t n, size_t size) {
  if (n > SIZE_MAX / size)
    return memory_check(NULL);
  return memory_check(realloc(array, n > 0 ? n * size : 1));
}

void *memory_room(void *array, size_t n, size_t size) {
  if (n > 0 && (n < 16 || (n & (n - 1)) != 0))
    return array;
  return memory_array(array, n > 0 ? 2 * n : 16, size);
}

char *memory_format(const char *format, ...) {
  va_list args;
  char *text;
  int n;

  va_start(args, format);
  n = vasprintf(&text, format, args);
  va_end(args);
  return memory_check(n < 0 ? NULL : text);
}
