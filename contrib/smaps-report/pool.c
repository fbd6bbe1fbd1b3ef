/* SPDX-License-Identifier: MIT */
#include "pool.h"
#include "memory.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_SIZE ((size_t)1 << 18)
#define TABLE_SIZE ((size_t)1 << 10)
#define TRIES 16

struct pool_chunk {
  struct pool_chunk *next;
  size_t used;
  size_t size;
  alignas(max_align_t) char bytes[];
};

void pool_done(struct pool *p) {
  while (p->chunks) {
    struct pool_chunk *next = p->chunks->next;

    free(p->chunks);
    p->chunks = next;
  }
  free(p->strings);
  *p = (struct pool){0};
}

static struct pool_chunk *add_chunk(struct pool *p, size_t size) {
  struct pool_chunk *chunk;

  if (size < CHUNK_SIZE)
    size = CHUNK_SIZE;
  chunk = memory_array(NULL, sizeof(*chunk) + size, 1);
  chunk->used = 0;
  chunk->size = size;
  chunk->next = p->chunks;
  p->chunks = chunk;
  return chunk;
}

static void *allocate(struct pool *p, size_t size, size_t alignment) {
  struct pool_chunk *chunk = p->chunks;
  size_t at = chunk ? (chunk->used + alignment - 1) & ~(alignment - 1) : 0;

  if (!chunk || at > chunk->size || size > chunk->size - at) {
    chunk = add_chunk(p, size);
    at = 0;
  }
  chunk->used = at + size;
  return chunk->bytes + at;
}

void *pool_alloc(struct pool *p, size_t size) {
  return allocate(p, size, alignof(max_align_t));
}

/* FNV-1a. */
static size_t hash(const char *text, size_t len) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);

  for (size_t i = 0; i < len; i++)
    h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
  return (size_t)(h ^ h >> 32);
}

/* The place of the text in the table, or NULL if all tried places are taken. */
static const char **find(struct pool *p, const char *text, size_t len) {
  size_t at = hash(text, len);

  for (size_t i = 0; p->size && i < TRIES; i++) {
    const char **place = &p->strings[(at + i) & (p->size - 1)];

    if (!*place || (strncmp(*place, text, len) == 0 && !(*place)[len]))
      return place;
  }
  return NULL;
}

static void grow(struct pool *p) {
  const char **old = p->strings;
  size_t n = p->size;

  p->size = n ? 2 * n : TABLE_SIZE;
  p->strings = memory_check(calloc(p->size, sizeof(*p->strings)));
  for (size_t i = 0; i < n; i++) {
    const char **place = old[i] ? find(p, old[i], strlen(old[i])) : NULL;

    if (place)
      *place = old[i];
  }
  free(old);
}

const char *pool_intern(struct pool *p, const char *text, size_t len) {
  const char **place;
  const char *found;
  char *copy;

  if (p->n_strings >= p->size / 2)
    grow(p);
  place = find(p, text, len);
  found = place ? *place : NULL;
  if (found)
    return found;
  copy = allocate(p, len + 1, 1);
  memcpy(copy, text, len);
  copy[len] = '\0';
  if (place) {
    *place = copy;
    p->n_strings++;
  }
  return copy;
}
