/* Memory, for where there is nothing to go back to: when it has run out, the
 * program says so and ends with status 2. */
#ifndef REPORT_MEMORY_H
#define REPORT_MEMORY_H

#include <stddef.h>

/* As reallocarray(3), with NULL for a new array. */
void *memory_array(void *array, size_t n, size_t size);

/* An array with room for one more than n; it doubles, from 16. */
void *memory_room(void *array, size_t n, size_t size);

/* What an allocation returned, unless it is NULL. */
void *memory_check(void *memory);

#endif
