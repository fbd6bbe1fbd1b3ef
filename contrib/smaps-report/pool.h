/* SPDX-License-Identifier: MIT */
/*
 * Memory of a document: many small pieces that are freed together, and strings
 * that are mostly repeated. Exits if memory runs out (memory.h).
 */
#ifndef REPORT_POOL_H
#define REPORT_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool {
  struct pool_chunk *chunks; /* the first one has room */
  const char **strings;      /* hash table of interned strings */
  size_t n_strings;
  size_t size; /* of the table: a power of two, or 0 */
};

/* A pool of zeros is empty. */
void pool_done(struct pool *p);

/* Uninitialised memory, aligned for any type. */
void *pool_alloc(struct pool *p, size_t size);

/*
 * Copies the text and adds a NUL. The same text usually gives the same copy,
 * but not always, because the length of the search is limited (a document could
 * be made of collisions): compare with strcmp().
 */
const char *pool_intern(struct pool *p, const char *text, size_t len);

#endif
