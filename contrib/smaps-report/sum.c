#include "sum.h"
#include "memory.h"
#include "schema.h"

#include <stdlib.h>

static void add_amount(struct sum *s, enum amount i, uint64_t bytes) {
  bool is_first = !s->has_parts;

  if ((bytes == UNKNOWN) != (s->values[i] == UNKNOWN) && !is_first)
    s->at_least |= UINT32_C(1) << i;
  if (is_first || s->values[i] == UNKNOWN)
    s->values[i] = bytes;
  else if (bytes != UNKNOWN)
    s->values[i] = amount_add(s->values[i], bytes);
}

void sum_add_amounts(struct sum *s, const struct amounts *a) {
  for (unsigned i = 0; i < AMOUNTS; i++)
    add_amount(s, i, amounts_get(a, i));
  s->has_parts = true;
}

void sum_keep_whole(struct sum *s) {
  for (unsigned i = 0; i < AMOUNTS; i++)
    if ((s->at_least >> i) & 1)
      s->values[i] = UNKNOWN;
  s->at_least = 0;
}

void sum_keep_least(struct sum *s) {
  for (unsigned i = 0; i < AMOUNTS; i++)
    if (s->values[i] != UNKNOWN)
      s->at_least |= UINT32_C(1) << i;
}

void sum_forget(struct sum *s) {
  s->processes = s->threads = s->unreadable = UNKNOWN;
  s->pss_error = s->uss_error = UNKNOWN;
  s->at_least = 0;
  for (size_t i = 0; i < AMOUNTS; i++)
    s->values[i] = UNKNOWN;
}

static uint64_t least_of(const struct process *p, enum amount which,
                         uint64_t error) {
  uint64_t bytes = amounts_get(&p->amounts, which);

  return bytes == UNKNOWN ? 0 : amount_less(bytes, amount_or_0(error));
}

static void add_least(struct sum *s, const struct process *p) {
  s->pss_least =
      amount_add(s->pss_least, least_of(p, AMOUNT_PSS, p->pss_error));
  s->uss_least =
      amount_add(s->uss_least, least_of(p, AMOUNT_USS, p->uss_error));
}

void sum_add_process(struct sum *s, const struct process *p) {
  s->processes++;
  s->threads = amount_add(s->threads, p->threads);
  s->unreadable += process_is_from(p, "unreadable");
  /* A process that was read has no error. */
  s->pss_error = amount_add(s->pss_error, amount_or_0(p->pss_error));
  s->uss_error = amount_add(s->uss_error, amount_or_0(p->uss_error));
  if (process_is_in_parent(p))
    return;
  sum_add_amounts(s, &p->amounts);
  add_least(s, p);
}

struct sum *sum_groups(const struct document *d, const struct filters *f) {
  struct sum *sums = memory_check(calloc(d->n_groups + 1, sizeof(*sums)));

  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];

    if (!filters_take_process(f, p))
      continue;
    for (size_t j = 0; j < p->n_groups; j++) {
      const struct group *g = document_group(d, p->groups[j]);

      if (g)
        sum_add_process(&sums[g - d->groups], p);
    }
  }
  return sums;
}

static uint64_t limit_error(uint64_t error, uint64_t bytes, uint64_t least,
                            uint64_t most) {
  uint64_t above = amount_less(most, bytes), below = amount_less(bytes, least);
  uint64_t possible = above > below ? above : below;

  if (bytes == UNKNOWN || error == UNKNOWN)
    return UNKNOWN;
  return error < possible ? error : possible;
}

struct group *sum_finish(const struct sum *s, uint64_t most_bytes,
                         const char *name, struct pool *pool) {
  struct group *g = pool_alloc(pool, sizeof(*g));

  schema_forget(GROUP, g);
  g->name = name;
  g->processes = s->processes;
  g->threads = s->threads;
  g->unreadable = s->unreadable;
  g->pss_error = limit_error(s->pss_error, s->values[AMOUNT_PSS], s->pss_least,
                             most_bytes);
  g->uss_error = limit_error(s->uss_error, s->values[AMOUNT_USS], s->uss_least,
                             most_bytes);
  g->at_least = s->at_least;
  amounts_pack(&g->amounts, pool, s->values);
  return g;
}
