/* SPDX-License-Identifier: MIT */
#include "document.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_OF_FIELD(name, key, field) #key,
#define NAME(name, key) #key,
const char *const amount_names[AMOUNTS] = {AMOUNT_TABLE(NAME_OF_FIELD, NAME)};
const char *const part_names[HOST_PARTS] = {HOST_PART_TABLE(NAME)};

static unsigned count_below(uint32_t known, unsigned bit) {
  return (unsigned)__builtin_popcount(known & ((UINT32_C(1) << bit) - 1));
}

uint64_t amounts_get(const struct amounts *a, enum amount which) {
  if (!((a->known >> which) & 1))
    return MISSING;
  return a->packed[count_below(a->known, which)];
}

void amounts_pack(struct amounts *a, struct pool *p, const uint64_t *values) {
  uint64_t *packed;
  uint32_t known = 0;
  size_t n = 0;

  for (unsigned i = 0; i < AMOUNTS; i++)
    if (values[i] != MISSING)
      known |= UINT32_C(1) << i;
  packed = pool_alloc(p, (size_t)__builtin_popcount(known) * sizeof(*packed));
  for (unsigned i = 0; i < AMOUNTS; i++)
    if (values[i] != MISSING)
      packed[n++] = values[i];
  a->known = known;
  a->packed = packed;
}

uint64_t amount_add(uint64_t a, uint64_t b) {
  uint64_t sum;

  if (a == MISSING || b == MISSING || __builtin_add_overflow(a, b, &sum))
    return MISSING;
  return sum;
}

uint64_t mapping_uss(const struct mapping *m) {
  return amount_add(amounts_get(&m->amounts, AMOUNT_PRIVATE_CLEAN),
                    amounts_get(&m->amounts, AMOUNT_PRIVATE_DIRTY));
}

int name_compare(const char *a, const char *b) {
  if (!a || !b)
    return (a == NULL) - (b == NULL);
  return strcmp(a, b);
}

void document_done(struct document *d) {
  pool_done(&d->pool);
  free(d->rules);
  free(d->groups);
  free(d->processes);
  *d = (struct document){0};
}

static int compare_name(const void *name, const void *group) {
  return strcmp(name, ((const struct group *)group)->name);
}

const struct group *document_group(const struct document *d, const char *name) {
  if (d->n_groups == 0)
    return NULL;
  return bsearch(name, d->groups, d->n_groups, sizeof(*d->groups),
                 compare_name);
}

const char *document_scope(const struct document *d) {
  if (!d->trigger.kind || strcmp(d->trigger.kind, "notification") != 0)
    return NULL;
  return d->trigger.group;
}

double document_last_known(const struct document *d) {
  const char *scope = document_scope(d);
  const struct group *g = scope ? document_group(d, scope) : NULL;

  return g ? g->last_known : (double)NAN;
}

bool process_is_in(const struct process *p, const char *group) {
  for (size_t i = 0; i < p->n_groups; i++)
    if (strcmp(p->groups[i], group) == 0)
      return true;
  return false;
}

bool process_is_from(const struct process *p, const char *source) {
  return p->source && strcmp(p->source, source) == 0;
}

bool process_is_in_parent(const struct process *p) {
  return process_is_from(p, "parent");
}

bool process_is_unknown(const struct process *p) {
  return p->n_groups == 0 && process_is_from(p, "unreadable");
}

const char *process_command(const struct process *p) {
  return p->command_line && *p->command_line ? p->command_line : p->comm;
}

const char *process_group_of(const struct document *d, const struct process *p,
                             uint64_t rule) {
  for (size_t i = 0; i < p->n_groups && rule != MISSING; i++) {
    const struct group *g = document_group(d, p->groups[i]);

    if (g && g->rule == rule)
      return g->name;
  }
  return NULL;
}

const char *process_main_group(const struct document *d,
                               const struct process *p) {
  const char *group = process_group_of(d, p, p->rule);

  return group || p->n_groups == 0 ? group : p->groups[0];
}
