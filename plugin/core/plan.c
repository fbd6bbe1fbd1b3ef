#include <smaps/plan.h>

#include <stdlib.h>

/* Doubt in bytes that being due is worth: as much as a large change. */
#define DUE_BYTES (UINT64_C(64) << 20)

static double worth(const struct candidate *c) {
  double doubt = (double)c->doubt_bytes + (c->is_due ? (double)DUE_BYTES : 1);

  return doubt * (1 + c->deferrals) / (double)(c->cost_ns ? c->cost_ns : 1);
}

static int compare(const void *a, const void *b) {
  const struct candidate *x = a, *y = b;
  double i, j;

  if (x->is_must != y->is_must)
    return x->is_must ? -1 : 1;
  i = worth(x);
  j = worth(y);
  return (i < j) - (i > j);
}

static bool is_wanted(const struct candidate *c) {
  return c->is_must || c->is_due ||
         c->group->doubt_bytes > c->group->tolerated_bytes;
}

static void swap(struct candidate *a, struct candidate *b) {
  struct candidate c = *a;

  *a = *b;
  *b = c;
}

static void choose(struct candidate *c) {
  uint64_t *doubt = &c->group->doubt_bytes;

  *doubt = *doubt > c->doubt_bytes ? *doubt - c->doubt_bytes : 0;
}

/* Moves those that are chosen to the front, in their order. */
static struct plan choose_within(struct candidate *c, size_t n,
                                 uint64_t budget_ns) {
  uint64_t spent = 0;
  struct plan plan = {0};
  bool is_full = budget_ns == 0;

  for (size_t i = 0; i < n; i++) {
    if (!is_wanted(&c[i]))
      continue;
    if (!c[i].is_must) {
      is_full |= spent > 0 && spent + c[i].cost_ns > budget_ns;
      if (is_full)
        continue;
      spent += c[i].cost_ns;
    }
    choose(&c[i]);
    swap(&c[plan.chosen++], &c[i]);
  }
  return plan;
}

struct plan plan_choose(struct candidate *c, size_t n, uint64_t budget_ns) {
  struct plan plan;

  if (n > 1)
    qsort(c, n, sizeof(*c), compare);
  plan = choose_within(c, n, budget_ns);
  for (size_t i = plan.chosen; i < n; i++)
    if (is_wanted(&c[i]))
      swap(&c[plan.chosen + plan.deferred++], &c[i]);
  return plan;
}
