/* SPDX-License-Identifier: MIT */
/* Allocation that cannot fail: if memory runs out, the program prints an error
 * and exits with status 2. */
#ifndef REPORT_MEMORY_H
#define REPORT_MEMORY_H

#include <stddef.h>

/* As reallocarray(3), with NULL for a new array. */
void *memory_array(void *array, size_t n, size_t size);

/* Makes room for one more than n elements: 16, then doubled each time. */
void *memory_room(void *array, size_t n, size_t size);

/* As asprintf(3). */
char *memory_format(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Returns the memory of an allocation; exits if it is NULL. */
void *memory_check(void *memory);

#endif
