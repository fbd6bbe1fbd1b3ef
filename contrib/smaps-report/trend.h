/*
 * How the PSS of things has changed: since they were first seen, and since the
 * refresh before. What is gone is forgotten, so that a long watch does not
 * grow.
 */
#ifndef REPORT_TREND_H
#define REPORT_TREND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trend_mark {
  char *key;       /* allocated */
  uint64_t first;  /* bytes; UNKNOWN, too: the first that was known */
  uint64_t before; /* in the refresh before; UNKNOWN if it was not there */
  uint64_t now;
};

/* Zeroed, it knows of nothing. */
struct trend {
  struct trend_mark *marks; /* sorted by key, after trend_update() */
  size_t n;
};

struct change {
  bool is_known;
  bool is_less;
  uint64_t bytes;
};

void trend_done(struct trend *t);

/* Adds what is there in this refresh to `next`, which was zeroed. Exits if
 * memory runs out. */
void trend_add(struct trend *next, const char *key, uint64_t pss);

/* Makes `next` the present of t, and owns it. */
void trend_update(struct trend *t, struct trend *next);

/* NULL if there is none. */
const struct trend_mark *trend_find(const struct trend *t, const char *key);

struct change change_between(uint64_t old, uint64_t new);

#endif
