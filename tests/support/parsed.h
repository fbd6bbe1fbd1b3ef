/* SPDX-License-Identifier: MIT */
/* Parses JSON that the core has written, with libyajl. */
#ifndef SMAPS_TESTS_PARSED_H
#define SMAPS_TESTS_PARSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yajl_val_s;
typedef const struct yajl_val_s *parsed;

/* Parse a whole text, or a whole file; the test fails if it is not JSON. The
 * caller frees the result. */
parsed parsed_text(const char *text, size_t len);
parsed parsed_file(const char *path);
void parsed_free(parsed p);

/*
 * Follow a path of keys and indices, such as "groups.0.usage.pss". parsed_get()
 * returns NULL if there is nothing; with the others the test fails if there is
 * nothing of that kind.
 */
parsed parsed_get(parsed p, const char *path);
uint64_t parsed_integer(parsed p, const char *path);
double parsed_decimal(parsed p, const char *path);
const char *parsed_string(parsed p, const char *path);
size_t parsed_count(parsed p, const char *path);

/* Returns the keys of an object in their order, with a blank after each. The
 * text stays until the next call. */
const char *parsed_keys(parsed p, const char *path);

/* Finds the element of an array whose key has that value, or NULL. */
parsed parsed_find(parsed p, const char *path, const char *key,
                   const char *value);

/* Returns the process of a snapshot with that pid; the test fails if there is
 * none. */
parsed parsed_process(parsed p, uint64_t pid);

/* Asserts values: "comm=g rule=1 usage.pss=14m", where 14m is 14 MiB (and k is
 * KiB) and a number without a point has to be an integer. No value has a blank
 * in it. */
void parsed_assert(parsed p, const char *values);

#endif
