#include <smaps/plan.h>

/* Doubt in bytes that being due is worth: as much as a large change. */
#define DUE_BYTES (UINT64_C(64) << 20)

static double worth(const struct candidate *c) {
  double doubt = (double)c->doubt_bytes + (c->is_due ? (double)DUE_BYTES : 1);

  return doubt * (1 + c->deferrals) / (double)(c->cost_ns ? c->cost_ns : 1);
}

/* Of those that need not be read. */
static bool is_wanted(const struct candidate *c) {
  return c->is_due || c->group->doubt_bytes > c->group->tolerated_bytes;
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

/*
 * The candidates as a heap, in place. It stands on its head: the best is the
 * last of the array, and what is taken out goes to the front, so that those
 * end up in their order.
 */
struct heap {
  struct candidate *last;
  size_t n;
};

static struct candidate *heap_at(const struct heap *h, size_t i) {
  return h->last - i;
}

static void heap_sink(const struct heap *h, size_t i) {
  for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
    if (child + 1 < h->n &&
        worth(heap_at(h, child + 1)) > worth(heap_at(h, child)))
      child++;
    if (worth(heap_at(h, i)) >= worth(heap_at(h, child)))
      return;
    swap(heap_at(h, i), heap_at(h, child));
  }
}

static struct heap heap_make(struct candidate *c, size_t n) {
  struct heap h = {.last = c + n - 1, .n = n};

  for (size_t i = n / 2; i-- > 0;)
    heap_sink(&h, i);
  return h;
}

/* Where it stands then is the first place that is the heap's no more. */
static struct candidate *heap_take(struct heap *h) {
  struct candidate *free_place = heap_at(h, --h->n);

  swap(heap_at(h, 0), free_place);
  heap_sink(h, 0);
  return free_place;
}

/* All that must be read, whatever it costs, to the front. */
static size_t choose_musts(struct candidate *c, size_t n) {
  size_t chosen = 0;

  for (size_t i = 0; i < n; i++) {
    if (!c[i].is_must)
      continue;
    choose(&c[i]);
    swap(&c[chosen++], &c[i]);
  }
  return chosen;
}

/* Of the rest, as much as there is time for. */
static size_t choose_within(struct candidate *c, size_t n, uint64_t budget_ns) {
  struct heap heap = heap_make(c, n);
  uint64_t spent = 0;
  size_t chosen = 0;

  while (heap.n > 0 && budget_ns > 0) {
    struct candidate *best = heap_take(&heap);

    if (!is_wanted(best))
      continue;
    if (spent > 0 && spent + best->cost_ns > budget_ns)
      break;
    spent += best->cost_ns;
    choose(best);
    swap(&c[chosen++], best);
  }
  return chosen;
}

struct plan plan_choose(struct candidate *c, size_t n, uint64_t budget_ns) {
  struct plan plan = {.chosen = choose_musts(c, n)};

  if (plan.chosen < n)
    plan.chosen += choose_within(c + plan.chosen, n - plan.chosen, budget_ns);
  for (size_t i = plan.chosen; i < n; i++)
    if (is_wanted(&c[i]))
      swap(&c[plan.chosen + plan.deferred++], &c[i]);
  return plan;
}
