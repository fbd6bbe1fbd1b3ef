#include "mapping.h"
#include "memory.h"
#include "sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- sums of our own ---- */

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
  if (sum == UNKNOWN || more == UNKNOWN)
    return sum == UNKNOWN ? more : sum;
  return amount_add(sum, more);
}

/* Adds up n mappings of the same name. A process has each name only once. */
static struct mapping add_up(const struct mapping *const *same, size_t n,
                             struct pool *pool) {
  struct mapping m = {.name = same[0]->name,
                      .permissions = same[0]->permissions,
                      .processes = n,
                      .pages_sampled = UNKNOWN,
                      .pss_error = UNKNOWN};
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
    m.processes = UNKNOWN;
  sum_keep_whole(&sum);
  if (sum.values[AMOUNT_PSS] == UNKNOWN)
    m.pss_error = UNKNOWN;
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
