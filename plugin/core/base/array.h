/* SPDX-License-Identifier: MIT */
/* Arrays that grow, and that are sorted; for elements of any size. */
#ifndef SMAPS_ARRAY_H
#define SMAPS_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the array, with room for more than n elements: it may have moved.
 * NULL without memory; then the array is as before. */
void *array_room(void *array, size_t n, size_t *cap, size_t size);

/* The same, with another element at that index, which the caller fills in. */
void *array_insert(void *array, size_t *n, size_t *cap, size_t size, size_t at);
void array_remove(void *array, size_t *n, size_t size, size_t at);

/* The index of the element that equals the key, or the one to insert it at. */
size_t array_find(const void *array, size_t n, size_t size, const void *key,
                  int (*compare)(const void *key, const void *element),
                  bool *ret_found);

#endif
