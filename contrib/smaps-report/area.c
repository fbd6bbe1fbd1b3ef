/* SPDX-License-Identifier: MIT */
#include "area.h"
#include "memory.h"

#include <string.h>

static void add(struct areas *a, struct area area) { a->all[a->n++] = area; }

/* ---- groups ---- */

/* The sums of a group, over the processes that count in it. */
struct share {
  bool overlaps; /* one of its processes is in another group, too */
  uint64_t pss, file;
};

static void add_process(const struct document *d, const struct process *p,
                        struct share *shares) {
  const char *main_group = process_main_group(d, p);

  for (size_t i = 0; i < p->n_groups; i++) {
    const struct group *g = document_group(d, p->groups[i]);
    struct share *share = g ? &shares[g - d->groups] : NULL;

    if (!share)
      continue;
    share->overlaps |= p->n_groups > 1;
    if (strcmp(g->name, main_group) != 0 || process_is_in_parent(p))
      continue;
    share->pss = amount_add(share->pss,
                            amount_or_0(amounts_get(&p->amounts, AMOUNT_PSS)));
    share->file = amount_add(
        share->file, amount_or_0(amounts_get(&p->amounts, AMOUNT_PSS_FILE)));
  }
}

static struct area area_of_group(const struct group *g,
                                 const struct share *share) {
  uint64_t pss = amounts_get(&g->amounts, AMOUNT_PSS);
  uint64_t file = amounts_get(&g->amounts, AMOUNT_PSS_FILE);

  if (share->overlaps) {
    pss = share->pss;
    file = file == MISSING ? MISSING : share->file;
  }
  return (struct area){.name = part_names[HOST_GROUPS],
                       .group = g->name,
                       .used = pss,
                       .cache = pss == MISSING ? MISSING : file,
                       .error = g->pss_error};
}

/* Returns the sum of the groups. */
static uint64_t add_groups(struct document *d, struct areas *a) {
  struct share *shares = pool_alloc(&d->pool, d->n_groups * sizeof(*shares));
  uint64_t sum = 0;

  for (size_t i = 0; i < d->n_groups; i++)
    shares[i] = (struct share){.overlaps = false};
  for (size_t i = 0; i < d->n_processes; i++)
    add_process(d, &d->processes[i], shares);
  for (size_t i = 0; i < d->n_groups; i++) {
    struct area area = area_of_group(&d->groups[i], &shares[i]);

    if (shares[i].overlaps && area.used == 0) /* a view of others */
      continue;
    add(a, area);
    sum = amount_add(sum, amount_or_0(area.used));
  }
  return sum;
}

/* ---- the rest ---- */

static bool is_cache(enum host_part part) {
  return part == HOST_FREE || part == HOST_PAGE_CACHE || part == HOST_BUFFERS ||
         part == HOST_SLAB_RECLAIMABLE || part == HOST_SWAP_CACHE;
}

/* `excess`, what the groups have beyond their part, is taken from the last. */
static void add_parts(const struct host_memory *h, uint64_t excess,
                      struct areas *a) {
  for (unsigned i = HOST_PARTS; i-- > 0;) {
    uint64_t used = h->parts[i], cut;

    if (i == HOST_GROUPS || used == MISSING)
      continue;
    cut = used < excess ? used : excess;
    excess -= cut;
    used -= cut;
    add(a, (struct area){.name = part_names[i],
                         .used = used,
                         .cache = is_cache((enum host_part)i) ? used : 0,
                         .error = amount_add(amount_or_0(h->errors[i]), cut)});
  }
}

static void add_outside(const struct host_memory *h, uint64_t outside,
                        struct areas *a) {
  if (outside == 0)
    return;
  add(a,
      (struct area){.name = "outside",
                    .used = outside,
                    .cache = MISSING,
                    .error = amount_add(amount_or_0(h->outside_error),
                                        amount_or_0(h->errors[HOST_GROUPS]))});
}

void area_add(struct area *total, const struct area *part) {
  uint64_t used = amount_or_0(part->used);

  total->used = amount_add(total->used, used);
  if (part->cache == MISSING)
    total->undivided = amount_add(total->undivided, used);
  else
    total->cache = amount_add(total->cache, part->cache);
}

struct areas areas_collect(struct document *d) {
  const struct host_memory *h = &d->host_memory;
  uint64_t groups = amount_or_0(h->parts[HOST_GROUPS]), shown;
  size_t most = d->n_groups + HOST_PARTS + 1;
  struct areas a = {.n = 0};

  a.all = pool_alloc(&d->pool, most * sizeof(*a.all));
  if (document_scope(d)) {
    shown = groups;
    add(&a, (struct area){.name = part_names[HOST_GROUPS],
                          .used = groups,
                          .cache = MISSING,
                          .error = h->errors[HOST_GROUPS]});
  } else {
    shown = add_groups(d, &a);
  }
  add_outside(h, amount_less(groups, shown), &a);
  add_parts(h, amount_less(shown, groups), &a);
  return a;
}
