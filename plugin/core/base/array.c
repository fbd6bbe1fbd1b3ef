/* SPDX-License-Identifier: MIT */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void *array_room(void *array, size_t n, size_t *cap, size_t size) {
  size_t more = *cap ? *cap * 2 : 16;

  if (n < *cap)
    return array;
  array = reallocarray(array, more, size);
  if (array)
    *cap = more;
  return array;
}

void *array_insert(void *array, size_t *n, size_t *cap, size_t size,
                   size_t at) {
  char *grown = array_room(array, *n, cap, size);

  if (!grown)
    return NULL;
  memmove(grown + (at + 1) * size, grown + at * size, (*n - at) * size);
  ++*n;
  return grown;
}

void array_remove(void *array, size_t *n, size_t size, size_t at) {
  char *place = (char *)array + at * size;

  --*n;
  memmove(place, place + size, (*n - at) * size);
}

size_t array_find(const void *array, size_t n, size_t size, const void *key,
                  int (*compare)(const void *key, const void *element),
                  bool *ret_found) {
  size_t low = 0, high = n;

  *ret_found = false;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = compare(key, (const char *)array + middle * size);

    if (order > 0)
      low = middle + 1;
    else
      high = middle;
    *ret_found |= order == 0;
  }
  return low;
}
