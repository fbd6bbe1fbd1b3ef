#include "trend.h"

#include "document.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

void trend_done(struct trend *t) {
  for (size_t i = 0; i < t->n; i++)
    free(t->marks[i].key);
  free(t->marks);
  *t = (struct trend){.marks = NULL};
}

void trend_add(struct trend *next, const char *key, uint64_t pss) {
  next->marks = memory_room(next->marks, next->n, sizeof(*next->marks));
  next->marks[next->n++] = (struct trend_mark){.key = memory_check(strdup(key)),
                                               .first = pss,
                                               .before = UNKNOWN,
                                               .now = pss};
}

static int compare(const void *a, const void *b) {
  return strcmp(((const struct trend_mark *)a)->key,
                ((const struct trend_mark *)b)->key);
}

void trend_update(struct trend *t, struct trend *next) {
  if (next->n > 0)
    qsort(next->marks, next->n, sizeof(*next->marks), compare);
  for (size_t i = 0; i < next->n; i++) {
    struct trend_mark *mark = &next->marks[i];
    const struct trend_mark *old = trend_find(t, mark->key);

    if (!old)
      continue;
    mark->before = old->now;
    if (old->first != UNKNOWN)
      mark->first = old->first;
  }
  trend_done(t);
  *t = *next;
  *next = (struct trend){.marks = NULL};
}

static int compare_key(const void *key, const void *mark) {
  return strcmp(key, ((const struct trend_mark *)mark)->key);
}

const struct trend_mark *trend_find(const struct trend *t, const char *key) {
  if (t->n == 0)
    return NULL;
  return bsearch(key, t->marks, t->n, sizeof(*t->marks), compare_key);
}

struct change change_between(uint64_t old, uint64_t new) {
  if (old == UNKNOWN || new == UNKNOWN)
    return (struct change){.is_known = false};
  return (struct change){.is_known = true,
                         .is_less = new < old,
                         .bytes = new < old ? old - new : new - old};
}
