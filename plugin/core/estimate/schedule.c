#include "estimate/schedule.h"

#include <stdlib.h>

#include "estimate/track.h"
#include "match/group.h"

static void swap(struct candidate *a, struct candidate *b) {
  struct candidate c = *a;

  *a = *b;
  *b = c;
}

/* Moves the candidates of which it is true to the front, and counts them. */
static size_t gather(struct candidate *c, size_t n,
                     bool (*is)(const struct candidate *)) {
  size_t gathered = 0;

  for (size_t i = 0; i < n; i++)
    if (is(&c[i]))
      swap(&c[gathered++], &c[i]);
  return gathered;
}

static bool is_must(const struct candidate *c) { return c->is_must; }

static bool is_due(const struct candidate *c) { return c->is_due; }

/* True of candidates that need not be read but should. */
static bool is_wanted(const struct candidate *c) {
  for (size_t i = 0; i < c->n_groups; i++)
    if (c->groups[i]->track->error_bytes > c->groups[i]->track->tolerated_bytes)
      return true;
  return c->is_due;
}

static void choose(struct candidate *c) {
  for (size_t i = 0; i < c->n_groups; i++) {
    uint64_t *error = &c->groups[i]->track->error_bytes;

    *error = *error > c->error_bytes ? *error - c->error_bytes : 0;
  }
}

/* --- orders --- */

/* Without an error the cheapest is worth most. */
static double worth_of(const struct candidate *c) {
  return ((double)c->error_bytes + 1) / (double)(c->cost_ns ? c->cost_ns : 1);
}

static int compare_worth(const void *left, const void *right) {
  const struct candidate *a = left, *b = right;

  return (a->worth < b->worth) - (a->worth > b->worth);
}

static int compare_overdue(const void *left, const void *right) {
  const struct candidate *a = left, *b = right;

  if (a->overdue_ns != b->overdue_ns)
    return a->overdue_ns < b->overdue_ns ? 1 : -1;
  return compare_worth(a, b);
}

static void sort(struct candidate *c, size_t n,
                 int (*compare)(const void *, const void *)) {
  if (n > 1)
    qsort(c, n, sizeof(*c), compare);
}

/* --- choosing --- */

static size_t choose_musts(struct candidate *c, size_t n) {
  size_t musts = gather(c, n, is_must);

  for (size_t i = 0; i < musts; i++)
    choose(&c[i]);
  return musts;
}

/* The last one may be larger than what is left of their time. */
static size_t choose_overdue(struct candidate *c, size_t n, uint64_t time_ns,
                             uint64_t *ret_spent_ns) {
  size_t due = gather(c, n, is_due), chosen = 0;
  uint64_t spent_ns = 0;

  sort(c, due, compare_overdue);
  while (chosen < due && spent_ns < time_ns) {
    spent_ns += c[chosen].cost_ns;
    choose(&c[chosen++]);
  }
  *ret_spent_ns = spent_ns;
  return chosen;
}

/* One that does not fit lets others go ahead: once it is overdue it comes
 * first. It can have a whole budget and more, but then nothing else. */
static size_t choose_worthy(struct candidate *c, size_t n, uint64_t budget_ns,
                            uint64_t spent_ns) {
  /* The error only goes down: what is not wanted now will not be. */
  size_t wanted = gather(c, n, is_wanted), chosen = 0;

  sort(c, wanted, compare_worth);
  for (size_t i = 0; i < wanted && spent_ns < budget_ns; i++) {
    if (!is_wanted(&c[i]) ||
        (spent_ns > 0 && spent_ns + c[i].cost_ns > budget_ns))
      continue;
    spent_ns += c[i].cost_ns;
    choose(&c[i]);
    swap(&c[chosen++], &c[i]);
  }
  return chosen;
}

struct schedule schedule_choose(struct candidate *c, size_t n,
                                uint64_t budget_ns, uint64_t *owed_ns) {
  struct schedule s = {.chosen = choose_musts(c, n)};
  uint64_t half_ns = budget_ns - budget_ns / 2, spent_ns = 0;

  for (size_t i = s.chosen; i < n; i++)
    c[i].worth = worth_of(&c[i]);
  if (half_ns > *owed_ns)
    s.chosen += choose_overdue(c + s.chosen, n - s.chosen, half_ns - *owed_ns,
                               &spent_ns);
  /* What the last of them took beyond their half is owed, and not taken from
   * the others now. */
  *owed_ns += spent_ns;
  *owed_ns -= *owed_ns < half_ns ? *owed_ns : half_ns;
  s.chosen += choose_worthy(c + s.chosen, n - s.chosen, budget_ns,
                            spent_ns < half_ns ? spent_ns : half_ns);
  s.deferred = gather(c + s.chosen, n - s.chosen, is_wanted);
  return s;
}
