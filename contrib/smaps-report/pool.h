/*
 * Memory for a document: many small pieces that go away together, and strings
 * of which most come up again and again.
 */
#ifndef REPORT_POOL_H
#define REPORT_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool {
  struct pool_chunk *chunks; /* the one with room first */
  const char **strings;      /* hash table of what was interned */
  size_t n_strings;
  size_t size; /* of the table: a power of two, or 0 */
};

/* A pool of zeros is empty. */
void pool_done(struct pool *p);

/* Room for any kind of object, uninitialised; NULL where memory has run out. */
void *pool_alloc(struct pool *p, size_t size);

/*
 * A copy of the text with a NUL behind it; NULL where memory has run out. The
 * same text mostly gives the same copy. Not always, so that whoever writes a
 * document cannot make the search a long one: compare by strcmp().
 */
const char *pool_intern(struct pool *p, const char *text, size_t len);

#endif
