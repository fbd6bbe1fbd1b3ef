/* SPDX-License-Identifier: MIT */
#include "sum.h"
#include "memory.h"
#include "schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_amount(struct sum *s, enum amount i, uint64_t bytes) {
  bool is_first = !s->has_parts;

  if ((bytes == MISSING) != (s->values[i] == MISSING) && !is_first)
    s->at_least |= UINT32_C(1) << i;
  if (is_first || s->values[i] == MISSING)
    s->values[i] = bytes;
  else if (bytes != MISSING)
    s->values[i] = amount_add(s->values[i], bytes);
}

void sum_add_amounts(struct sum *s, const struct amounts *a) {
  for (unsigned i = 0; i < AMOUNTS; i++)
    add_amount(s, i, amounts_get(a, i));
  s->has_parts = true;
}

/* Makes an amount unknown if it is unknown for a part. */
static void keep_whole(struct sum *s) {
  for (unsigned i = 0; i < AMOUNTS; i++)
    if ((s->at_least >> i) & 1)
      s->values[i] = MISSING;
  s->at_least = 0;
}

void sum_keep_least(struct sum *s) {
  for (unsigned i = 0; i < AMOUNTS; i++)
    if (s->values[i] != MISSING)
      s->at_least |= UINT32_C(1) << i;
}

void sum_forget(struct sum *s) {
  s->processes = s->threads = s->unreadable = MISSING;
  s->pss_error = s->uss_error = MISSING;
  s->at_least = 0;
  for (size_t i = 0; i < AMOUNTS; i++)
    s->values[i] = MISSING;
}

static uint64_t least_of(const struct process *p, enum amount which,
                         uint64_t error) {
  uint64_t bytes = amounts_get(&p->amounts, which);

  return bytes == MISSING ? 0 : amount_less(bytes, amount_or_0(error));
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

  if (bytes == MISSING || error == MISSING)
    return MISSING;
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

/* ---- mappings ---- */

static bool is_wanted(const struct process *p, const struct filters *f) {
  return p->has_mappings && filters_take_process(f, p);
}

static size_t count_processes(const struct document *d,
                              const struct filters *f) {
  size_t n = 0;

  for (size_t i = 0; i < d->n_processes; i++)
    n += is_wanted(&d->processes[i], f);
  return n;
}

/* Without any mapping there are no sums: no process could be read. */
static bool has_own_sums(const struct document *d, const struct filters *f) {
  return d->has_mappings && (d->n_mappings > 0 || d->n_processes == 0) &&
         !filters_part_groups(f) && filter_takes(&f->group, document_scope(d));
}

bool mappings_are_known(const struct document *d, const struct filters *f) {
  return has_own_sums(d, f) || count_processes(d, f) > 0;
}

size_t mappings_missing(const struct document *d, const struct filters *f) {
  size_t n = 0;

  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];

    n += !p->has_mappings && !process_is_in_parent(p) &&
         filters_take_process(f, p);
  }
  return n;
}

void mappings_report_missing(size_t n) {
  fflush(stdout);
  if (n > 0)
    fprintf(stderr, "the mappings of %zu process%s could not be read\n", n,
            n == 1 ? "" : "es");
}

static int compare_names(const void *a, const void *b) {
  return name_compare((*(const struct mapping *const *)a)->name,
                      (*(const struct mapping *const *)b)->name);
}

static const struct mapping **list(const struct document *d,
                                   const struct filters *f, size_t *ret_n) {
  const struct mapping **all = NULL;
  size_t n = 0;

  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];

    for (size_t j = 0; is_wanted(p, f) && j < p->n_mappings; j++) {
      all = memory_room(all, n, sizeof(*all));
      all[n++] = &p->mappings[j];
    }
  }
  if (n > 0)
    qsort(all, n, sizeof(*all), compare_names);
  *ret_n = n;
  return all;
}

/* Mappings that were read whole have neither pages nor an error. */
static uint64_t add_sampled(uint64_t sum, uint64_t more) {
  if (sum == MISSING || more == MISSING)
    return sum == MISSING ? more : sum;
  return amount_add(sum, more);
}

/* Adds up n mappings of the same name. A process has each name only once. */
static struct mapping add_up(const struct mapping *const *same, size_t n,
                             struct pool *pool) {
  struct mapping m = {.name = same[0]->name,
                      .permissions = same[0]->permissions,
                      .processes = n,
                      .pages_sampled = MISSING,
                      .pss_error = MISSING};
  struct sum sum = {0};

  for (size_t i = 0; i < n; i++) {
    const char *permissions = same[i]->permissions;

    sum_add_amounts(&sum, &same[i]->amounts);
    m.vmas = amount_add(m.vmas, same[i]->vmas);
    m.pages_sampled = add_sampled(m.pages_sampled, same[i]->pages_sampled);
    m.pss_error = add_sampled(m.pss_error, same[i]->pss_error);
    if (!permissions || !m.permissions ||
        strcmp(permissions, m.permissions) != 0)
      m.permissions = NULL;
  }
  /* The rest of each process stands for other mappings. */
  if (!m.name)
    m.processes = MISSING;
  keep_whole(&sum);
  if (sum.values[AMOUNT_PSS] == MISSING)
    m.pss_error = MISSING;
  amounts_pack(&m.amounts, pool, sum.values);
  return m;
}

struct mappings mappings_collect(struct document *d, const struct filters *f) {
  struct mappings ret = {.processes = count_processes(d, f)};
  const struct mapping **sorted;
  struct mapping *sums;
  size_t n, end;

  if (has_own_sums(d, f)) {
    ret.all = d->mappings;
    ret.n = d->n_mappings;
    return ret;
  }
  sorted = list(d, f, &n);
  sums = pool_alloc(&d->pool, n * sizeof(*sums));
  for (size_t i = 0; i < n; i = end) {
    for (end = i + 1; end < n; end++)
      if (compare_names(&sorted[i], &sorted[end]) != 0)
        break;
    sums[ret.n++] = add_up(&sorted[i], end - i, &d->pool);
  }
  free(sorted);
  ret.all = sums;
  return ret;
}
